import { createHash } from "node:crypto";
import { createWriteStream } from "node:fs";
import { pipeline } from "node:stream/promises";
import { createGunzip, createGzip } from "node:zlib";
import { stageFunction } from "../clones/stage.ts";
import { authorVariables } from "../git/git.ts";
import { atMost } from "../sandboxed/at-most.ts";
import { inside, type InsideCommand, type InsidePlace, type InsideRun } from "../sandboxed/inside.ts";

/** What the pieces of a checkpoint are made with. */
type Run = InsideRun & { readonly dependencies: { readonly checkpointBytes: number } };

const sizeLimit = ({ dependencies }: Run) => atMost(dependencies.checkpointBytes, "OFFSTAGE_CHECKPOINT_MB");

/**
 * Commits everything in the folder on top of the agent's HEAD, and writes the new objects as a pack to stdout. The agent keeps
 * working meanwhile, so its index, refs and objects are not changed. If it broke its repository, its files are taken all the
 * same, as when the work is collected.
 */
const packScript = `
set -eu
${stageFunction}
scratch="$HOME/pack"
rm -rf "$scratch"
mkdir -p "$scratch/objects"
if head="$(git rev-parse --verify --quiet HEAD)" && git merge-base "$head" "$OFFSTAGE_BASE" > /dev/null 2>&1; then
  own="$(git rev-parse --absolute-git-dir)"
  if [ -f "$own/index" ]; then cp "$own/index" "$scratch/index"; fi
  objects="$(git rev-parse --path-format=absolute --git-path objects)"
else
  head="$OFFSTAGE_BEFORE"
  objects="$OFFSTAGE_MIRROR"
  export GIT_DIR="$scratch/repository" GIT_WORK_TREE="$PWD"
  git init --quiet
fi
export GIT_INDEX_FILE="$scratch/index" GIT_OBJECT_DIRECTORY="$scratch/objects"
export GIT_ALTERNATE_OBJECT_DIRECTORIES="$objects:$OFFSTAGE_KEPT:$OFFSTAGE_MIRROR"
stage
tree="$(git write-tree)"
if [ "$head $tree" != "$OFFSTAGE_LAST" ]; then
  commit="$(git commit-tree "$tree" -p "$head" -m checkpoint)"
  printf '%s\\n' "$commit" $(printf '^%s ' $OFFSTAGE_KNOWN) | git pack-objects --quiet --revs --thin --stdout
  echo "offstage-checkpoint $head $commit $tree" >&2
fi
rm -rf "$scratch"`;

/** What a repository's checkpoint builds on. */
export interface PackRequest {
  /**
   * Object folders outside the clone: of the mirror, and (`kept`) of the earlier checkpoints. `known` are the commits in them.
   */
  readonly mirror: string;
  readonly kept: string;
  readonly known: readonly string[];
  readonly baseSha: string;
  /** The commit where the work began: taken for HEAD if the agent's HEAD does not share this history. */
  readonly headSha: string;
  /** The last checkpoint; nothing is packed if HEAD and tree are still the same. */
  readonly last: { readonly head: string; readonly tree: string } | null;
}

/**
 * Commits and tree of a packed checkpoint: the agent's HEAD, the commit on top of it with all files, and that commit's tree.
 */
export interface PackedWork {
  readonly head: string;
  readonly commit: string;
  readonly tree: string;
}

/**
 * Packs what a repository's folder has beyond the known commits into `file`; null if nothing changed.
 * @throws TooLargeError if the pack exceeds OFFSTAGE_CHECKPOINT_MB
 * @throws RunError resources_exhausted; Error if the script fails
 */
export async function packWork(
  run: Run,
  place: InsidePlace,
  request: PackRequest,
  file: string,
): Promise<PackedWork | null> {
  const environment = {
    ...authorVariables({ name: "Offstage", email: "offstage@localhost" }),
    OFFSTAGE_BASE: request.baseSha,
    OFFSTAGE_BEFORE: request.headSha,
    OFFSTAGE_KNOWN: request.known.join(" "),
    OFFSTAGE_MIRROR: request.mirror,
    OFFSTAGE_KEPT: request.kept,
    OFFSTAGE_LAST: request.last === null ? "" : `${request.last.head} ${request.last.tree}`,
  };
  const said = await inside(run, place, { command: "sh", arguments: ["-c", packScript], environment }, (child) =>
    pipeline(child.stdout, sizeLimit(run), createWriteStream(file, { mode: 0o600 })),
  );
  const name = "([0-9a-f]{40,64})";
  const [, head, commit, tree] = new RegExp(`^offstage-checkpoint ${name} ${name} ${name}$`, "mu").exec(said) ?? [];
  return head === undefined || commit === undefined || tree === undefined ? null : { head, commit, tree };
}

