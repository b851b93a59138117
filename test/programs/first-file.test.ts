import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { expect, test } from "vitest";

const root = join(import.meta.dirname, "../..");

/** Runs the packed program's first file with `--version` on a Node that says it is of this version. */
function onNode(version: string): { readonly status: number | null; readonly out: string; readonly err: string } {
  const pretend = `data:text/javascript,Object.defineProperty(process.versions, "node", { value: "${version}" })`;
  const { status, stdout, stderr } = spawnSync(
    process.execPath,
    ["--import", pretend, join(root, "bin/offstage.cjs"), "--version"],
    { encoding: "utf8" },
  );
  return { status, out: stdout, err: stderr };
}

test.each(["0.10.48", "8.17.0", "20.19.4", "22.9.0", "22.17.1"])("Node %s is too old, which is one line", (version) => {
  expect(onNode(version)).toEqual({
    status: 2,
    out: "",
    err: `offstage: Node ${version} is too old: install Node 22.18 or newer, https://nodejs.org/\n`,
  });
});

test.each(["22.18.0", "24.0.0", "100.1.2"])("on Node %s the program runs", (version) => {
  expect(onNode(version)).toEqual({ status: 0, out: "0.1.0\n", err: "" });
});
