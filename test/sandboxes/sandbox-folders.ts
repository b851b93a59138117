import { readdirSync, readFileSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { text } from "node:stream/consumers";
import { afterAll, beforeAll } from "vitest";
import type { Sandbox, SandboxRequest } from "../../src/sandboxes/sandbox.ts";
import { hangTimeoutMs } from "../hang-timeout.ts";
import { DidNotRunError, marked } from "./did-run.ts";

/** A workspace and a home for each test of a suite. */
export function useSandboxFolders(sandbox: Sandbox) {
  const place = { data: "", workspace: "", home: "" };
  beforeAll(async () => {
    place.data = await mkdtemp(join(tmpdir(), "offstage-sandbox-"));
    place.workspace = join(place.data, "workspace");
    place.home = join(place.data, "private");
    await sandbox.makeWritable(place.workspace);
    await sandbox.makeWritable(place.home);
  });
  afterAll(() => rm(place.data, { recursive: true, force: true }));
  const request = (script: string, overrides: Partial<SandboxRequest> = {}): SandboxRequest => ({
    command: "sh",
    arguments: ["-c", script],
    environment: {},
    workspace: place.workspace,
    home: place.home,
    readOnly: [dirname(process.execPath)],
    signal: AbortSignal.timeout(hangTimeoutMs),
    ...overrides,
  });
  return {
    get data() {
      return place.data;
    },
    get workspace() {
      return place.workspace;
    },
    get home() {
      return place.home;
    },
    request,
    /** @returns what it printed. @throws DidNotRunError if nothing ran; Error with its words if it failed */
    async run(script: string, overrides: Partial<SandboxRequest> = {}): Promise<string> {
      const { script: wrapped, read } = marked(script);
      const child = sandbox.start(request(wrapped, overrides));
      child.stdin.end();
      const [said, printed, { code }] = await Promise.all([text(child.stdout), text(child.stderr), child.exited]);
      const complained = read(printed);
      if (code !== 0) throw new Error(`exit ${code}: ${complained}`);
      return said.trim();
    },
  };
}

/** A number of seconds that no other process of the machine sleeps. */
export function uniqueMark(): string {
  return `1${String(process.hrtime.bigint()).slice(-9)}`;
}

export function commandLines(): string[] {
  return readdirSync("/proc")
    .filter((name) => /^\d+$/u.test(name))
    .map((pid) => {
      try {
        return readFileSync(`/proc/${pid}/cmdline`, "utf8").replaceAll("\0", " ");
      } catch {
        return "";
      }
    });
}

export function running(mark: string): string[] {
  return commandLines().filter((line) => line.startsWith(`sleep ${mark}`));
}

/** Waits until a command that prints a line once it runs did so. @throws DidNotRunError if it ended before */
export async function firstLine(stream: AsyncIterable<unknown>): Promise<void> {
  for await (const chunk of stream) if (String(chunk).includes("\n")) return;
  throw new DidNotRunError("did not run: it ended without a line");
}
