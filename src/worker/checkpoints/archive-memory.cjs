/*
 * Writes the files of a harness's memory to stdout, as a tar whose bytes depend only on them. It copies them first: a SQLite
 * database with SQLite's online backup, since it may be in use; the rest as it is.
 * Arguments: patterns, which are paths below the home whose last part may contain `*`.
 */
const { spawnSync } = require("node:child_process");
const { closeSync, copyFileSync, lstatSync, mkdirSync, openSync, readSync, readdirSync, rmSync } = require("node:fs");
const { basename, dirname, join } = require("node:path");

const home = process.env.HOME;
const target = join(home, ".offstage/state");

/** A file that the harness has deleted in the meantime is no longer part of its memory. */
function ignoreMissing(error) {
  if (error.code !== "ENOENT") throw error;
}

function isDatabase(path) {
  const head = Buffer.alloc(16);
  const file = openSync(path, "r");
  try {
    readSync(file, head, 0, 16, 0);
  } finally {
    closeSync(file);
  }
  return head.toString("latin1") === "SQLite format 3\0";
}

async function copyDatabase(from, to) {
  const { backup, DatabaseSync } = require("node:sqlite");
  const database = new DatabaseSync(from);
  try {
    await backup(database, to, { rate: 1_000_000 });
  } finally {
    database.close();
  }
}

async function copy(from, to) {
  const found = lstatSync(from);
  if (found.isDirectory()) {
    for (const name of readdirSync(from)) await copy(join(from, name), join(to, name)).catch(ignoreMissing);
  } else if (found.isFile() && !/-(?:wal|shm|journal)$/u.test(from)) {
    mkdirSync(dirname(to), { recursive: true });
    if (isDatabase(from)) await copyDatabase(from, to);
    else copyFileSync(from, to);
  }
}

/** Names in a folder of the home that match a pattern's last part. */
function namesMatching(pattern) {
  const literal = basename(pattern).replaceAll(/[.+?^$(){}|[\]\\]/gu, String.raw`\$&`);
  const matching = new RegExp(`^${literal.replaceAll("*", ".*")}$`, "u");
  try {
    return readdirSync(join(home, dirname(pattern))).filter((name) => matching.test(name));
  } catch (error) {
    ignoreMissing(error);
    return [];
  }
}

async function main() {
  rmSync(target, { recursive: true, force: true });
  mkdirSync(target, { recursive: true });
  for (const pattern of process.argv.slice(1)) {
    for (const name of namesMatching(pattern)) {
      await copy(join(home, dirname(pattern), name), join(target, dirname(pattern), name)).catch(ignoreMissing);
    }
  }
  const options = ["--sort=name", "--mtime=@0", "--create", "--file=-", `--directory=${target}`, "."];
  const { status } = spawnSync("tar", options, { stdio: "inherit" });
  rmSync(target, { recursive: true, force: true });
  process.exitCode = status ?? 1;
}

void main();
