import { Option, type Command } from "commander";
import type { z } from "zod";
import { InvalidInputError } from "../../domain/errors/errors.ts";
import { insightDimensions, type InsightDimension } from "../../domain/insight/dimension.ts";
import type { Figures, Insight, insightQuerySchema } from "../../domain/insight/insight.ts";
import { onServer, withConnectionFlags, withJsonFlag, type ConnectionFlags } from "../remote/connect.ts";
import { findRepository } from "../remote/repository-id.ts";
import type { CommandContext, Terminal } from "../terminal/commands.ts";
import { json } from "../terminal/json.ts";
import { facts, table, type Column } from "../terminal/table.ts";

interface InsightOptions extends ConnectionFlags {
  readonly from?: string;
  readonly to?: string;
  readonly by: "day" | "week";
  readonly groupBy?: InsightDimension;
  readonly only?: string;
  readonly repository?: string;
  readonly csv?: true;
  readonly json?: true;
}

/** Adds the command `insight`. */
export function addInsightCommand(program: Command, { terminal }: CommandContext): void {
  const command = program
    .command("insight")
    .description("tell what came of sessions: pull requests, merges, waits, tokens and cost")
    .option("--from <day>", "the first day, such as 2030-01-31, in UTC (default: 29 days before the last)")
    .option("--to <day>", "the last day (default: today)")
    .addOption(new Option("--by <period>", "length of the periods").choices(["day", "week"]).default("week"))
    .addOption(new Option("--group-by <dimension>", "figures of each of these").choices(insightDimensions))
    .option("--only <key>", "only this one of --group-by: a KEY of its table")
    .option("--repository <name>", "only work on this repository: its name, address or id")
    .option("--csv", "print the figures of each period as CSV, with --group-by of each period and group");
  withJsonFlag(withConnectionFlags(command)).action((options: InsightOptions) =>
    onServer(options, terminal, async ({ client }) => {
      const { from, to, by, groupBy, only, repository, csv, json: asJson } = options;
      if (csv === true && asJson === true) throw new InvalidInputError("--csv and --json: give one of them");
      const asked: z.input<typeof insightQuerySchema> = {
        from,
        to,
        by,
        groupBy,
        key: only,
        ...(repository !== undefined && { repositoryId: (await findRepository(client, repository)).id }),
      };
      if (csv === true) return terminal.write(await client.insight.csv(asked));
      const insight = await client.insight.figures(asked);
      terminal.write(asJson === true ? json(insight) : insightText(insight, terminal));
    }),
  );
}

/** Formats figures for people: those of the whole time, and below them those of each group, or of each period. */
export function insightText(insight: Insight, { color, columns }: Pick<Terminal, "color" | "columns">): string {
  const { from, to, total, groupBy, groups, periods, groupsLeftOut } = insight;
  const ofTime = facts(
    [
      ["days", `${from} to ${to}, in UTC`],
      [
        "sessions",
        `${total.sessions}: ${total.completed} completed, ${total.failed} failed, ${total.cancelled} cancelled`,
      ],
      ["pull requests", `${total.pullRequests}: ${total.merged} merged (${percent(total.shareMerged)})`],
      ["to open one", halfAndMost(total.openingP50Ms, total.openingP90Ms)],
      ["to merge one", halfAndMost(total.mergingP50Ms, total.mergingP90Ms)],
      ["in the queue", halfAndMost(total.waitP50Ms, total.waitP90Ms)],
      ["review rounds", total.reviewRounds?.toFixed(1) ?? null],
      ["tokens", `${total.inputTokens} in, ${total.outputTokens} out`],
      ["cost", `${dollars(total.costUsd)}, ${dollars(total.costPerMergedUsd)} for each that was merged`],
    ],
    color,
  );
  const shown = { width: columns, color };
  const below =
    groupBy === null
      ? table(periods, [{ heading: "FROM", of: ({ from: day }) => day }, ...ofFigures], shown)
      : table(
          groups,
          [
            {
              heading: groupBy.toUpperCase(),
              of: ({ name, key }) => name ?? (key === "" ? "none" : key),
              shrinks: true,
            },
            ...ofFigures,
            { heading: "KEY", of: ({ key, name }) => (key === name ? "" : key) },
          ],
          shown,
        );
  return `${ofTime}\n${below}${groupsLeftOut ? "There are more groups: these have the most sessions.\n" : ""}`;
}

const ofFigures: readonly Column<Figures>[] = [
  { heading: "SESSIONS", of: ({ sessions }) => String(sessions) },
  { heading: "PRS", of: ({ pullRequests }) => String(pullRequests) },
  { heading: "MERGED", of: ({ shareMerged }) => percent(shareMerged) },
  { heading: "OPENED IN", of: ({ openingP50Ms }) => duration(openingP50Ms) },
  { heading: "MERGED IN", of: ({ mergingP50Ms }) => duration(mergingP50Ms) },
  { heading: "COST", of: ({ costUsd }) => dollars(costUsd) },
  { heading: "PER MERGED", of: ({ costPerMergedUsd }) => dollars(costPerMergedUsd) },
];

/** Shown if there is no figure. */
const nothing = "-";

const percent = (share: number | null): string => (share === null ? nothing : `${Math.round(share * 100)} %`);
const dollars = (amount: number | null): string => (amount === null ? nothing : `$${amount.toFixed(2)}`);

function halfAndMost(p50Ms: number | null, p90Ms: number | null): string | null {
  return p50Ms === null ? null : `half within ${duration(p50Ms)}, nine in ten within ${duration(p90Ms)}`;
}

/** A length of time with its two largest units, such as `2 h 5 min`. */
function duration(ms: number | null): string {
  if (ms === null) return nothing;
  const seconds = Math.round(ms / 1_000);
  if (seconds < 60) return `${seconds} s`;
  const minutes = Math.round(seconds / 60);
  if (minutes < 60) return `${minutes} min`;
  const hours = Math.floor(minutes / 60);
  return hours < 24 ? `${hours} h ${minutes % 60} min` : `${Math.floor(hours / 24)} d ${hours % 24} h`;
}
