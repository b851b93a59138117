import { lstat, mkdir, writeFile } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { programText } from "../../programs/program-text.ts";
import { runProgram } from "../../sandboxes/process/run-program.ts";
import { withBase, type Base } from "../checkouts/choose-base.ts";
import { copyIndex } from "../checkouts/copy-index.ts";
import { changesSubmodules, refreshDifference, differenceSize, writeDifference } from "../checkouts/difference.ts";
import { layWorkspace } from "../checkouts/layers.ts";
import type { Way } from "../checkouts/ways.ts";
import { addWritten, whileWithin } from "../disk/checkout-size.ts";
import { changesIn } from "../disk/overlay.ts";
import type { SessionPaths } from "../disk/session-folders.ts";
import { fetchForFolder } from "../git/lfs/lfs.ts";
import type { Mirror } from "../git/mirrors/mirror.ts";
import { copyTags } from "../git/mirrors/tags.ts";
import type { CloneStart, RemoteRepository, Submodule } from "../git/remote-repository.ts";
import { createClone, reportLines, type ReportProgress, type Room } from "./create-clone.ts";
import type { CloneServices } from "./clone.ts";
import { addPullRequest } from "./pull-request-refs.ts";
import { giveIndex, refreshIndexes, refreshSubmodules } from "./refresh-index.ts";
import { addSubmodules } from "./submodules.ts";

/** A clone that is to be made. */
export interface CloneOrder {
  readonly mirror: Mirror;
  readonly remote: RemoteRepository;
  readonly start: CloneStart;
  /** Path of the clone, below the workspace. */
  readonly folder: string;
  /** Id of the session that the clone is for: it also gets the commits of the session's pull request. Omitted: none. */
  readonly sessionId?: string;
}

/** A clone that was made. */
export interface MadeClone {
  /** Path of the clone, as its order has it. */
  readonly folder: string;
  readonly submodules: readonly Submodule[];
  /** Why files in LFS are pointers there; null if they are not. */
  readonly lfsProblem: string | null;
}

/** Dependencies for making clones together. */
interface Making {
  readonly services: CloneServices;
  /** The workspace is an empty folder. */
  readonly place: SessionPaths;
  readonly room: Room;
  readonly progress: ReportProgress;
  readonly signal: AbortSignal;
}

/** The base of a clone, if it has one: then only the difference is written. */
interface Planned {
  readonly order: CloneOrder;
  readonly base: Base | null;
  readonly lfsProblem: string | null;
}

/** A clone with its files. */
interface Filled extends Planned {
  readonly submodules: readonly Submodule[];
  /** Whether its repository has more than its order's start. */
  readonly hasMore: boolean;
}

/**
 * Makes all clones of a workspace, and gives the workspace and the home to the sandbox's user.
 * @returns them, in the order given
 * @throws SessionError resources_exhausted, if possible before anything is written; repository_* that passes by itself
 */
export async function makeAllClones(making: Making, orders: readonly CloneOrder[]): Promise<MadeClone[]> {
  const { checkouts } = making.services;
  const { way } = await checkouts.way();
  if (way !== "checkout") return withBases(making, orders, [], (planned) => makePlanned(making, way, planned));
  const none = orders.map((order) => ({ order, base: null, lfsProblem: null }));
  return makePlanned(making, way, none);
}

/** Chooses what each clone begins on, and keeps all of that while `work` runs. */
async function withBases<T>(
  making: Making,
  orders: readonly CloneOrder[],
  planned: readonly Planned[],
  work: (planned: readonly Planned[]) => Promise<T>,
): Promise<T> {
  const [order, ...others] = orders;
  if (order === undefined) return work(planned);
  const { services, room, signal } = making;
  const { mirror, remote, start } = order;
  const { headSha: sha, sparse = [] } = start;
  const source = { mirror: basename(mirror.path), url: mirror.url, sha, directory: remote.directory, sparse };
  const contents = (usesLfs: boolean | null) => fetchContents(making, order, usesLfs);
  const checkoutMaking = { checkouts: services.checkouts, mirror: mirror.path, bounds: room.bounds, signal };
  return withBase(checkoutMaking, source, contents, (base, lfsProblem) =>
    withBases(making, others, [...planned, { order, base, lfsProblem }], work),
  );
}

/**
 * Fetches the contents of files in LFS that a clone needs.
 * @param usesLfs whether the commit has such files; null if that is not known
 * @returns as `fetchForFolder`
 */
async function fetchContents(
  { progress, signal }: Making,
  { mirror, start: { headSha, baseSha, sparse = [] } }: CloneOrder,
  usesLfs: boolean | null,
): Promise<string | null> {
  const more = { sparse, onProgress: reportLines(progress) };
  const problem = usesLfs === false ? null : await fetchForFolder(mirror, headSha, signal, more);
  // The agent may go back to what the base has; what the server lacks of that is no problem of this checkout.
  if (baseSha !== headSha && problem === null) await fetchForFolder(mirror, baseSha, signal, more);
  return problem;
}

