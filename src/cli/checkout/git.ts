import { spawn } from "node:child_process";
import { OffstageError } from "../../domain/errors/errors.ts";

/** How git is run in a person's checkout, with that person's own configuration and credentials. */
export interface GitRun {
  readonly cwd: string;
  readonly input?: string;
  readonly environment?: Readonly<Record<string, string>>;
  readonly signal: AbortSignal;
}

/** git refused, or is not installed. `message` has its words. */
export class GitError extends OffstageError {
  readonly code = "git";
  /** Whether git was not even started. */
  readonly isMissing: boolean;

  constructor(message: string, { isMissing = false }: { readonly isMissing?: boolean } = {}) {
    super(message);
    this.isMissing = isMissing;
  }
}

/**
 * Runs git and returns what it prints.
 * @throws GitError with git's words if it ends with another code than 0
 */
export async function git(parameters: readonly string[], run: GitRun): Promise<string> {
  const { code, stdout, stderr } = await runGit(parameters, run);
  if (code === 0) return stdout;
  throw new GitError(`git ${parameters[0] ?? ""} failed: ${stderr.trim() || `it ended with ${code}`}`);
}

/** As `git`; null if it ends with another code than 0. */
export async function tryGit(parameters: readonly string[], run: GitRun): Promise<string | null> {
  const { code, stdout } = await runGit(parameters, run);
  return code === 0 ? stdout : null;
}

function runGit(
  parameters: readonly string[],
  { cwd, input, environment, signal }: GitRun,
): Promise<{ readonly code: number | null; readonly stdout: string; readonly stderr: string }> {
  return new Promise((resolve, reject) => {
    const child = spawn("git", parameters, { cwd, env: { ...process.env, ...environment }, signal });
    const out: Buffer[] = [];
    const err: Buffer[] = [];
    child.stdout.on("data", (chunk: Buffer) => out.push(chunk));
    child.stderr.on("data", (chunk: Buffer) => err.push(chunk));
    child.once("error", (error) => {
      const isMissing = (error as NodeJS.ErrnoException).code === "ENOENT";
      const words = "git is not installed on this machine, or this folder is gone";
      reject(isMissing ? new GitError(words, { isMissing }) : error);
    });
    child.once("close", (code) => {
      resolve({ code, stdout: Buffer.concat(out).toString(), stderr: Buffer.concat(err).toString() });
    });
    // git may end before it has read all.
    child.stdin.on("error", () => undefined);
    child.stdin.end(input ?? "");
  });
}
