import { execFile, spawn } from "node:child_process";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { promisify } from "node:util";
import { authorVariables, sandboxGitVariables } from "../../src/worker/git/git.ts";
import { testEnvironment } from "../test-environment.ts";

const runFile = promisify(execFile);

/** Names that a shell, git or a list of lines can take for something else; the last is no UTF-8. */
export const awkwardNames = [
  "new\nline",
  "carriage\r",
  "it's",
  'say "b"',
  "back\\slash",
  "-rf",
  "--help",
  " space at both ends ",
  "#comment",
  "!not",
  "star*[a]?",
  "$(echo x)",
  "tab\there",
  "ü",
]
  .map((name) => Buffer.from(name))
  .concat(Buffer.from("latin1 \xfc", "latin1"));

/** A repository with one commit of the file `a` on the branch `work`, and a bare mirror that has this commit. */
export interface Repository {
  readonly path: string;
  readonly home: string;
  readonly mirror: string;
  /** The first commit. */
  readonly base: string;
  /** The environment of programs among a session's files. */
  readonly environment: Readonly<Record<string, string>>;
  /** The path of a file in it. */
  pathOf(name: string | Buffer): Buffer;
  /** Runs shell commands in it. */
  run(commands: string): Promise<string>;
  git(...parameters: readonly string[]): Promise<string>;
  gitInMirror(...parameters: readonly string[]): Promise<string>;
}

/** @param folder where the repository, its mirror and a home are made */
export async function createRepository(folder: string, name = "clone"): Promise<Repository> {
  const [path, home, mirror] = [name, "home", `${name}.git`].map((part) => join(folder, part)) as [
    string,
    string,
    string,
  ];
  await Promise.all([path, home].map((one) => mkdir(one, { recursive: true })));
  const environment = { ...sandboxGitVariables(home), ...authorVariables({ name: "A", email: "a@example" }) };
  const run = async (commands: string): Promise<string> => {
    const { stdout } = await runFile("sh", ["-ec", commands], {
      cwd: path,
      env: { ...testEnvironment(), ...environment },
    });
    return stdout.trim();
  };
  const gitIn =
    (cwd: string) =>
    async (...parameters: readonly string[]): Promise<string> => {
      const { stdout } = await runFile("git", parameters, { cwd, env: { ...testEnvironment(), ...environment } });
      return stdout.trim();
    };
  await writeFile(join(path, "a"), "a\n");
  await run(`git init -q -b work && git add a && git commit -qm base && git clone -q --bare . '${mirror}'`);
  const base = await run("git rev-parse HEAD");
  const pathOf = (name_: string | Buffer): Buffer => Buffer.concat([Buffer.from(`${path}/`), Buffer.from(name_)]);
  return { path, home, mirror, base, environment, pathOf, run, git: gitIn(path), gitInMirror: gitIn(mirror) };
}

/** Takes a pack into a repository, with checks as the worker does. */
export async function receive(mirror: string, pack: Buffer): Promise<void> {
  const child = spawn("git", ["index-pack", "--stdin", "--fix-thin", "--strict"], { cwd: mirror });
  child.stdin.end(pack);
  const closed = new Promise<number | null>((resolve) => child.once("close", resolve));
  const [said, code] = await Promise.all([text(child.stderr), closed]);
  if (code !== 0) throw new Error(`index-pack ended with ${code}: ${said}`);
}

/** Paths of a commit's files, each byte as one character, in the order of git. */
export async function filesIn(mirror: string, commit: string | null): Promise<string[]> {
  const { stdout } = await runFile("git", ["ls-tree", "-r", "-z", "--name-only", commit ?? "HEAD"], {
    cwd: mirror,
    encoding: "latin1",
  });
  return stdout.split("\0").filter((name) => name !== "");
}
