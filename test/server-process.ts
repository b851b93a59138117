import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { createClient, type Client } from "../src/client.ts";
import { adminKey, type World } from "./world.ts";

/** This tree. */
const own = join(import.meta.dirname, "..");

/** Offstage as a process of its own, as an operator runs it, so that it can be killed. */
export interface ServerProcess {
  readonly client: Client;
  readonly url: string;
  readonly pid: number;
  /** Everything it printed so far, on both streams. */
  output(): string;
  kill(signal: NodeJS.Signals): Promise<void>;
}

/**
 * Starts it and waits until it says where it answers, or that it works. @throws with its output when it ends before
 * @param command `start`, or one side of a fleet
 * @param tree where its program is: this one, or another version's
 * @param program what Node starts there
 */
export async function startServerProcess(
  world: Pick<World, "variables">,
  overrides: Record<string, string> = {},
  command: "start" | "api" | "worker" = "start",
  tree = own,
  program = "src/main.ts",
): Promise<ServerProcess> {
  const child = spawn(process.execPath, [join(tree, program), command], {
    env: { ...world.variables, ...overrides },
    stdio: ["ignore", "pipe", "pipe"],
  });
  let output = "";
  child.stderr.on("data", (chunk: Buffer) => (output += chunk.toString()));
  const url = await new Promise<string>((resolve, reject) => {
    child.stdout.on("data", (chunk: Buffer) => {
      output += chunk.toString();
      const found = /answers at (http:\/\/\S+)/u.exec(output)?.[1];
      if (found !== undefined) resolve(found);
      // The version before said it in other words.
      if (/The worker is running|Offstage works/u.test(output)) resolve("");
    });
    child.once("exit", (code) => reject(new Error(`the server ended with ${code}:\n${output}`)));
  });
  return {
    client: createClient({ baseUrl: url, key: adminKey }),
    url,
    pid: child.pid ?? 0,
    output: () => output,
    kill: (signal) => end(child, signal),
  };
}

async function end(child: ChildProcess, signal: NodeJS.Signals): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const ended = once(child, "exit");
  child.kill(signal);
  await ended;
}
