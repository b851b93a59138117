/*
 * Deletes each file in the home, and each file in the clone (the working directory) outside `.git`, that contains one
 * of the lines on stdin, and prints their names as JSON. In `.git` only submodules are searched, since nothing else of
 * it is archived. Names are kept as bytes: they need be no UTF-8.
 */
const { spawnSync } = require("node:child_process");
const { existsSync, readFileSync, rmSync, writeFileSync } = require("node:fs");

const needles = "/tmp/offstage-needles";
const home = process.env.HOME;
const grep = ["grep", "-rlFZ", "--devices=skip", "-f", needles, "--"];
// grep's code 1: nothing found (grep(1)). Anything else means that not all was searched.
const judged = ["sh", "-c", '"$@" || [ $? = 1 ]', "sh"];

/** Runs a search. @returns the names that it prints */
function search([command, ...parameters]) {
  const options = { maxBuffer: 64 * 1024 * 1024, stdio: ["ignore", "pipe", "pipe"] };
  const { error, signal, status, stderr, stdout } = spawnSync(command, parameters, options);
  if (error) throw error;
  if (status !== 0) throw new Error(`the search ended with ${signal ?? status}: ${stderr}`);
  const names = [];
  for (let start = 0, end = stdout.indexOf(0); end !== -1; start = end + 1, end = stdout.indexOf(0, start))
    names.push(stdout.subarray(start, end));
  return names;
}

writeFileSync(needles, readFileSync(0));
const inClone = ["find", ".", "-mindepth", "1", "-maxdepth", "1", "!", "-name", ".git", "-exec"];
const others = [".git/modules", home].filter((root) => existsSync(root));
const files = [...search([...inClone, ...judged, ...grep, "{}", "+"]), ...search([...judged, ...grep, ...others])];
for (const file of files) rmSync(file, { force: true });
process.stdout.write(JSON.stringify(files.map((file) => file.toString().replace(home, "~"))));
