import { existsSync } from "node:fs";
import { join } from "node:path";
import type { FileAnswer } from "../../domain/sessions/workspace-file.ts";
import type { KeptSubmodule } from "../../store/sessions/file-requests.ts";
import { hasCommit } from "../git/git.ts";
import { entryAt } from "./git-files.ts";
import type { Snapshot, SnapshotPlaces } from "./snapshot.ts";

/** A path in the files of one repository of a session, or of a submodule in it. */
interface Wanted {
  readonly snapshot: Snapshot;
  /** From the snapshot's root. */
  readonly path: string;
  /** Path of that root in the session's clone; empty: it is the clone itself. */
  readonly above: string;
}

/**
 * Calls `use` with the repository that a path leads into: of a submodule, the mirror that it was fetched from. Only what a worker fetched for
 * this session is looked for, by the address and the commit of that record: the session's own commits could name any mirror of this
 * worker, and any commit of it, of others too. What an agent changed in a submodule is not there, as it is in no commit of the session.
 */
export async function inSubmodules(
  places: Pick<SnapshotPlaces, "mirrors">,
  fetched: readonly KeptSubmodule[],
  { snapshot, path, above }: Wanted,
  signal: AbortSignal,
  use: (wanted: Wanted) => Promise<FileAnswer>,
): Promise<FileAnswer> {
  const { mirrors } = places;
  const here = { snapshot, path, above };
  const next = fetched
    .map((submodule) => ({ submodule, at: relativeTo(above, submodule.path) }))
    .filter(({ at }) => at !== null && (path === at || path.startsWith(`${at}/`)))
    .toSorted((one, other) => (one.at?.length ?? 0) - (other.at?.length ?? 0))[0];
  if (next === undefined || next.at === null) return use(here);
  const { submodule, at } = next;
  const options = { cwd: snapshot.repository, commit: snapshot.commit, signal };
  const entry = await entryAt(options, at);
  // The session has something else in its place.
  if (entry?.type !== "submodule") return use(here);
  const { url, sha } = submodule;
  const nothing: FileAnswer = { problem: "empty submodule" };
  if (entry.sha !== sha) return nothing;
  const repository = mirrors.pathOf(url);
  return mirrors.use.whileUsed(repository, async () => {
    if (!existsSync(join(repository, "HEAD")) || !(await hasCommit(sha, { cwd: repository, signal }))) return nothing;
    const within = { repository, commit: sha, from: snapshot.from };
    const inner = { snapshot: within, path: path.slice(at.length + 1), above: submodule.path };
    return inSubmodules(places, fetched, inner, signal, use);
  });
}

/** A path in the clone as one from a folder of it; null: it is not in that. */
function relativeTo(above: string, path: string): string | null {
  if (above === "") return path;
  return path.startsWith(`${above}/`) ? path.slice(above.length + 1) : null;
}
