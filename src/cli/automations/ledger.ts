import { Option, type Command } from "commander";
import { ledgerOutcomes, type LedgerOutcome } from "../../domain/automations/ledger-outcome.ts";
import type { LedgerEntry } from "../../domain/automations/ledger.ts";
import { shortId } from "../../domain/fields/short-id.ts";
import { onServer, withConnectionFlags, withJsonFlag, type ConnectionFlags } from "../remote/connect.ts";
import type { CommandContext, Terminal } from "../terminal/commands.ts";
import { parseId } from "../terminal/id.ts";
import { json } from "../terminal/json.ts";
import { parseLimit } from "../terminal/limit.ts";
import { age, table } from "../terminal/table.ts";

interface ListOptions extends ConnectionFlags {
  readonly automation?: string;
  readonly outcome?: LedgerOutcome;
  readonly limit: number;
  readonly json?: true;
}

/** Adds the command `ledger`: what was accepted, and its outcomes. */
export function addLedgerCommand(program: Command, { terminal }: CommandContext): void {
  const ledger = program.command("ledger").description("list what came in for automations, and replay it");
  const list = ledger
    .command("list", { isDefault: true })
    .description("list what came in, the newest first")
    .option("--automation <id>", "what came in for this one", parseId("an automation"))
    .addOption(new Option("--outcome <outcome>", "what ended so").choices(ledgerOutcomes))
    .option("--limit <number>", "how many, 1 to 100", parseLimit, 20);
  withJsonFlag(withConnectionFlags(list)).action((options: ListOptions) =>
    onServer(options, terminal, async ({ client }) => {
      const page = await client.ledger.list({
        limit: options.limit,
        ...(options.automation !== undefined && { automationId: options.automation }),
        ...(options.outcome !== undefined && { outcome: options.outcome }),
      });
      terminal.write(options.json === true ? json(page) : entriesTable(page.entries, terminal));
    }),
  );
  const replay = ledger
    .command("replay")
    .argument("<id>", "of an entry that is listed", parseId("an entry"))
    .description("let what an entry is about start a run again; an event is decided again");
  withJsonFlag(withConnectionFlags(replay)).action((id: string, options: ConnectionFlags & { readonly json?: true }) =>
    onServer(options, terminal, async ({ client }) => {
      const replayed = await client.ledger.replay(id);
      const words =
        "outcome" in replayed
          ? `${replayed.outcome}  event ${replayed.ledgerId}`
          : `${replayed.status}  run ${replayed.id}`;
      terminal.write(options.json === true ? json(replayed) : `${words}\n`);
    }),
  );
}

function entriesTable(entries: readonly LedgerEntry[], { color, columns }: Terminal): string {
  if (entries.length === 0) return "nothing came in\n";
  const now = new Date();
  return table(
    entries,
    [
      { heading: "ID", of: ({ id }) => id },
      { heading: "OUTCOME", of: ({ outcome }) => outcome ?? "under way" },
      { heading: "AGE", of: ({ createdAt }) => age(createdAt, now) },
      { heading: "EVENT", of: ({ name }) => name ?? "" },
      { heading: "SESSION", of: ({ sessionId }) => (sessionId === null ? "" : shortId(sessionId)) },
      { heading: "WHY", of: ({ reason }) => reason ?? "", shrinks: true },
    ],
    { width: columns, color },
  );
}
