import { SessionError } from "../../../domain/errors/errors.ts";
import { firstOf } from "../../../domain/fields/text.ts";
import { saveRepository } from "../../../store/queue/recorded-work.ts";
import type { Attempt } from "../../attempt/attempt.ts";
import { commandFoldersOf } from "../../attempt/session-repositories.ts";
import type { Clone } from "../../clones/clone.ts";
import { completeClones, withClone } from "../../clones/clones.ts";
import { renewSubmodules } from "../../clones/renew-submodules.ts";
import { compareSubmodules, submoduleUrls } from "../../git/gitmodules.ts";
import { keptOf, type Submodule } from "../../git/remote-repository.ts";
import { sparseHas } from "../../git/sparse-checkout.ts";
import type { OthersSubmodules } from "../agent/conflict-prompt.ts";
import type { JoinServices } from "./bring-in.ts";

// What others did to submodules comes into a clone in two steps, so that it is done after a crash too: what is wanted is recorded before
// the clone is brought to their commit, and taken off the record when the folders have it.

/** Most submodules that are brought to other commits at once, and that a notice names. */
const mostWanted = 100;
const namedSubmodules = 5;

/** A session's clones, and one of them. */
interface Clones {
  readonly clones: readonly Clone[];
  readonly clone: Clone;
}

/**
 * Records which submodules others moved or added.
 * @param changes.from a commit that the clone has
 * @param changes.to the commit that it gets
 * @param changes.theirs the commit of others, whose .gitmodules counts
 */
export async function wantSubmodules(
  { session, signal }: Pick<Attempt, "session" | "signal">,
  services: Pick<JoinServices, "folders">,
  { clones, clone }: Clones,
  { from, to, theirs }: { readonly from: string; readonly to: string; readonly theirs: string },
): Promise<Clones> {
  const { mirror, submodules = [], sparse = [] } = clone;
  const options = { cwd: mirror.path, signal };
  const urls = await submoduleUrls(options, theirs);
  // Without that file no address is known of any.
  if (urls?.size === 0) return { clones, clone };
  const { moved, added } = await compareSubmodules(from, to, options);
  const isSeen = sparse.length === 0 ? () => true : sparseHas(sparse);
  const wanted = [...moved, ...added].filter(([path]) => isSeen(path)).slice(0, mostWanted);
  if (wanted.length === 0) return { clones, clone };
  const known = new Map(submodules.map((one) => [one.path, one]));
  for (const [path, sha] of wanted) {
    const before = known.get(path) ?? { path, url: null, problem: "it is new" };
    known.set(path, { ...before, sha, renewing: { written: urls?.get(path) ?? null } });
  }
  return saved({ session }, services, { clones, clone }, [...known.values()]);
}

/**
 * Brings the folders of submodules that others moved or added to their commits, as `wantSubmodules` recorded; what could not be, and what
 * was changed in the session, stays as it is, which is said on the session.
 * @param branch on which others recorded them
 * @throws SessionError resources_exhausted, sandbox_unavailable; repository_* that passes by itself
 */
export async function followSubmodules(
  attempt: Attempt,
  services: JoinServices,
  { clones, clone }: Clones,
  branch: string,
): Promise<Clones & { readonly submodules: OthersSubmodules }> {
  const { submodules = [] } = clone;
  const renewing = submodules.filter(isRenewing);
  if (renewing.length === 0) return { clones, clone, submodules: { moved: [], added: [], renewed: [] } };
  const found = await renewed(attempt, services, clone, renewing);
  const isDone = ({ path }: Submodule): boolean => found.some((one) => one.path === path && one.problem === null);
  const [done, left] = [renewing.filter(isDone), renewing.filter((one) => !isDone(one))];
  const isWithin = (inner: string, { path }: Submodule): boolean => inner === path || inner.startsWith(`${path}/`);
  const rest = submodules.filter(({ path }) => !done.some((one) => isWithin(path, one)));
  const now = [...rest.map(atRest), ...found.filter(({ path }) => done.some((one) => isWithin(path, one)))];
  const said = left.map((one) => ({ ...one, why: found.find(({ path }) => path === one.path)?.problem ?? notThere }));
  const [moved, added] = [
    said.filter(({ problem }) => problem === null),
    said.filter(({ problem }) => problem !== null),
  ];
  await notice(attempt, clone, branch, { moved, added });
  const { position } = clone.repository;
  await saveRepository(services.database, attempt.session, position, { submodules: keptOf(now) });
  const pathsOf = (list: readonly Submodule[]): string[] => list.map(({ path }) => path);
  return {
    ...(await saved(attempt, services, { clones, clone }, now)),
    submodules: { moved: pathsOf(moved), added: pathsOf(added), renewed: pathsOf(done) },
  };
}

type Renewing = Submodule & { readonly renewing: NonNullable<Submodule["renewing"]> };

function isRenewing(one: Submodule): one is Renewing {
  return one.renewing !== undefined;
}

function atRest(submodule: Submodule): Submodule {
  const { renewing: _, ...rest } = submodule;
  return rest;
}

const notThere = "it could not be brought there";

/** @returns none, if the agent left the clone in a state in which that can't be done */
async function renewed(
  { session, signal, logger }: Attempt,
  services: JoinServices,
  { remote }: Clone,
  renewing: readonly Renewing[],
): Promise<readonly Submodule[]> {
  const folders = commandFoldersOf(session, services, remote.directory);
  const wanted = renewing.map(({ path, sha, renewing: { written } }) => ({ path, sha, written }));
  try {
    return await renewSubmodules(services, { sessionId: session.sessionId, remote, folders, wanted, signal });
  } catch (error) {
    signal.throwIfAborted();
    if (error instanceof SessionError) throw error;
    logger.warn({ err: error }, "could not bring submodules of a session to the commits of others");
    return [];
  }
}

async function saved(
  { session }: Pick<Attempt, "session">,
  services: Pick<JoinServices, "folders">,
  { clones, clone }: Clones,
  submodules: readonly Submodule[],
): Promise<Clones> {
  const changed = { ...clone, submodules };
  const all = withClone(clones, changed);
  await completeClones(services, session.sessionId, all);
  return { clones: all, clone: changed };
}

type Left = readonly { readonly path: string; readonly why: string }[];

async function notice(
  { emit }: Pick<Attempt, "emit">,
  { repository }: Clone,
  branch: string,
  { moved, added }: { readonly moved: Left; readonly added: Left },
): Promise<void> {
  const said = [
    ...(moved.length > 0
      ? [`are recorded at another commit, while their folders keep the earlier one: ${listed(moved)}`]
      : []),
    ...(added.length > 0 ? [`are new, and their folders are empty: ${listed(added)}`] : []),
  ];
  if (said.length === 0) return;
  const text = `By what others committed to ${branch}, submodules of ${repository.name} ${said.join("; others ")}. A new session has all that can be fetched.`;
  await emit({ type: "notice", data: { level: "warning", text: text.slice(0, 2_000) } });
}

const listed = (left: Left): string =>
  firstOf(
    left.map(({ path, why }) => `${path} (${why})`),
    namedSubmodules,
  );
