import { execFileSync, spawnSync } from "node:child_process";
import { createServer, type AddressInfo, type Server } from "node:net";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { runProgram, shells, textOf, useFolder } from "./run.ts";

const folder = useFolder();
let server: Server;
/** Of an address where something listens, and of one where nothing does. */
let [open, closed] = ["", ""];

beforeEach(async () => {
  const listen = async (): Promise<Server> => {
    const made = createServer((one) => one.destroy());
    await new Promise<void>((resolve) => made.listen(0, "127.0.0.1", resolve));
    return made;
  };
  const addressOf = (made: Server): string => `127.0.0.1/${(made.address() as AddressInfo).port}`;
  server = await listen();
  const gone = await listen();
  [open, closed] = [addressOf(server), addressOf(gone)];
  await new Promise((resolve) => gone.close(resolve));
});
afterEach(() => void server.close());

describe.runIf(shells.includes("bash"))("try-network.sh", () => {
  const bash = execFileSync("sh", ["-c", "command -v bash"], { encoding: "utf8" }).trim();
  /** Runs it as handshake.sh does, without a program on the PATH. @returns its lines */
  function run(...addresses: readonly string[]): string[] {
    const command = ["-p", "-c", textOf("sandboxes/container/try-network.sh"), "bash", ...addresses];
    const { stdout, stderr } = spawnSync(bash, command, {
      encoding: "utf8",
      env: { PATH: "/nowhere" },
      stdio: ["ignore", "pipe", "pipe"],
    });
    expect(stderr).toBe("");
    return stdout.trimEnd().split("\n");
  }

  test("says of each address whether it could connect, without another process", () => {
    expect(run(open)).toEqual([`/dev/tcp/${open}: connected`]);
    const lines = run(closed, open);
    expect(lines.at(-1)).toBe(`/dev/tcp/${open}: connected`);
    expect(lines.slice(0, -1).join("\n")).toContain(`/dev/tcp/${closed}: Connection refused`);
  });
});

describe("try-network.cjs", () => {
  test("says of each address whether it could connect", async () => {
    const run = { cwd: folder.path, arguments: [closed, open] };
    const { stdout, code } = await runProgram("sandboxes/container/try-network.cjs", run);
    const lines = stdout.toString().trimEnd().split("\n");
    expect(lines.toSorted()).toEqual([`/dev/tcp/${closed}: ECONNREFUSED`, `/dev/tcp/${open}: connected`].toSorted());
    expect(code).toBe(0);
  });
});
