/* Prints what a container can verify of itself from inside, as JSON: its memory limit, whether it can write, whether it has git. */
const { spawnSync } = require("node:child_process");
const { readFileSync, writeFileSync } = require("node:fs");

function attempt(work) {
  try {
    return work();
  } catch {
    return null;
  }
}

const limits = ["/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"];
const memory =
  limits.map((file) => attempt(() => Number(readFileSync(file, "utf8")))).find((limit) => limit !== null) ?? null;
const wrote =
  attempt(() => {
    writeFileSync("works", "");
    return true;
  }) === true;
const git = spawnSync("git", ["--version"]).status === 0;
process.stdout.write(JSON.stringify({ memory, wrote, git }));
