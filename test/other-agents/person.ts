import { spawn, type ChildProcessWithoutNullStreams } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";

export const main = join(import.meta.dirname, "../../src/main.ts");

/** A person's home and clone, in which commands run as in their shell. */
export interface Person {
  readonly home: string;
  readonly clone: string;
  readonly environment: Record<string, string>;
  git(...parameters: string[]): Promise<string>;
  /** Starts `offstage` in the clone. */
  start(...parameters: string[]): ChildProcessWithoutNullStreams;
  run(argv: string[], input?: string): Promise<Ended>;
  leave(): Promise<void>;
}

export interface Ended {
  readonly code: number | null;
  readonly out: string;
  readonly err: string;
}

/** @param options.url of the repository that is cloned, with credentials */
export async function createPerson(options: {
  readonly url: string;
  readonly variables: Record<string, string>;
}): Promise<Person> {
  const home = await mkdtemp(join(tmpdir(), "offstage-person-"));
  const clone = join(home, "clone");
  const environment = {
    PATH: process.env["PATH"] ?? "",
    HOME: home,
    GIT_AUTHOR_NAME: "Ada",
    GIT_AUTHOR_EMAIL: "ada@example.com",
    GIT_COMMITTER_NAME: "Ada",
    GIT_COMMITTER_EMAIL: "ada@example.com",
    ...options.variables,
  };
  const git = async (cwd: string, parameters: readonly string[]): Promise<string> => {
    const { code, out, err } = await ended(spawn("git", parameters, { cwd, env: environment }), "");
    if (code !== 0) throw new Error(err);
    return out.trim();
  };
  await git(home, ["clone", "--quiet", options.url, clone]);
  const start = (...parameters: string[]): ChildProcessWithoutNullStreams =>
    spawn(process.execPath, [main, ...parameters], { cwd: clone, env: environment });
  return {
    home,
    clone,
    environment,
    git: (...parameters) => git(clone, parameters),
    start,
    run: (argv, input = "") => ended(start(...argv), input),
    leave: () => rm(home, { recursive: true, force: true }),
  };
}

export function ended(child: ChildProcessWithoutNullStreams, input: string): Promise<Ended> {
  let out = "";
  let err = "";
  child.stdout.on("data", (chunk: Buffer) => (out += chunk.toString()));
  child.stderr.on("data", (chunk: Buffer) => (err += chunk.toString()));
  // A command that reads nothing may be over before its input is written.
  child.stdin.on("error", () => {}).end(input);
  return new Promise((resolve) => child.once("close", (code) => resolve({ code, out, err })));
}