async function makePlanned(making: Making, way: Way, planned: readonly Planned[]): Promise<MadeClone[]> {
  const { services, place } = making;
  const based = planned.filter((each): each is Based => each.base !== null);
  for (const { base, order } of based) await requireRoom(making, order, base);
  const isLaid = way === "overlay" && based.length > 0;
  if (isLaid) await layClones(making, based);
  const filled: Filled[] = [];
  for (const each of planned) {
    const { order, base } = each;
    if (base !== null && !isLaid) await copyClone(making, { order, base });
    services.checkouts.count(base === null ? "checkout" : way);
    filled.push(await fillClone(making, each));
  }
  if (isLaid) await giveLaid(making, filled);
  else {
    await services.sandbox.makeWritable(place.workspace);
    for (const { order, base, submodules } of filled) {
      const isCopied = base !== null;
      await refreshIndexes({ folder: order.folder, submodules }, { isCopied, signal: making.signal });
    }
  }
  await services.sandbox.makeWritable(place.home);
  return filled.map(({ order: { folder }, submodules, lfsProblem }) => ({ folder, submodules, lfsProblem }));
}

type Based = Planned & { readonly base: Base };

/** Counts a clone as if all of it were written: its agent may do that. @throws SessionError resources_exhausted */
async function requireRoom({ room, signal }: Making, { mirror, start }: CloneOrder, { checkout, difference }: Base) {
  addWritten(room.written, checkout, room.bounds);
  addWritten(room.written, await differenceSize(mirror.path, difference, start.sparse ?? [], signal), room.bounds);
}

/** Lays the workspace on the checkouts of all clones that begin on one: only what is each session's own is written. */
async function layClones({ services, place }: Making, based: readonly Based[]): Promise<void> {
  const { checkouts, sandbox } = services;
  const folder = dirname(place.workspace);
  const changes = changesIn(folder);
  for (const { order } of based) await writeOwn(join(changes, order.remote.directory, ".git"), order);
  await sandbox.makeWritable(changes);
  const owner = await lstat(changes);
  for (const { order, base } of based) {
    const { directory } = order.remote;
    const from = join(checkouts.layerOf(base.checkout.name), directory, ".git/index");
    if (owner.uid === process.getuid?.()) continue;
    await copyIndex(from, join(changes, directory, ".git/index"), owner, base.checkout.sha);
  }
  await layWorkspace(
    checkouts,
    folder,
    based.map(({ base }) => base.checkout),
  );
}

async function copyClone({ services, place }: Making, { order, base }: Pick<Based, "order" | "base">): Promise<void> {
  const { directory } = order.remote;
  const from = join(services.checkouts.layerOf(base.checkout.name), directory);
  await runProgram("cp", ["-a", "--reflink=always", "--", from, place.workspace]);
  await writeOwn(join(order.folder, ".git"), order);
}

/** Writes what of a clone's repository is its session's own: the branch that it is on, and what it knows of its remote. */
async function writeOwn(repository: string, { mirror, remote, start }: CloneOrder): Promise<void> {
  const refs = [
    { path: "HEAD", content: `ref: refs/heads/${remote.branch}` },
    { path: `refs/heads/${remote.branch}`, content: start.headSha },
    { path: `refs/remotes/origin/${start.targetBranch}`, content: start.baseSha },
  ];
  for (const { path, content } of refs) {
    await mkdir(dirname(join(repository, path)), { recursive: true });
    await writeFile(join(repository, path), `${content}\n`);
  }
  await copyTags(mirror.path, repository);
}

/** Writes into a clone's folder what its commit has, beyond what it begins on. */
async function fillClone(making: Making, planned: Planned): Promise<Filled> {
  const { order, base, lfsProblem } = planned;
  const { services, room, progress, signal } = making;
  const { mirror, remote, start, folder, sessionId } = order;
  let problem = lfsProblem;
  if (base === null) {
    const contents = () => (lfsProblem === null ? fetchContents(making, order, null) : Promise.resolve(lfsProblem));
    problem = await createClone(mirror, folder, remote, start, room, contents, signal);
  } else if (base.difference.files.length > 0) {
    const { disk, bounds } = room;
    await whileWithin(disk, bounds, signal, (watched) =>
      writeDifference(folder, base.difference, { signal: watched, fileBytes: bounds.diskBytes }),
    );
  }
  const hasMore =
    sessionId !== undefined && (await addPullRequest(mirror, folder, sessionId, remote, start.targetBranch, signal));
  const mayHaveSubmodules = base === null || base.checkout.hasSubmodules || changesSubmodules(base.difference);
  const { mirrors } = services;
  const submodules = mayHaveSubmodules
    ? await addSubmodules({ folder, headSha: start.headSha, remote, mirrors, room, progress, signal })
    : [];
  return { ...planned, submodules, lfsProblem: problem, hasMore };
}

/** Gives what was written into a laid workspace to its owner: to all else it belongs already. */
async function giveLaid({ place, signal }: Making, filled: readonly Filled[]): Promise<void> {
  const { uid, gid } = await lstat(place.workspace);
  const isUntouched = filled.every(
    ({ base, submodules, hasMore }) => base?.difference.files.length === 0 && submodules.length === 0 && !hasMore,
  );
  if (isUntouched || uid === process.getuid?.()) return;
  const program = programText(import.meta.url, "give-changes.sh");
  const changes = changesIn(dirname(place.workspace));
  await runProgram("sh", ["-c", program, "sh", changes, place.workspace, `${uid}:${gid}`]);
  for (const { order, base, submodules } of filled) {
    const { folder, start } = order;
    if (base === null) await refreshIndexes({ folder, submodules }, { isCopied: false, signal });
    else {
      await refreshSubmodules({ folder, submodules }, signal);
      if (base.difference.files.length === 0) continue;
      await refreshDifference(folder, base.difference, start.sparse ?? []);
      await giveIndex(folder);
    }
  }
}
