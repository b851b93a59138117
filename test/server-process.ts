import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { createClient, type Client } from "../src/client.ts";
import { adminKey, type World } from "./world.ts";

const main = join(import.meta.dirname, "../src/main.ts");

/** Offstage as a process of its own, as an operator runs it, so that it can be killed. */
export interface ServerProcess {
  readonly client: Client;
  readonly url: string;
  /** Everything it printed so far, on both streams. */
  output(): string;
  kill(signal: NodeJS.Signals): Promise<void>;
}

/** Starts it and waits until it says where it answers. @throws with its output when it ends before */
export async function startServerProcess(world: World, overrides: Record<string, string> = {}): Promise<ServerProcess> {
  const child = spawn(process.execPath, [main, "start"], {
    env: { ...world.variables, ...overrides },
    stdio: ["ignore", "pipe", "pipe"],
  });
  let output = "";
  child.stderr.on("data", (chunk: Buffer) => (output += chunk.toString()));
  const url = await new Promise<string>((resolve, reject) => {
    child.stdout.on("data", (chunk: Buffer) => {
      output += chunk.toString();
      const found = /http:\/\/127\.0\.0\.1:\d+/u.exec(output);
      if (found !== null) resolve(found[0]);
    });
    child.once("exit", (code) => reject(new Error(`the server ended with ${code}:\n${output}`)));
  });
  return {
    client: createClient({ baseUrl: url, key: adminKey }),
    url,
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