/**
 * Copies the files of a harness's memory: a SQLite database with SQLite's online backup, since it may be in use; the rest as it
 * is. Patterns are paths below the home whose last part may contain `*`.
 */
const copyScript = `
const { copyFileSync, lstatSync, mkdirSync, openSync, readSync, closeSync, readdirSync, rmSync } = require("node:fs");
const { spawnSync } = require("node:child_process");
const { basename, dirname, join } = require("node:path");
const home = process.env.HOME;
const target = join(home, ".offstage/state");
const [tar, ...patterns] = process.argv.slice(1);
const gone = (error) => { if (error.code !== "ENOENT") throw error; };
function isDatabase(path) {
  const head = Buffer.alloc(16);
  const file = openSync(path, "r");
  try { readSync(file, head, 0, 16, 0); } finally { closeSync(file); }
  return head.toString("latin1") === "SQLite format 3\\0";
}
async function copyDatabase(from, to) {
  const { backup, DatabaseSync } = require("node:sqlite");
  const database = new DatabaseSync(from);
  try { await backup(database, to, { rate: 1000000 }); } finally { database.close(); }
}
async function copy(from, to) {
  const found = lstatSync(from);
  if (found.isDirectory()) {
    for (const name of readdirSync(from)) await copy(join(from, name), join(to, name)).catch(gone);
  } else if (found.isFile() && !/-(?:wal|shm|journal)$/.test(from)) {
    mkdirSync(dirname(to), { recursive: true });
    if (isDatabase(from)) await copyDatabase(from, to);
    else copyFileSync(from, to);
  }
}
(async () => {
  rmSync(target, { recursive: true, force: true });
  mkdirSync(target, { recursive: true });
  for (const pattern of patterns) {
    const folder = join(home, dirname(pattern));
    const wanted = new RegExp("^" + basename(pattern).replace(/[.+?^$(){}|[\\]\\\\]/g, "\\\\$&").replace(/\\*/g, ".*") + "$");
    let names = [];
    try { names = readdirSync(folder); } catch (error) { gone(error); }
    for (const name of names.filter((candidate) => wanted.test(candidate))) {
      await copy(join(folder, name), join(target, dirname(pattern), name)).catch(gone);
    }
  }
  const { status } = spawnSync("tar", [...tar.split(" "), "--directory=" + target, "."], { stdio: "inherit" });
  rmSync(target, { recursive: true, force: true });
  process.exitCode = status ?? 1;
})();`;

const tarOptions = "--sort=name --mtime=@0 --create --file=-";

/** Writes the files of a harness's memory into `file`, as a gzipped tar. @returns the SHA-256 of the tar */
export function archiveState(run: Run, place: InsidePlace, state: readonly string[], file: string): Promise<string> {
  const parameters = ["--no-warnings", "-e", copyScript, "--", tarOptions, ...state];
  return archive(run, place, { command: process.execPath, arguments: parameters }, file);
}

/** Writes all files of a workspace without a repository into `file`, as a gzipped tar. @returns the SHA-256 of the tar */
export function archiveFiles(run: Run, place: InsidePlace, file: string): Promise<string> {
  // tar's exit code 1: a file changed while it was read; the next checkpoint has it.
  const script = `tar ${tarOptions} . || [ $? -eq 1 ]`;
  return archive(run, place, { command: "sh", arguments: ["-c", script] }, file);
}

async function archive(run: Run, place: InsidePlace, command: InsideCommand, file: string): Promise<string> {
  const hash = createHash("sha256");
  await inside(run, place, command, (child) => {
    child.stdout.on("data", (chunk: Buffer) => hash.update(chunk));
    return pipeline(child.stdout, sizeLimit(run), createGzip({ level: 1 }), createWriteStream(file, { mode: 0o600 }));
  });
  return hash.digest("hex");
}

/**
 * Unpacks a gzipped tar into the home or the workspace. It runs inside the sandbox, where it can overwrite only the session's
 * own files.
 */
export async function unpackArchive(
  run: Run,
  place: InsidePlace,
  content: NodeJS.ReadableStream,
  into: "home" | "workspace",
): Promise<void> {
  const parameters = ["--extract", "--file=-", "--no-same-owner", `--directory=${place[into]}`];
  await inside(run, place, { command: "tar", arguments: parameters }, async (child) => {
    child.stdout.resume();
    await pipeline(content, createGunzip(), child.stdin).catch((error: NodeJS.ErrnoException) => {
      // tar may end before it has read the padding; its exit code tells whether it failed.
      if (error.code !== "EPIPE" && error.code !== "ECONNRESET" && error.code !== "ERR_STREAM_PREMATURE_CLOSE")
        throw error;
    });
  });
}
