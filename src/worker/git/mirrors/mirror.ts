import { createHash } from "node:crypto";
import { join } from "node:path";
import type { GitCredentials } from "../../../forges/forge.ts";
import type { FetchLimits } from "./fetch.ts";
import type { FetchTurns } from "./fetch-turns.ts";
import { looksWithBytes, type GitOptions } from "../git.ts";
import { requireHeldGit } from "../git-version.ts";
import { pinPublicHost } from "../remote-address.ts";
import { directTransport, type GitTransport } from "../transport.ts";

/** Offstage's own bare repository for a remote one: fetches add to it, clones borrow from it, and no agent writes to it. */
export interface Mirror {
  readonly path: string;
  readonly url: string;
  /** Whether the URL is a path on this machine. */
  readonly local: boolean;
  /** Whether the operator named its host: it may then be in a private network. */
  readonly named: boolean;
  readonly credentials: () => Promise<GitCredentials | null>;
  /** Limits of one fetch; the defaults if omitted. */
  readonly fetchLimits?: FetchLimits;
  /** How its remote is reached; directly if omitted. */
  readonly transport?: GitTransport;
  /** What else is fetched into it; a fetch waits for no other if omitted. */
  readonly turns?: FetchTurns;
}

/**
 * Path of a repository's mirror: one for each URL, which all sessions with it share.
 * @param mirrors folder of all mirrors
 */
export function mirrorPath(mirrors: string, url: string): string {
  return join(mirrors, `${createHash("sha256").update(url).digest("hex").slice(0, 32)}.git`);
}

/** Name of a file in each mirror whose modification time is that of the mirror's last use. */
export const mirrorUsedMark = "offstage-used";

/** Default limits of a mirror. */
const defaultFetch: FetchLimits = { bytes: 20 * 1024 ** 3, memoryBytes: looksWithBytes, ms: 60 * 60_000 };

/** Limits of one fetch from a mirror's remote; of one push to it, those in time. */
export function transferLimits({ fetchLimits = defaultFetch }: Pick<Mirror, "fetchLimits">): FetchLimits {
  return fetchLimits;
}

/**
 * Options of a git process that contacts the mirror's remote: its credentials, and the address that was checked.
 * @throws SessionError repository_unreachable, repository_access_denied, forge_unavailable
 */
export async function remoteOptions(mirror: Mirror, signal: AbortSignal): Promise<GitOptions> {
  const { path, url, local, named, transport = directTransport } = mirror;
  const credentials = await mirror.credentials();
  const pinned = named || local ? null : await pinPublicHost(url, transport.isProxied(url));
  if (pinned !== null && pinned.address !== null && /^https?:/u.test(url)) await requireHeldGit({ cwd: path, signal });
  return { cwd: path, signal, local, remote: { url, credentials, pinned, transport } };
}
