import { resolve } from "node:path";
import type { Command } from "commander";
import type { Client } from "../../client.ts";
import { InvalidInputError } from "../../domain/errors/errors.ts";
import { readCheckout, sendChanges, type Checkout } from "../checkout/checkout.ts";
import { onServer, withConnectionFlags, withJsonFlag, type ConnectionFlags } from "../remote/connect.ts";
import type { CommandContext, Terminal } from "../terminal/commands.ts";
import { collect } from "../terminal/collect.ts";
import { parseDollars } from "../terminal/dollars.ts";
import { exitCodes } from "../terminal/exit-code.ts";
import { json } from "../terminal/json.ts";
import { followTo } from "./follow.ts";

interface RunOptions extends ConnectionFlags {
  /** False: `--no-repository`. */
  readonly repository?: string[] | false;
  readonly agent?: string;
  readonly targetBranch?: string;
  readonly branch?: string;
  readonly withChanges?: true;
  readonly together?: true;
  readonly label?: string[];
  readonly budget?: number | null;
  readonly follow?: true;
  readonly json?: true;
}

/** Adds the command `run`. */
export function addRunCommand(program: Command, { terminal, finish }: CommandContext): void {
  const command = program
    .command("run <prompt>")
    .description("create a session on a running server; the prompt - is read from stdin")
    .option(
      "--repository <url or path>",
      "repository to work on; may be repeated (default: that of the git checkout in this folder, if it is one)",
      collect,
    )
    .option("--no-repository", "work on no repository")
    .option("--agent <provider:model>", "agent to use (default: the server's)")
    .option(
      "--target-branch <branch>",
      "target branch of the pull request (default: the checkout's, or the repository's)",
    )
    .option("--branch <branch>", "branch to work on (default: one named after the prompt)")
    .option("--with-changes", "send this checkout's commits and uncommitted changes along, as a branch")
    .option("--together", "open pull requests only if every repository took the work")
    .option("--label <label>", "what it is found by; may be repeated", collect)
    .option(
      "--budget <dollars>",
      "most US dollars that it may spend (default: the organization's budget)",
      parseDollars,
    )
    .option("--follow", "print what happens until the session ends");
  withJsonFlag(withConnectionFlags(command)).action(async (prompt: string, options: RunOptions) => {
    finish(await run(prompt, options, terminal));
  });
}

/**
 * Creates the session and follows it if `--follow` is set.
 * @returns the exit code
 */
function run(given: string, options: RunOptions, terminal: Terminal): Promise<number> {
  return onServer(options, terminal, async ({ client }) => {
    const prompt = given === "-" ? await terminal.readInput() : given;
    const work = await whereToWork(options, terminal);
    const session = await client.session.create({
      prompt,
      repositories: [...work.repositories],
      ...(options.agent !== undefined && { agent: options.agent }),
      ...(work.targetBranch !== undefined && { targetBranch: work.targetBranch }),
      ...(work.branchName !== undefined && { branchName: work.branchName }),
      ...(options.label !== undefined && { labels: options.label }),
      ...(options.budget != null && { budgetUsd: options.budget }),
      ...(options.together === true && { pullRequestsTogether: true }),
    });
    terminal.write(options.json === true ? json(session) : `${session.htmlUrl}\n`);
    return options.follow === true ? followNew(client, session.id, options, terminal) : exitCodes.ok;
  });
}

/** With `--json` stdout has the session alone. */
function followNew(client: Client, id: string, options: RunOptions, terminal: Terminal): Promise<number> {
  return followTo(client, id, options.json === true ? { ...terminal, write: terminal.warn, color: false } : terminal);
}

interface Work {
  readonly repositories: readonly string[];
  readonly targetBranch?: string | undefined;
  readonly branchName?: string | undefined;
}

/** The work by the flags, completed by the checkout in which the command is run. */
async function whereToWork(options: RunOptions, terminal: Terminal): Promise<Work> {
  const { repository, targetBranch, branch: branchName } = options;
  if (options.withChanges === true && repository !== undefined) {
    throw new InvalidInputError(
      "--with-changes sends this checkout's changes to its own remote: it goes without --repository and --no-repository",
    );
  }
  const named = {
    ...(targetBranch !== undefined && { targetBranch }),
    ...(branchName !== undefined && { branchName }),
  };
  if (repository !== undefined && repository !== false) {
    return { repositories: repository.map((each) => repositoryAddress(each, terminal.workingDirectory)), ...named };
  }
  if (repository === false) return { repositories: [], ...named };
  const checkout = await readCheckout(terminal, options.withChanges === true ? "checkout" : "remote");
  if (checkout === null) return { repositories: [], ...named };
  return { ...ofCheckout(checkout, options, terminal), ...named, ...(await changesOf(checkout, options, terminal)) };
}

function ofCheckout(checkout: Checkout, { targetBranch }: RunOptions, terminal: Terminal): Work {
  const target = targetBranch ?? checkout.remoteBranch ?? undefined;
  const into = target === undefined ? "its default branch" : target;
  terminal.warn(`repository ${checkout.url} (${checkout.remote} of this checkout), pull request into ${into}\n`);
  return { repositories: [checkout.url], targetBranch: target };
}

async function changesOf(checkout: Checkout, options: RunOptions, terminal: Terminal): Promise<Partial<Work>> {
  if (options.withChanges !== true) {
    if (checkout.isDirty) terminal.warn("uncommitted changes are not sent: --with-changes sends them along\n");
    return {};
  }
  const sent = await sendChanges(checkout, options.branch ?? null, terminal);
  terminal.warn(`${sent.commits === 1 ? "1 commit is" : `${sent.commits} commits are`} sent as ${sent.branch}\n`);
  return { branchName: sent.branch };
}

/** Makes a local path absolute, because the server has another working directory. A URL stays as it is. */
export function repositoryAddress(given: string, workingDirectory: string): string {
  const isScpLike = /^(?:[\w.-]+@)?[\w.-]{2,}:(?!\/\/)/u.test(given) && !/^[./]/u.test(given);
  return given.includes("://") || isScpLike ? given : resolve(workingDirectory, given);
}
