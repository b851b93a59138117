import { createHash } from "node:crypto";
import { existsSync } from "node:fs";
import { readFile, utimes } from "node:fs/promises";
import { basename, join } from "node:path";
import { replaceFile } from "../../atomic-file.ts";
import { runProgram } from "../../sandboxes/process/run-program.ts";
import type { Sandbox } from "../../sandboxes/sandbox.ts";
import { bootId } from "../disk/boot-id.ts";
import { namesIn } from "../disk/session-folders.ts";
import { createFolderLock, type FolderLock } from "../git/mirrors/folder-lock.ts";
import { filterCommand } from "../git/lfs/lfs.ts";
import { chooseWay, type ChosenWay, type Way } from "./ways.ts";

// A shared checkout is a commit of a mirror, checked out once on this worker, with a repository around it: what a clone
// is before its session has done anything. Clones begin on it, and it is never written to. No code of the repository
// runs while git makes it.

/** The source of a checkout: equal ones have equal files. */
export interface CheckoutSource {
  /** Name of the mirror's folder. */
  readonly mirror: string;
  /** Of the mirror's remote. */
  readonly url: string;
  readonly sha: string;
  /** The folder in the workspace. */
  readonly directory: string;
  /** Folders that it has; everything, if empty. */
  readonly sparse: readonly string[];
}

/** A shared checkout on this disk. */
export interface SharedCheckout extends CheckoutSource {
  /** Name of its folder. */
  readonly name: string;
  /** Bytes and number of its files, as `addCheckout` counts them. */
  readonly bytes: number;
  readonly files: number;
  readonly usesLfs: boolean;
  readonly hasSubmodules: boolean;
  /** When the machine was started in which it was made (/proc/sys/kernel/random/boot_id); empty if that is not known. */
  readonly boot: string;
}

/** The shared checkouts of a worker's data folder. */
export interface SharedCheckouts {
  /** Folder that holds them all. */
  readonly directory: string;
  /** Folder of the sessions' folders, whose workspaces may be laid on them. */
  readonly sessions: string;
  /** Prevents the removal of one between its choice and its mount. */
  readonly use: FolderLock;
  /** How clones get their files here. It is tried once. */
  way(): Promise<ChosenWay>;
  /** Path of the layer that a checkout is, by its name: the folder that has the clone's folder. */
  layerOf(name: string): string;
  /** Counts a clone that was made. */
  readonly count: (way: Way) => void;
  /** To be called when one was made: it is to be kept, and all together may be too much now. */
  readonly onMade: (name: string) => void;
  /** Those that are being made, by name. */
  readonly making: Map<string, Promise<unknown>>;
}

/**
 * @param options.asked see `chooseWay`
 * @param options.count receives how each clone was made
 * @param options.onMade called with each checkout that was made; see `SharedCheckouts`
 */
export function createSharedCheckouts(options: {
  readonly dataDirectory: string;
  readonly asked: Way | "auto";
  readonly sandbox: Pick<Sandbox, "kind">;
  readonly count?: (way: Way) => void;
  readonly onMade?: (name: string) => void;
}): SharedCheckouts {
  const directory = join(options.dataDirectory, "checkouts");
  let chosen: Promise<ChosenWay> | null = null;
  return {
    directory,
    sessions: join(options.dataDirectory, "sessions"),
    use: createFolderLock(),
    way: () => (chosen ??= chooseWay(directory, options.asked, options.sandbox)),
    layerOf: (name) => join(directory, name, "layer"),
    count: options.count ?? (() => undefined),
    onMade: options.onMade ?? (() => undefined),
    making: new Map(),
  };
}

/** File that describes a checkout; it is written last. */
export const recordFile = "checkout.json";
/** File that is there once the checkout is on the disk. */
const durableMark = "durable";
/** File whose modification time is that of a checkout's last use. */
export const checkoutUsedMark = "used";
/** Raised if what is made differs from what earlier versions made of the same. */
const form = 1;

/**
 * Name of the checkouts that differ by their commit alone. It includes what git runs by their settings, so that a new
 * version of Offstage makes its own.
 */
export function checkoutFamilyOf({ url, directory, sparse }: CheckoutSource, mirrorPath: string): string {
  const parts = [form, basename(mirrorPath), url, directory, [...sparse].toSorted(), filterCommand(mirrorPath)];
  return createHash("sha256").update(JSON.stringify(parts)).digest("hex").slice(0, 24);
}

/** The whole name of a checkout. */
export function nameOf(family: string, sha: string): string {
  return `${family}-${sha}`;
}

/** Names of all checkouts that are whole. */
export async function checkoutNames({ directory }: Pick<SharedCheckouts, "directory">): Promise<string[]> {
  return (await namesIn(directory)).filter((name) => /^[0-9a-f]{24}-[0-9a-f]{40,64}$/u.test(name));
}

/**
 * Reads a checkout by its name.
 * @returns null if there is none, or the machine was started again before it was on the disk: after a loss of power some of its files
 *   may be empty, and would show as changes in every session
 */
export async function readSharedCheckout(
  { directory }: Pick<SharedCheckouts, "directory">,
  name: string,
): Promise<SharedCheckout | null> {
  const text = await readFile(join(directory, name, recordFile), "utf8").catch((error: NodeJS.ErrnoException) => {
    if (error.code === "ENOENT") return "";
    throw error;
  });
  if (text === "") return null;
  const checkout = JSON.parse(text) as SharedCheckout;
  return checkout.boot === (await bootId()) || existsSync(join(directory, name, durableMark)) ? checkout : null;
}

/** Writes a new checkout to the disk, and records that. It takes as long as the disk needs for all that it has not written yet. */
export async function keepCheckout({ directory }: Pick<SharedCheckouts, "directory">, name: string): Promise<void> {
  const folder = join(directory, name);
  await runProgram("sync", ["-f", folder]);
  if (existsSync(join(folder, recordFile))) await replaceFile(join(folder, durableMark), "", { durable: true });
}

/** Records that a checkout is used now. */
export async function markUsed({ directory }: Pick<SharedCheckouts, "directory">, name: string): Promise<void> {
  const now = new Date();
  await utimes(join(directory, name, checkoutUsedMark), now, now);
}
