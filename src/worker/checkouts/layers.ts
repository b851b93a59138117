import { existsSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { replaceFile } from "../../atomic-file.ts";
import { messageOf, SessionError } from "../../domain/errors/errors.ts";
import type { Sandbox } from "../../sandboxes/sandbox.ts";
import type { DiskBounds } from "../disk/checkout-size.ts";
import { changesIn, isOverlay, mountOverlay, overlaysBelow, unmountOverlays } from "../disk/overlay.ts";
import { hasCommit } from "../git/git.ts";
import { lfsPath, lfsStore } from "../git/lfs/store.ts";
import { namesInLfs } from "../git/lfs/lfs.ts";
import { sparseCommit } from "../git/sparse-checkout.ts";
import { ensureCheckout } from "./make-checkout.ts";
import {
  markUsed,
  readSharedCheckout,
  type CheckoutSource,
  type SharedCheckout,
  type SharedCheckouts,
} from "./shared-checkouts.ts";

/** A checkout that a workspace is laid on, as the record beside the workspace has it: enough to make it again. */
export type Layer = CheckoutSource & Pick<SharedCheckout, "name" | "usesLfs">;

const recordIn = (place: string): string => join(place, "layers.json");

/**
 * The checkouts that the workspace of a place is laid on; null if it is a plain folder.
 * @param place folder of a session or of one setup
 */
export async function readLayers(place: string): Promise<Layer[] | null> {
  try {
    return JSON.parse(await readFile(recordIn(place), "utf8")) as Layer[];
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return null;
    throw error;
  }
}

/** Lays the workspace of a place, an empty folder, on checkouts, and records them. Its folder of changes is there. */
export async function layWorkspace(
  checkouts: SharedCheckouts,
  place: string,
  layers: readonly SharedCheckout[],
): Promise<void> {
  const record = layers.map(({ name, mirror, url, sha, directory, sparse, usesLfs }): Layer => {
    return { name, mirror, url, sha, directory, sparse, usesLfs };
  });
  await replaceFile(recordIn(place), JSON.stringify(record));
  await mount(checkouts, place, record);
}

/** @throws SessionError sandbox_unavailable */
async function mount({ layerOf }: SharedCheckouts, place: string, layers: readonly Layer[]): Promise<void> {
  const folders = layers.map(({ name }) => layerOf(name));
  try {
    await mountOverlay(place, folders);
  } catch (error) {
    const { stderr = "" } = error as { stderr?: string };
    throw new SessionError({
      code: "sandbox_unavailable",
      reason: `This worker could not mount a session's workspace: ${(stderr.trim() || messageOf(error)).slice(-500)}`,
      retryable: true,
      remedy: "Run `offstage doctor` on the worker, which tries it, or set OFFSTAGE_WORKSPACES=checkout.",
    });
  }
}

/** Names of the checkouts that workspaces are laid on at this moment. */
export async function layersInUse({ sessions }: Pick<SharedCheckouts, "sessions">): Promise<Set<string>> {
  const places = (await overlaysBelow(sessions)).map((workspace) => dirname(workspace));
  const layers = await Promise.all(places.map(readLayers));
  return new Set(layers.flatMap((each) => each ?? []).map(({ name }) => name));
}

/** Dependencies for opening a workspace again. */
export interface LayerServices {
  readonly checkouts: SharedCheckouts;
  /** Folder of the mirrors, from which checkouts are made again. */
  readonly mirrors: string;
  readonly bounds: DiskBounds;
  readonly sandbox: Pick<Sandbox, "makeWritable">;
}

/**
 * Mounts a place's workspace again, if it is an overlay and is not mounted: after a restart of the machine, for example. A checkout that
 * is gone is made again from its mirror, equal to what it was.
 * @returns false if that is not possible any more: the workspace is then lost
 */
export async function openWorkspace(services: LayerServices, place: string, signal: AbortSignal): Promise<boolean> {
  const { checkouts, sandbox } = services;
  const layers = await readLayers(place);
  if (layers === null) return true;
  const workspace = join(place, "workspace");
  const isMounted = await isOverlay(workspace);
  const isThere = await Promise.all(
    layers.map(async ({ name }) => (await readSharedCheckout(checkouts, name)) !== null),
  );
  if (isMounted && isThere.every(Boolean)) return true;
  // A checkout was removed by hand: the mount no longer shows its files.
  if (isMounted && !(await unmountOverlays(workspace, { lazily: false }))) return false;
  return whileAllUsed(services, layers, async () => {
    for (const layer of layers) if (!(await hasCheckout(services, layer, signal))) return false;
    // Another session may have been given the user id of this one since.
    await sandbox.makeWritable(changesIn(place));
    await mount(checkouts, place, layers);
    return true;
  });
}

async function whileAllUsed<T>(services: LayerServices, layers: readonly Layer[], work: () => Promise<T>): Promise<T> {
  const [first, ...others] = layers;
  if (first === undefined) return work();
  const { checkouts } = services;
  const path = dirname(checkouts.layerOf(first.name));
  return checkouts.use.whileUsed(path, () => whileAllUsed(services, others, work));
}

/** Makes a checkout again if it is gone. @returns whether it is there */
async function hasCheckout(services: LayerServices, layer: Layer, signal: AbortSignal): Promise<boolean> {
  const { checkouts, mirrors, bounds } = services;
  const { name, usesLfs, ...source } = layer;
  if ((await readSharedCheckout(checkouts, name)) === null) {
    const mirror = join(mirrors, source.mirror);
    if (!existsSync(mirror) || !(await hasCommit(source.sha, { cwd: mirror, signal }))) return false;
    if (usesLfs && !(await hasContents(mirror, source, signal))) return false;
    await ensureCheckout({ checkouts, mirror, bounds, signal }, name, source);
  }
  await markUsed(checkouts, name);
  return true;
}

/** Whether a mirror's store has the contents of all files in LFS that are checked out. */
async function hasContents(mirror: string, { sha, sparse }: CheckoutSource, signal: AbortSignal): Promise<boolean> {
  const commit = await sparseCommit({ folders: sparse }, sha, { cwd: mirror, signal });
  const names = await namesInLfs(mirror, commit, signal);
  return names !== null && names.every((oid) => existsSync(lfsPath(lfsStore(mirror), oid)));
}
