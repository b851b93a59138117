import { execFileSync, spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { buffer, text } from "node:stream/consumers";
import { afterEach, beforeEach } from "vitest";
import { testEnvironment } from "../test-environment.ts";

/** Shells of this machine that are some image's `sh`, to be started under that name: bash then keeps to POSIX. */
export const shells = ["dash", "bash"].filter((shell) => {
  try {
    execFileSync(shell, ["-c", "true"]);
    return true;
  } catch {
    return false;
  }
});

interface ProgramRun {
  readonly cwd: string;
  readonly arguments?: readonly string[];
  readonly environment?: Readonly<Record<string, string>>;
  readonly input?: string | Buffer;
  /** For a shell program; `sh` if omitted. */
  readonly shell?: string;
  /** Command that starts the program, if something stands around it. */
  readonly within?: readonly string[];
}

/** How a program ended, and what it wrote. */
export interface ProgramEnd {
  readonly code: number | null;
  readonly stdout: Buffer;
  readonly stderr: string;
}

/** The text of programs below `src`, put together in this order. */
export function textOf(...programs: readonly string[]): string {
  return programs.map((program) => readFileSync(join(import.meta.dirname, "../../src", program), "utf8")).join("\n");
}

/** Runs programs below `src` as a sandbox does: their text is an argument, and the environment has only what is named. */
export async function runProgram(programs: string | readonly string[], run: ProgramRun): Promise<ProgramEnd> {
  const files = typeof programs === "string" ? [programs] : programs;
  const isShell = files[0]?.endsWith(".sh") === true;
  const isPerl = files[0]?.endsWith(".pl") === true;
  const interpreter = isPerl ? ["perl", "-e"] : [process.execPath, "--no-warnings", "-e"];
  const start = [...(run.within ?? []), ...(isShell ? [run.shell ?? "sh", "-c"] : interpreter)];
  const [command = "", ...parameters] = [...start, textOf(...files), isShell ? "sh" : "--", ...(run.arguments ?? [])];
  const child = spawn(command, parameters, {
    ...(isShell && { argv0: "sh" }),
    cwd: run.cwd,
    env: { ...testEnvironment(), ...run.environment },
  });
  child.stdin.on("error", () => undefined).end(run.input ?? "");
  const ended = new Promise<number | null>((resolve) => child.once("close", resolve));
  const [stdout, stderr, code] = await Promise.all([buffer(child.stdout), text(child.stderr), ended]);
  return { code, stdout, stderr };
}

/** An empty folder for each test of a file. */
export function useFolder(): { readonly path: string } {
  const folder = { path: "" };
  beforeEach(async () => {
    folder.path = await mkdtemp(join(tmpdir(), "offstage-program-"));
  });
  afterEach(() => rm(folder.path, { recursive: true, force: true }));
  return folder;
}
