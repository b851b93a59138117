import { resolve } from "node:path";
import type { Command } from "commander";
import { createClient, type Client } from "../client.ts";
import { InvalidInputError, OffstageError } from "../domain/errors/errors.ts";
import type { CommandContext, Terminal } from "./commands.ts";
import { exitCodes } from "./exit-code.ts";
import { follow } from "./follow.ts";

interface RunOptions {
  readonly repository?: string[];
  readonly agent?: string;
  readonly targetBranch?: string;
  readonly branch?: string;
  readonly together?: true;
  readonly follow?: true;
  readonly server?: string;
  readonly key?: string;
}

/** The server's address if neither --server nor OFFSTAGE_SERVER is set. */
export const defaultServer = "http://127.0.0.1:4747";

/** Adds the command `run`. */
export function addRunCommand(program: Command, { terminal, finish }: CommandContext): void {
  program
    .command("run <prompt>")
    .description("create a session on a running server")
    .option("--repository <url or path>", "repository to work on; may be repeated", collect)
    .option("--agent <provider:model>", "agent to use (default: the server's)")
    .option("--target-branch <branch>", "target branch of the pull request (default: the repository's)")
    .option("--branch <branch>", "branch to work on (default: one named after the prompt)")
    .option("--together", "open pull requests only if every repository took the work")
    .option("--follow", "print what happens until the session ends")
    .option("--server <url>", `address of the server (default: OFFSTAGE_SERVER or ${defaultServer})`)
    .option("--key <key>", "API key (default: OFFSTAGE_API_KEY, which stays out of the process list)")
    .action(async (prompt: string, options: RunOptions) => {
      finish(await run(prompt, options, terminal));
    });
}

/**
 * Creates the session and follows it if `--follow` is set.
 * @returns the exit code
 */
async function run(prompt: string, options: RunOptions, terminal: Terminal): Promise<number> {
  const server = serverAddress(options.server ?? terminal.environment["OFFSTAGE_SERVER"]);
  const client = createClient({ baseUrl: server, key: apiKey(options, terminal) });
  const session = await reaching(server, () =>
    client.session.create({
      prompt,
      repositories: (options.repository ?? []).map((repository) =>
        repositoryAddress(repository, terminal.workingDirectory),
      ),
      ...(options.agent !== undefined && { agent: options.agent }),
      ...(options.targetBranch !== undefined && { targetBranch: options.targetBranch }),
      ...(options.branch !== undefined && { branchName: options.branch }),
      ...(options.together === true && { pullRequestsTogether: true }),
    }),
  );
  terminal.write(`${session.htmlUrl}\n`);
  return options.follow === true ? followTo(client, session.id, server, terminal) : exitCodes.ok;
}

async function followTo(client: Client, id: string, server: string, terminal: Terminal): Promise<number> {
  try {
    return await reaching(server, () => follow(client, id, terminal));
  } catch (error) {
    if (!terminal.signal.aborted) throw error;
    terminal.warn(`\nstopped following; session ${id} continues\n`);
    return exitCodes.interrupted;
  }
}

function collect(value: string, before: string[] = []): string[] {
  return [...before, value];
}

/** @throws InvalidInputError if it is not an http or https address */
function serverAddress(given: string | undefined): string {
  const address = given === undefined || given === "" ? defaultServer : given;
  if (!/^https?:$/u.test(URL.parse(address)?.protocol ?? "")) {
    throw new InvalidInputError(`--server: "${address}" is not an http or https address`);
  }
  return address.replace(/\/+$/u, "");
}

function apiKey(options: RunOptions, terminal: Terminal): string {
  const key = options.key ?? terminal.environment["OFFSTAGE_API_KEY"];
  if (key !== undefined && key !== "") return key;
  throw new InvalidInputError(
    "no API key: set OFFSTAGE_API_KEY or --key; `offstage keys create` on the server's machine creates one",
  );
}

/** Makes a local path absolute, because the server has another working directory. A URL stays as it is. */
export function repositoryAddress(given: string, workingDirectory: string): string {
  const isScpLike = /^(?:[\w.-]+@)?[\w.-]{2,}:(?!\/\/)/u.test(given) && !/^[./]/u.test(given);
  return given.includes("://") || isScpLike ? given : resolve(workingDirectory, given);
}

/** Converts a failed connection to an error that the user can fix, because it is not a bug of the program. */
async function reaching<T>(server: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (!(error instanceof TypeError) || error.cause === undefined) throw error;
    throw new UnreachableServerError(
      `${server} can't be reached: start it with \`offstage start\`, or name it with --server`,
    );
  }
}

class UnreachableServerError extends OffstageError {
  readonly code = "unreachable";
}
