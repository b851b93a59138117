import type { Command } from "commander";
import type { Automation } from "../../domain/automations/automation.ts";
import type { Job } from "../../domain/automations/job.ts";
import { shortId } from "../../domain/fields/short-id.ts";
import { onServer, withConnectionFlags, withJsonFlag, type ConnectionFlags } from "../remote/connect.ts";
import type { CommandContext, Terminal } from "../terminal/commands.ts";
import { json } from "../terminal/json.ts";
import { parseLimit } from "../terminal/limit.ts";
import { printable } from "../../printable.ts";
import { age, facts, table } from "../terminal/table.ts";
import { parseObject, readObject } from "./object.ts";

interface Options extends ConnectionFlags {
  readonly json?: true;
}

interface PageOptions extends Options {
  readonly limit: number;
}

interface TriggerOptions extends Options {
  readonly event?: Record<string, unknown>;
  readonly title?: string;
  readonly description?: string;
}

/** Adds the commands `trigger` and `automations`. */
export function addAutomationCommands(program: Command, context: CommandContext): void {
  addTrigger(program, context);
  const automations = program.command("automations").description("list, inspect, change and pause automations");
  addReading(automations, context);
  addWriting(automations, context);
}

function addTrigger(program: Command, { terminal }: CommandContext): void {
  const command = program
    .command("trigger <automation>")
    .description("start a run of an automation, by its macro or id")
    .option("--event <json>", "the event that its instructions see; - is read from stdin", parseEvent)
    .option("--title <text>", "the event's title")
    .option("--description <text>", "the event's description");
  withFlags(command).action((automation: string, options: TriggerOptions) =>
    onServer(options, terminal, async ({ client }) => {
      const event = {
        ...(options.event === undefined ? {} : options.event === stdin ? await readObject(terminal) : options.event),
        ...(options.title !== undefined && { title: options.title }),
        ...(options.description !== undefined && { description: options.description }),
      };
      const job = await client.automation.trigger(path(automation), event);
      terminal.write(options.json === true ? json(job) : `${job.status}  run ${job.id}\n`);
    }),
  );
}

function addReading(automations: Command, { terminal }: CommandContext): void {
  const list = automations
    .command("list")
    .description("list automations")
    .option("--limit <number>", "how many, 1 to 100", parseLimit, 100);
  withFlags(list).action((options: PageOptions) =>
    onServer(options, terminal, async ({ client }) => {
      const page = await client.automation.list({ limit: options.limit });
      terminal.write(options.json === true ? json(page) : automationsTable(page.automations, terminal));
    }),
  );
  withFlags(automations.command("show <automation>").description("print an automation, with its instructions")).action(
    (automation: string, options: Options) =>
      onServer(options, terminal, async ({ client }) => {
        const found = await client.automation.get(path(automation));
        terminal.write(options.json === true ? json(found) : automationText(found, terminal));
      }),
  );
  const runs = automations
    .command("runs <automation>")
    .description("list an automation's runs, the newest first")
    .option("--limit <number>", "how many, 1 to 100", parseLimit, 20);
  withFlags(runs).action((automation: string, options: PageOptions) =>
    onServer(options, terminal, async ({ client }) => {
      const page = await client.automation.runs(path(automation), { limit: options.limit });
      terminal.write(options.json === true ? json(page) : runsTable(page.runs, terminal));
    }),
  );
}

function addWriting(automations: Command, { terminal }: CommandContext): void {
  const show = (automation: Automation, options: Options, word: string): void =>
    terminal.write(options.json === true ? json(automation) : `${word} ${automation.macro}  ${automation.id}\n`);
  withFlags(
    automations.command("create").description("create an automation from JSON on stdin, as the API takes it"),
  ).action((options: Options) =>
    onServer(options, terminal, async ({ client }) => {
      // The server checks it, and names what is wrong.
      const body = (await readObject(terminal)) as Parameters<typeof client.automation.create>[0];
      show(await client.automation.create(body), options, "created");
    }),
  );
  withFlags(
    automations.command("update <automation>").description("change what JSON on stdin names, as the API takes it"),
  ).action((automation: string, options: Options) =>
    onServer(options, terminal, async ({ client }) => {
      const body = (await readObject(terminal)) as Parameters<typeof client.automation.update>[1];
      show(await client.automation.update(path(automation), body), options, "updated");
    }),
  );
  for (const [name, paused, word] of [
    ["pause", true, "paused"],
    ["resume", false, "resumed"],
  ] as const) {
    withFlags(automations.command(`${name} <automation>`).description(`${name} an automation`)).action(
      (automation: string, options: Options) =>
        onServer(options, terminal, async ({ client }) => {
          show(await client.automation.update(path(automation), { paused }), options, word);
        }),
    );
  }
  withFlags(automations.command("delete <automation>").description("delete an automation; its sessions stay")).action(
    (automation: string, options: Options) =>
      onServer(options, terminal, async ({ client }) => {
        show(await client.automation.delete(path(automation)), options, "deleted");
      }),
  );
}

const withFlags = (command: Command): Command => withJsonFlag(withConnectionFlags(command));

/** Means an event that is read from stdin. */
const stdin: Record<string, unknown> = {};

function parseEvent(value: string): Record<string, unknown> {
  return value === "-" ? stdin : parseObject(value);
}

/** An automation's macro or id as a part of a path: whatever is in it, it stays one part. */
function path(automation: string): string {
  return encodeURIComponent(automation);
}

function automationsTable(automations: readonly Automation[], { color, columns }: Terminal): string {
  if (automations.length === 0) return "no automations\n";
  return table(
    automations,
    [
      { heading: "MACRO", of: ({ macro }) => macro },
      { heading: "STATE", of: stateOf },
      { heading: "TRIGGERS", of: ({ triggers }) => triggers.map(({ type }) => type).join(", ") },
      { heading: "NAME", of: ({ name }) => name, shrinks: true },
      { heading: "ID", of: ({ id }) => id },
    ],
    { width: columns, color },
  );
}

function automationText(automation: Automation, { color }: Terminal): string {
  const { name, macro, id, agent, repositories, targetBranch, triggers, pausedReason, alert, budgetUsd } = automation;
  const rows: (readonly [string, string | null])[] = [
    ["automation", id],
    ["name", name],
    ["macro", macro],
    ["state", stateOf(automation)],
    ["paused because", pausedReason],
    ["overdue", alert === null ? null : "it was expected to fire and did not"],
    ["agent", agent],
    ...repositories.map(({ url }) => ["repository", url] as const),
    ["target", targetBranch],
    ["budget", budgetUsd === null ? null : `$${budgetUsd.toFixed(2)} for each run`],
    ...triggers.map(({ type, id: triggerId }) => ["trigger", `${type} ${triggerId}`] as const),
  ];
  return `${facts(rows, color)}\n${printable(automation.instructions).trimEnd()}\n`;
}

function runsTable(runs: readonly Job[], { color, columns }: Terminal): string {
  if (runs.length === 0) return "no runs\n";
  const now = new Date();
  return table(
    runs,
    [
      { heading: "RUN", of: ({ id }) => id },
      { heading: "STATUS", of: ({ runStatus, status }) => runStatus ?? status },
      { heading: "AGE", of: ({ createdAt }) => age(createdAt, now) },
      { heading: "SESSION", of: ({ sessionId }) => (sessionId === null ? "" : shortId(sessionId)) },
      { heading: "WHY", of: ({ error }) => error ?? "", shrinks: true },
    ],
    { width: columns, color },
  );
}

const stateOf = ({ paused }: Automation): string => (paused ? "paused" : "active");
