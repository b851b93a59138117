import type { Command } from "commander";
import type { SessionDetail } from "../../domain/sessions/session.ts";
import { onServer, withConnectionFlags, withJsonFlag, type ConnectionFlags } from "../remote/connect.ts";
import { findSession } from "../remote/session-id.ts";
import type { CommandContext, Terminal } from "../terminal/commands.ts";
import { printable } from "../../printable.ts";
import { json } from "../terminal/json.ts";
import { facts } from "../terminal/table.ts";

/** Adds the command `show`. */
export function addShowCommand(program: Command, { terminal }: CommandContext): void {
  const command = program
    .command("show <session>")
    .description("print a session: its status, repositories, pull requests, cost and summary");
  withJsonFlag(withConnectionFlags(command)).action(
    (session: string, options: ConnectionFlags & { readonly json?: true }) =>
      onServer(options, terminal, async ({ client }) => {
        const found = await client.session.get(await findSession(client, session));
        terminal.write(options.json === true ? json(found) : sessionText(found, terminal));
      }),
  );
}

/** Formats a session for people. */
export function sessionText(session: SessionDetail, { color }: Pick<Terminal, "color">): string {
  const { failure, waiting, retry, queuePosition, summary } = session;
  const rows: (readonly [string, string | null])[] = [
    ["session", session.id],
    ["title", session.title],
    ["status", session.status],
    ["queue", queuePosition === null ? null : `${queuePosition} before it`],
    ["waits", waiting?.text ?? null],
    ["retry", retry === null ? null : `at ${retry.at}: ${retry.reason}`],
    ["failure", failure === null ? null : `${failure.reason} ${failure.remedy}`.trim()],
    ["needs you", session.attention.length === 0 ? null : session.attention.join(", ")],
    ["labels", session.labels.length === 0 ? null : session.labels.join(", ")],
    ["archived", session.archivedAt],
    ["agent", session.agent],
    ["asked by", session.requestedBy?.name ?? null],
    ...session.repositories.map(({ url }) => ["repository", url] as const),
    ["branch", session.branchName],
    ["target", session.targetBranch],
    ...session.pullRequests.map(({ url, state }) => ["pull request", `${url} (${state})`] as const),
    ["created", session.createdAt],
    ["finished", session.finishedAt],
    ["spent", spent(session)],
    ["page", session.htmlUrl],
  ];
  const said = summary === null ? "" : `\n${printable(summary).trimEnd()}\n`;
  return facts(rows, color) + said;
}

function spent({ spentUsd, budgetUsd }: SessionDetail): string {
  const dollars = (amount: number): string => `$${amount.toFixed(2)}`;
  return budgetUsd === null ? dollars(spentUsd) : `${dollars(spentUsd)} of ${dollars(budgetUsd)}`;
}
