/*
 * Records how the session's clones are, or undoes what a gate did there. Works in the workspace, and reads as JSON from stdin:
 * `clones`, each with its `directory`, its `branch` and the commit `head` from which it started; `undo`, whether something is to be undone; and
 * `before`, what was printed before the gate, or null if that is not known. Prints how the clones are now.
 * What is undone: the branch and commit that are checked out, changes to tracked files, git's settings of the clone, and new files
 * that git does not ignore, in submodules too. Names are kept as bytes: they need be no UTF-8.
 */
const { spawnSync } = require("node:child_process");
const { existsSync, mkdirSync, readFileSync, rmdirSync, rmSync, writeFileSync } = require("node:fs");
const { dirname, join } = require("node:path");

/** Files of a git directory that say what belongs to the clone, and how. */
const settings = ["config", "config.worktree", "info/attributes", "info/exclude", "info/sparse-checkout"];
/** The files of an unended operation, with which git would refuse to move the branch. */
const unended = [
  "index.lock",
  "HEAD.lock",
  "config.lock",
  "rebase-merge",
  "rebase-apply",
  "sequencer",
  "MERGE_HEAD",
  "MERGE_MODE",
  "MERGE_MSG",
  "SQUASH_MSG",
  "AUTO_MERGE",
  "CHERRY_PICK_HEAD",
  "REVERT_HEAD",
  "BISECT_LOG",
  "BISECT_START",
];

const { clones, before: printed, undo } = JSON.parse(readFileSync(0, "utf8"));
const before = printed === null ? {} : JSON.parse(printed);

/** A path has one character a byte, as what git prints has. */
const bytesOf = (path) => Buffer.from(path, "latin1");

/** Runs git in a folder. @returns what it prints, one character a byte */
function git(folder, ...parameters) {
  const options = {
    cwd: bytesOf(folder).toString("utf8"),
    encoding: "latin1",
    maxBuffer: 1024 ** 3,
    stdio: ["ignore", "pipe", "pipe"],
  };
  const { error, signal, status, stderr, stdout } = spawnSync("git", parameters, options);
  if (error) throw error;
  if (status !== 0) throw new Error(`git ${parameters[0]} ended with ${signal ?? status}: ${stderr}`);
  return stdout;
}

const untrackedIn = (folder) =>
  git(folder, "ls-files", "--others", "--exclude-standard", "-z")
    .split("\0")
    .filter((path) => path !== "");

/** The checked-out submodules in a clone: `[path, commit in the index]`. */
function submodulesIn(folder) {
  const entries = git(folder, "ls-files", "--stage", "-z").split("\0");
  return entries
    .filter((entry) => entry.startsWith("160000 "))
    .map((entry) => [entry.slice(entry.indexOf("\t") + 1), entry.split(" ")[1]])
    .filter(([path]) => existsSync(bytesOf(`${folder}/${path}/.git`)));
}

/** The state of a folder, recorded so that changes there can be undone. */
function record(folder) {
  const gitDirectory = git(folder, "rev-parse", "--absolute-git-dir").replace(/\n$/u, "");
  const contents = settings.map((name) => {
    const file = bytesOf(join(gitDirectory, name));
    return existsSync(file) ? readFileSync(file, "latin1") : null;
  });
  return { gitDirectory, contents, head: git(folder, "rev-parse", "HEAD").trim(), untracked: untrackedIn(folder) };
}

function restoreSettings({ gitDirectory, contents }) {
  for (const [index, name] of settings.entries()) {
    const file = bytesOf(join(gitDirectory, name));
    const content = contents[index];
    if (content !== null && existsSync(file) && readFileSync(file, "latin1") === content) continue;
    rmSync(file, { recursive: true, force: true });
    if (content === null) continue;
    mkdirSync(bytesOf(dirname(join(gitDirectory, name))), { recursive: true });
    writeFileSync(file, content, "latin1");
  }
}

/** Removes the new files, and folders that are empty without them. */
function removeNew(folder, former) {
  const known = new Set(former);
  for (const path of untrackedIn(folder)) {
    if (known.has(path)) continue;
    rmSync(bytesOf(`${folder}/${path}`), { recursive: true, force: true });
    for (let end = path.lastIndexOf("/"); end > 0; end = path.lastIndexOf("/", end - 1)) {
      try {
        rmdirSync(bytesOf(`${folder}/${path.slice(0, end)}`));
      } catch (error) {
        if (error.code === "ENOENT") continue;
        // It has other files.
        break;
      }
    }
  }
}

/** Brings a folder back to a commit. @param branch null: it has none */
function restore(folder, { branch, head, former }) {
  if (former !== undefined) restoreSettings(former);
  const gitDirectory = git(folder, "rev-parse", "--absolute-git-dir").replace(/\n$/u, "");
  const own = branch === null ? [] : [`refs/heads/${Buffer.from(branch).toString("latin1")}.lock`];
  for (const name of [...unended, ...own]) {
    rmSync(bytesOf(join(gitDirectory, name)), { recursive: true, force: true });
  }
  const place = branch === null ? ["--detach", head] : ["--no-track", "-B", branch, head];
  git(folder, "checkout", "--quiet", "--force", "--ignore-other-worktrees", "--no-recurse-submodules", ...place);
  removeNew(folder, former?.untracked ?? []);
}

const now = {};
for (const { directory, branch, head } of clones) {
  const folder = Buffer.from(directory).toString("latin1");
  const former = before[directory];
  if (undo) restore(folder, { branch, head: former?.clone.head ?? head, former: former?.clone });
  const submodules = {};
  for (const [path, sha] of submodulesIn(folder)) {
    const inner = `${folder}/${path}`;
    const formerInner = former?.submodules[path];
    if (undo) restore(inner, { branch: null, head: formerInner?.head ?? sha, former: formerInner });
    submodules[path] = record(inner);
  }
  now[directory] = { clone: record(folder), submodules };
}
if (undo) rmSync(join(process.env.HOME, ".offstage"), { recursive: true, force: true });
process.stdout.write(JSON.stringify(now));
