import { pipeline } from "node:stream";
import { serveStdio, StdioServerTransport } from "@modelcontextprotocol/server/stdio";
import type { Client } from "../client.ts";
import { exactLines } from "./exact-lines.ts";
import { createOffstageMcp } from "./server.ts";
import { loadSkills } from "./skills.ts";

/**
 * Serves MCP on this process's stdin and stdout, in both current revisions of the protocol, until stdin ends or the signal aborts.
 * Nothing else may write to stdout meanwhile.
 */
export async function serveMcpOnStdio(options: {
  readonly client: Client;
  readonly version: string;
  readonly signal: AbortSignal;
  readonly onError: (error: Error) => void;
}): Promise<void> {
  const { client, version, signal, onError } = options;
  const skills = await loadSkills();
  // Ends with stdin, and stdin with it.
  const lines = pipeline(process.stdin, exactLines(), () => undefined);
  const over = new Promise<void>((resolve) => {
    lines.once("end", resolve);
    lines.once("close", resolve);
    signal.addEventListener("abort", () => resolve(), { once: true });
  });
  const handle = serveStdio(() => createOffstageMcp({ client, version, caller: null, skills, onError }), {
    onerror: onError,
    transport: new StdioServerTransport(lines),
  });
  await over;
  await handle.close();
  lines.destroy();
}
