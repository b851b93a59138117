import type { Command } from "commander";
import type { Client } from "../../client.ts";
import { InvalidInputError } from "../../domain/errors/errors.ts";
import { lacksContent } from "../../domain/sessions/patch.ts";
import type { SessionDetail, SessionDiff } from "../../domain/sessions/session.ts";
import { checkoutRoot, repositoryKeyOf, remoteFor } from "../checkout/checkout.ts";
import { git, tryGit } from "../checkout/git.ts";
import { onServer, withConnectionFlags, withJsonFlag, type ConnectionFlags } from "../remote/connect.ts";
import { findSession } from "../remote/session-id.ts";
import type { CommandContext, Terminal } from "../terminal/commands.ts";
import { shade } from "../../event-lines.ts";
import { printable } from "../../printable.ts";
import { json } from "../terminal/json.ts";

interface PatchOptions extends ConnectionFlags {
  readonly repository?: string;
  readonly json?: true;
}

type Patch = SessionDiff["repositories"][number];

/** Adds the commands that take a session's work to this machine: `diff`, `apply` and `checkout`. */
export function addPatchCommands(program: Command, { terminal }: CommandContext): void {
  const repositoryFlag = ["--repository <name>", "of a session with several: which"] as const;
  const diff = program
    .command("diff <session>")
    .description("print what a session changed, as git prints it")
    .option(...repositoryFlag);
  withJsonFlag(withConnectionFlags(diff)).action((session: string, options: PatchOptions) =>
    onServer(options, terminal, async ({ client }) => printDiff(client, session, options, terminal)),
  );
  const apply = program
    .command("apply <session>")
    .description("apply what a session changed to the files of this git checkout, without a commit")
    .option(...repositoryFlag)
    .option("--3way", "where it does not fit, merge it and leave conflicts to you; what fits is staged");
  withConnectionFlags(apply).action((session: string, options: PatchOptions & { readonly "3way"?: true }) =>
    onServer(options, terminal, async ({ client }) => applyPatch(client, session, options, terminal)),
  );
  const checkout = program
    .command("checkout <session>")
    .description("fetch a session's branch into this git checkout, and switch to it")
    .option("--remote <name>", "remote that has the branch (default: that of the session's repository)");
  withConnectionFlags(checkout).action((session: string, options: ConnectionFlags & { readonly remote?: string }) =>
    onServer(options, terminal, async ({ client }) => checkOut(client, session, options.remote ?? null, terminal)),
  );
}

async function printDiff(client: Client, session: string, options: PatchOptions, terminal: Terminal): Promise<void> {
  const diff = await client.session.diff(await findSession(client, session));
  const patches = options.repository === undefined ? diff.repositories : [named(diff, options.repository)];
  if (options.json === true) {
    terminal.write(json({ repositories: patches }));
    return;
  }
  const isSeveral = patches.length > 1;
  for (const { name, patch, truncated } of patches) {
    if (patch === "") continue;
    // Behind `#` it is no part of the patch.
    if (isSeveral) terminal.write(`# ${printable(name)}\n`);
    // For a program it is the patch, byte for byte; a terminal gets nothing that could control it.
    terminal.write(terminal.columns === null ? patch : shaded(printable(patch), terminal.color));
    if (truncated)
      terminal.warn(`the patch of ${printable(name)} is longer than what is kept: this is its beginning\n`);
  }
  if (patches.every(({ patch }) => patch === "")) terminal.warn("nothing is changed\n");
}

function shaded(patch: string, color: boolean): string {
  if (!color) return patch;
  return patch.replaceAll(/^.*$/gmu, (line) => {
    if (/^(?:diff |index |--- |\+\+\+ )/u.test(line)) return shade("bold", line, true);
    if (line.startsWith("@@")) return shade("dim", line, true);
    if (line.startsWith("+")) return shade("green", line, true);
    return line.startsWith("-") ? shade("red", line, true) : line;
  });
}

async function applyPatch(
  client: Client,
  session: string,
  options: PatchOptions & { readonly "3way"?: true },
  terminal: Terminal,
): Promise<void> {
  const root = await checkoutRoot(terminal);
  const id = await findSession(client, session);
  const [detail, diff] = [await client.session.get(id), await client.session.diff(id)];
  const { name, patch, truncated } =
    options.repository === undefined ? await patchFor(root, detail, diff, terminal) : named(diff, options.repository);
  if (truncated || lacksContent(patch)) {
    const what = truncated ? "is longer than what is kept" : "has changes that could not be kept as they are";
    throw new InvalidInputError(`the patch of ${name} ${what}: get the branch with \`offstage checkout ${id}\``);
  }
  if (patch === "") {
    terminal.warn(`nothing is changed in ${name}\n`);
    return;
  }
  const run = { cwd: root, signal: terminal.signal, input: patch };
  // A file to which the patch does not apply is unchanged: git applies all or nothing. It writes neither outside nor
  // into .git.
  await git(["apply", ...(options["3way"] === true ? ["--3way"] : []), "-"], run);
  terminal.write(printable(await git(["apply", "--stat", "-"], run)));
}

/** Which of several patches is for this checkout: the one whose repository is one of its remotes. */
async function patchFor(root: string, session: SessionDetail, diff: SessionDiff, terminal: Terminal): Promise<Patch> {
  const [only] = diff.repositories;
  if (only === undefined) throw new InvalidInputError("the session has no repository, so there is nothing to apply");
  if (diff.repositories.length === 1) return only;
  for (const patch of diff.repositories) {
    const url = session.repositories.find(({ id }) => id === patch.repositoryId)?.url;
    if (url !== undefined && (await remoteFor(root, [url], terminal.signal)) !== null) return patch;
  }
  const names = diff.repositories.map(({ name }) => name).join(", ");
  throw new InvalidInputError(`none of ${names} is a remote of this checkout: name one with --repository`);
}

function named(diff: SessionDiff, name: string): Patch {
  const found = diff.repositories.find(
    (patch) => patch.name === name || repositoryKeyOf(patch.name) === repositoryKeyOf(name),
  );
  if (found !== undefined) return found;
  const names = diff.repositories.map((patch) => patch.name).join(", ");
  throw new InvalidInputError(`--repository: the session has no "${name}": it has ${names === "" ? "none" : names}`);
}

async function checkOut(
  client: Client,
  session: string,
  namedRemote: string | null,
  terminal: Terminal,
): Promise<void> {
  const root = await checkoutRoot(terminal);
  const { branchName, repositories } = await client.session.get(await findSession(client, session));
  const urls = repositories.map(({ url }) => url);
  const remote = namedRemote ?? (await remoteFor(root, urls, terminal.signal));
  if (remote === null) {
    throw new InvalidInputError(
      `none of this checkout's remotes is ${urls.join(" or ") || "the session's, which has no repository"}: name one with --remote`,
    );
  }
  const run = { cwd: root, signal: terminal.signal };
  const tracked = `refs/remotes/${remote}/${branchName}`;
  await git(["fetch", "--quiet", "--", remote, `+refs/heads/${branchName}:${tracked}`], run);
  const isThere = (await tryGit(["rev-parse", "--verify", "--quiet", `refs/heads/${branchName}`], run)) !== null;
  if (isThere) {
    await git(["switch", "--quiet", "--no-guess", branchName], run);
    await git(["merge", "--quiet", "--ff-only", tracked], run);
  } else {
    await git(["switch", "--quiet", "--create", branchName, "--track", tracked], run);
  }
  terminal.write(`on ${printable(branchName)}, as ${remote} has it\n`);
}
