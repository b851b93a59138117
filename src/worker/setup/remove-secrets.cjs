/*
 * Deletes each file in the home, and each file in the clone (the working directory) outside `.git`, that contains one of the
 * lines on stdin, and prints their names as JSON. Of `.git` only submodules are searched, since nothing else of it is archived.
 */
const { spawnSync } = require("node:child_process");
const { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } = require("node:fs");

const needles = "/tmp/offstage-needles";
const home = process.env.HOME;
writeFileSync(needles, readFileSync(0));
const inClone = readdirSync(".").filter((name) => name !== ".git");
const roots = [...inClone.map((name) => `./${name}`), ".git/modules", home].filter((root) => existsSync(root));
const found = spawnSync("grep", ["-rlFZ", "--devices=skip", "-f", needles, "--", ...roots], {
  maxBuffer: 64 * 1024 * 1024,
  stdio: ["ignore", "pipe", "pipe"],
});
if (found.error) throw found.error;
// 1: nothing found (grep(1)). Anything else means that not all was searched.
if (found.status !== 0 && found.status !== 1)
  throw new Error(`grep ended with ${found.signal ?? found.status}: ${found.stderr}`);
const files = found.stdout
  .toString()
  .split("\0")
  .filter((name) => name !== "");
for (const file of files) rmSync(file, { force: true });
process.stdout.write(JSON.stringify(files.map((file) => file.replace(home, "~"))));
