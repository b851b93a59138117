import { join } from "node:path";
import type { FetchLimits } from "./fetch.ts";
import { createFetchTurns } from "./fetch-turns.ts";
import { createFolderLock, type FolderLock } from "./folder-lock.ts";
import { mirrorPath, type Mirror } from "./mirror.ts";
import type { RemoteRepository } from "../remote-repository.ts";
import type { GitTransport } from "../transport.ts";

/** The bare mirrors of this worker's data folder, from which all clones borrow their objects. */
export interface Mirrors {
  /** Folder that holds them all. */
  readonly directory: string;
  /** Prevents the removal of a mirror while it is used. */
  readonly use: FolderLock;
  /** The mirror of a repository, whether or not it was made yet. */
  of(repository: Pick<RemoteRepository, "url" | "named" | "credentials">): Mirror;
  /** Path of the mirror of a repository's clone URL. */
  pathOf(url: string): string;
}

/**
 * The mirrors below a data folder.
 * @param options.allowLocalRepositories whether a repository's URL may be a path on this machine
 * @param options.fetch limits of one fetch; the defaults if omitted
 */
export function createMirrors(options: {
  readonly dataDirectory: string;
  readonly allowLocalRepositories: boolean;
  readonly fetch?: FetchLimits;
  /** How remotes are reached; directly if omitted. */
  readonly transport?: GitTransport;
}): Mirrors {
  const directory = join(options.dataDirectory, "mirrors");
  const turns = createFetchTurns();
  return {
    directory,
    use: createFolderLock(),
    of: ({ url, named, credentials }) => ({
      path: mirrorPath(directory, url),
      url,
      named,
      local: options.allowLocalRepositories && url.startsWith("/"),
      credentials,
      turns,
      ...(options.fetch !== undefined && { fetchLimits: options.fetch }),
      ...(options.transport !== undefined && { transport: options.transport }),
    }),
    pathOf: (url) => mirrorPath(directory, url),
  };
}
