import { existsSync } from "node:fs";
import { access, mkdir, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { Readable } from "node:stream";
import { git, type GitOptions } from "../git.ts";
import type { FetchTurns } from "./fetch-turns.ts";

// A mirror can be damaged: by a loss of power, a disk that fails, or a person. Nothing in it is nowhere else but what sessions exported and
// could not push yet, which their clones have too. So what can't be read is removed, and the next fetch brings all of it again.

/** Name of a file in a mirror that is to be mended before it is used. */
const damagedMark = "offstage-damaged";
/** Name of a file in a mirror of which objects were removed: the next fetch takes everything. */
const lackingMark = "offstage-lacking";

/** Has a mirror mended before it is used again. @param path of the mirror, which may not exist */
export async function markDamaged(path: string): Promise<void> {
  await writeFile(join(path, damagedMark), "").catch(() => undefined);
}

/** Whether objects of a mirror were removed: a commit may be there without its files. */
export function lacksObjects(path: string): boolean {
  return existsSync(join(path, lackingMark));
}

/** Records that a mirror has all objects again. */
export async function completed(path: string): Promise<void> {
  await rm(join(path, lackingMark), { force: true });
}

/** Mends a mirror that was marked. Of sessions that begin with it at the same time one does that, and the others wait. */
export async function mendIfDamaged(
  { path, turns }: { readonly path: string; readonly turns?: FetchTurns },
  signal: AbortSignal,
): Promise<void> {
  const isMarked = (): boolean => existsSync(join(path, damagedMark));
  if (!isMarked()) return;
  const mend = (): Promise<void> => mendMirror(path, signal);
  if (turns === undefined) return mend();
  const mending = {
    mirror: path,
    name: "mend",
    isFirst: false,
    mayRead: () => Promise.resolve(),
    isThere: () => Promise.resolve(!isMarked()),
    fetch: mend,
  };
  await turns.take(mending, () => undefined, signal);
}

/**
 * Removes from a mirror what can't be read: refs, packs, objects. All the rest stays, so that sessions whose clones borrow from it go
 * on. Can be repeated at any time.
 */
async function mendMirror(path: string, signal: AbortSignal): Promise<void> {
  const options: GitOptions = { cwd: path, signal };
  for (const folder of ["refs", "objects/info", "objects/pack"]) await mkdir(join(path, folder), { recursive: true });
  const packed = (await textOf(join(path, "packed-refs"))).split("\n").filter((line) => packedLine.test(line));
  const loose = await looseRefs(path);
  await mendSettings(path, [...packed, ...loose.map(({ sha }) => sha)]);
  await rm(join(path, "objects/pack/multi-pack-index"), { force: true });
  await rm(join(path, "objects/info/commit-graph"), { force: true });
  await rm(join(path, "objects/info/commit-graphs"), { recursive: true, force: true });
  const isLess = (await removePacks(path, options)) || (await removeObjects(path, options));
  // Before the refs, which tell the remote what is there.
  if (isLess) await writeFile(join(path, lackingMark), "");
  const listed = [...packed.map((line) => line.split(" ")[0] ?? ""), ...loose.map(({ sha }) => sha)];
  const lost = await missingOf(listed, options);
  const kept = packed.filter((line) => !lost.has(line.split(" ")[0] ?? ""));
  await writeFile(join(path, "packed-refs"), kept.map((line) => `${line}\n`).join(""));
  for (const { file, sha } of loose) if (sha === "" || lost.has(sha)) await rm(file, { force: true });
  await rm(join(path, damagedMark), { force: true });
}

/** A line of packed refs, without the peeled commits of tags, which git finds by itself (gitrepository-layout(5)). */
const packedLine = /^[0-9a-f]{40,64} refs\/\S+$/u;

/** A mirror's refs that are files; `sha` is empty if the file has none. */
async function looseRefs(path: string): Promise<{ readonly file: string; readonly sha: string }[]> {
  const entries = await readdir(join(path, "refs"), { recursive: true, withFileTypes: true });
  const files = entries.filter((entry) => entry.isFile() && !entry.name.endsWith(".lock"));
  return Promise.all(
    files.map(async (entry) => {
      const file = join(entry.parentPath, entry.name);
      return { file, sha: /^([0-9a-f]{40,64})\n?$/u.exec(await textOf(file))?.[1] ?? "" };
    }),
  );
}

/** Writes HEAD and the settings again if they are lost. @param refs commits of the mirror, which tell its object format */
async function mendSettings(path: string, refs: readonly string[]): Promise<void> {
  if (!(await textOf(join(path, "HEAD"))).startsWith("ref: refs/"))
    await writeFile(join(path, "HEAD"), "ref: refs/heads/main\n");
  if ((await textOf(join(path, "config"))).includes("repositoryformatversion")) return;
  const isSha256 = refs.some((ref) => /^[0-9a-f]{64}/u.test(ref));
  const format = isSha256 ? "1\n\tbare = true\n[extensions]\n\tobjectFormat = sha256\n" : "0\n\tbare = true\n";
  await writeFile(join(path, "config"), `[core]\n\trepositoryformatversion = ${format}`);
}

/** @returns whether any was removed */
async function removePacks(path: string, options: GitOptions): Promise<boolean> {
  const folder = join(path, "objects/pack");
  const names = await readdir(folder);
  const stems = new Set(names.flatMap((name) => /^(pack-[0-9a-f]+)\.(?:pack|idx)$/u.exec(name)?.[1] ?? []));
  let isLess = false;
  for (const stem of stems) {
    const pack = join(folder, `${stem}.pack`);
    const index = join(folder, `${stem}.idx`);
    if (!names.includes(`${stem}.idx`)) await git(["index-pack", pack], options);
    if ((await exists(pack)) && (await git(["verify-pack", index], options)).code === 0) continue;
    isLess = true;
    // The index first: git looks for packs by it.
    for (const name of [`${stem}.idx`, ...names.filter((each) => each.startsWith(`${stem}.`))])
      await rm(join(folder, name), { force: true });
  }
  return isLess;
}

/** Removes objects with a file of their own that can't be read. @returns whether any was removed */
async function removeObjects(path: string, options: GitOptions): Promise<boolean> {
  const folders = (await readdir(join(path, "objects"))).filter((name) => /^[0-9a-f]{2}$/u.test(name));
  const named: string[] = [];
  for (const folder of folders)
    named.push(...(await readdir(join(path, "objects", folder))).map((name) => folder + name));
  const lost = await missingOf(
    named.filter((name) => /^[0-9a-f]{40,64}$/u.test(name)),
    options,
  );
  for (const sha of lost) await rm(join(path, "objects", sha.slice(0, 2), sha.slice(2)), { force: true });
  return lost.size > 0;
}

/** Which of these objects git can't read. */
async function missingOf(shas: readonly string[], options: GitOptions): Promise<ReadonlySet<string>> {
  const asked = shas.filter((sha) => sha !== "");
  if (asked.length === 0) return new Set();
  const input = Readable.from(asked.map((sha) => `${sha}\n`));
  const { stdout } = await git(["cat-file", "--batch-check=%(objectname)"], { ...options, input });
  const found = new Set(stdout.split("\n").filter((line) => /^[0-9a-f]+$/u.test(line)));
  return new Set(asked.filter((sha) => !found.has(sha)));
}

async function textOf(file: string): Promise<string> {
  return readFile(file, "utf8").catch(() => "");
}

function exists(file: string): Promise<boolean> {
  return access(file).then(
    () => true,
    () => false,
  );
}
