import { setTimeout as pause } from "node:timers/promises";
import { Option, type Command } from "commander";
import type { Client, SessionPageOf } from "../../client.ts";
import { InvalidInputError } from "../../domain/errors/errors.ts";
import { shortId } from "../../domain/fields/short-id.ts";
import type { SessionDetail } from "../../domain/sessions/session.ts";
import { sessionStatuses, type SessionStatus } from "../../domain/sessions/status.ts";
import { findRepository } from "../remote/repository-id.ts";
import { collect } from "../terminal/collect.ts";
import { isUnreachable, onServer, withConnectionFlags, withJsonFlag, type ConnectionFlags } from "../remote/connect.ts";
import type { CommandContext, Terminal } from "../terminal/commands.ts";
import { shade } from "../../event-lines.ts";
import { json } from "../terminal/json.ts";
import { parseLimit } from "../terminal/limit.ts";
import { age, table, type Column } from "../terminal/table.ts";

interface ListOptions extends ConnectionFlags {
  readonly status?: SessionStatus;
  readonly automation?: string;
  readonly mine?: true;
  readonly repository?: string;
  readonly label?: string[];
  readonly archived?: true;
  readonly attention?: true;
  readonly unread?: true;
  readonly search?: string;
  readonly limit: number;
  readonly watch?: true;
  readonly json?: true;
}

/** How often `--watch` asks, in ms. */
const watchMs = 2_000;
/** Puts the cursor to the top and clears what is below it. */
const clear = "\u001B[H\u001B[J";

/** Adds the command `list`. */
export function addListCommand(program: Command, { terminal }: CommandContext): void {
  const command = program
    .command("list")
    .description("list sessions, the newest first")
    .addOption(new Option("--status <status>", "those in this status").choices(sessionStatuses))
    .option("--automation <id>", "those that this automation started")
    .option("--mine", "those that you asked for")
    .option("--repository <name>", "those that work on this one, by its name, address or id")
    .option("--label <label>", "those that have it; may be repeated: all of them", collect)
    .option("--attention", "those that need a person: for a budget, a failure, a conflict or a review")
    .option("--unread", "those of yours that are over and that you have not looked at")
    .option("--archived", "those that are archived, which the list leaves out otherwise")
    .option("--search <words>", "those in which these words are found")
    .option("--limit <number>", "how many, 1 to 100", parseLimit, 20)
    .option("--watch", "show them until Ctrl-C, as they change");
  withJsonFlag(withConnectionFlags(command)).action((options: ListOptions) =>
    onServer(options, terminal, ({ client }) => (options.watch === true ? watch : list)(client, options, terminal)),
  );
}

async function list(client: Client, options: ListOptions, terminal: Terminal): Promise<void> {
  const page = await ask(client, options);
  terminal.write(options.json === true ? json(page) : sessionsTable(page.sessions, terminal, new Date()));
}

async function watch(client: Client, options: ListOptions, terminal: Terminal): Promise<void> {
  if (terminal.columns === null || options.json === true) {
    throw new InvalidInputError("--watch shows a screen: it needs a terminal, and goes without --json");
  }
  terminal.write("\u001B[2J");
  while (!terminal.signal.aborted) {
    terminal.write(clear + (await screen(client, options, terminal)));
    await pause(watchMs, undefined, { signal: terminal.signal }).catch(() => undefined);
  }
}

/** The current list; a server that can't be reached for a while is reported, and polled again. */
async function screen(client: Client, options: ListOptions, terminal: Terminal): Promise<string> {
  try {
    const { sessions } = await ask(client, options);
    return sessionsTable(sessions, terminal, new Date());
  } catch (error) {
    if (!isUnreachable(error)) throw error;
    return "The server can't be reached; it is asked again.\n";
  }
}

async function ask(client: Client, options: ListOptions) {
  const { status, automation, mine, search, limit, repository, label, archived, attention, unread } = options;
  const page: SessionPageOf = {
    label,
    ...(repository !== undefined && { repositoryId: (await findRepository(client, repository)).id }),
    ...(archived === true && { archived: "true" }),
    ...(attention === true && { attention: "any" }),
    ...(unread === true && { unread: "true" }),
    status,
    limit,
    automationId: automation,
    ...(mine === true && { requestedBy: "me" }),
  };
  return search === undefined ? client.session.list(page) : client.session.search(search, page);
}

/** Formats sessions for people. @param now against which ages are counted */
export function sessionsTable(
  sessions: readonly SessionDetail[],
  { color, columns }: Pick<Terminal, "color" | "columns">,
  now: Date,
): string {
  if (sessions.length === 0) return "no sessions\n";
  const shown: Column<SessionDetail>[] = [
    { heading: "ID", of: ({ id }) => shortId(id) },
    { heading: "STATUS", of: ({ status }) => status },
    { heading: "AGE", of: ({ createdAt }) => age(createdAt, now) },
    ...(sessions.some(({ labels }) => labels.length > 0)
      ? [{ heading: "LABELS", of: ({ labels }: SessionDetail) => labels.join(", ") }]
      : []),
    { heading: "TITLE", of: ({ title }) => title, shrinks: true },
    { heading: "REPOSITORY", of: ({ repositories }) => repositories.map(({ name }) => name).join(", ") },
    { heading: "PULL REQUEST", of: pullRequestsOf },
  ];
  const text = table(sessions, shown, { width: columns, color });
  return color
    ? text.replaceAll(
        statusCell,
        (_all, id: string, status: SessionStatus) => `${id}${shade(shades[status], status, true)}`,
      )
    : text;
}

/** The cell of a status: nothing before it but an id, so that no title is taken for one. */
const statusCell = new RegExp(`(?<=^|\\n)([0-9a-f]{8} {2})(${sessionStatuses.join("|")})(?= )`, "gu");
const shades = {
  draft: "dim",
  queued: "dim",
  running: "bold",
  waiting: "yellow",
  completed: "green",
  failed: "red",
  cancelled: "dim",
} as const;

function pullRequestsOf({ pullRequests }: SessionDetail): string {
  return pullRequests.map(({ number, state }) => (state === "open" ? `#${number}` : `#${number} ${state}`)).join(", ");
}
