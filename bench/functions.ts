import { chmod, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { cpus, loadavg, tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import pg from "pg";
import { definitionsDirectory, openDatabase } from "../src/database/database.ts";
import { readDefinitions } from "../src/database/definitions.ts";
import { startEmbeddedServer } from "../src/database/embedded/embedded.ts";
import { createLogger } from "../src/observability.ts";
import { fill } from "./fill.ts";
import { functionCases, prepareCases, type FunctionCase } from "./function-cases.ts";
import { quantile, table } from "./measure.ts";

/**
 * How long each function of src/store/sql takes in its usual case, within the database and without its commit, in a database filled
 * as years of work would leave it.
 *
 *   npm run bench:functions -- --rows 100000 --calls 300
 *   npm run bench:functions -- --write      puts the figures into the functions' files
 *
 * Times are those of EXPLAIN ANALYZE, pages those of 8 KiB that the call touched. The files have the medians: the 99th percentile of a
 * machine that does other work says more of that work.
 */
const { values: options } = parseArgs({
  options: {
    rows: { type: "string", default: "100000" },
    calls: { type: "string", default: "300" },
    only: { type: "string", multiple: true },
    write: { type: "boolean", default: false },
  },
});
/** Calls before those that count: a connection plans a function's statements at their first calls. */
const warmUp = 20;

interface Figure {
  readonly p50: number;
  readonly p99: number;
  readonly pages: number;
}

interface Explained {
  readonly "Execution Time": number;
  readonly Plan: { readonly "Shared Hit Blocks": number; readonly "Shared Read Blocks": number };
  readonly Triggers?: readonly { readonly "Trigger Name": string; readonly Time: number }[];
}

/** @param trigger counts the time of this trigger alone. @returns the time in µs, and how many pages were touched */
async function explain(client: pg.Client, sql: string, trigger?: string): Promise<{ us: number; pages: number }> {
  const { rows } = await client.query<{ "QUERY PLAN": Explained[] }>(`explain (analyze, buffers, format json) ${sql}`);
  const explained = rows[0]?.["QUERY PLAN"][0];
  if (explained === undefined) throw new Error("EXPLAIN gave no plan");
  const { Plan: plan, Triggers: triggers = [] } = explained;
  const found = triggers.find((each) => each["Trigger Name"] === trigger);
  if (trigger !== undefined && found === undefined) throw new Error(`the trigger ${trigger} did not fire`);
  return {
    us: (found?.Time ?? explained["Execution Time"]) * 1_000,
    // The plan's are those of the statement that fires the trigger.
    pages: found === undefined ? plan["Shared Hit Blocks"] + plan["Shared Read Blocks"] : 0,
  };
}

async function countOf(client: pg.Client, sql: string): Promise<number> {
  const { rows } = await client.query<{ count: string }>(sql);
  return Number(rows[0]?.count);
}

async function measure(client: pg.Client, one: FunctionCase, calls: number): Promise<Figure> {
  const times: number[] = [];
  const pages: number[] = [];
  if (one.setup !== undefined) await client.query(one.setup);
  const count = one.without === undefined ? 1 : await countOf(client, one.without);
  for (let n = -warmUp; n < calls; n += 1) {
    if (one.before !== undefined) await client.query(one.before);
    const took = await explain(client, one.call, one.trigger);
    // A function that takes less than a call is called for many rows; reading these costs as much without it.
    const bare = one.without === undefined ? { us: 0, pages: 0 } : await explain(client, one.without);
    if (one.after !== undefined) await client.query(one.after);
    if (n < 0) continue;
    times.push(Math.max(0, took.us - bare.us) / count);
    pages.push((took.pages - bare.pages) / count);
  }
  const sorted = times.toSorted((a, b) => a - b);
  const sortedPages = pages.toSorted((a, b) => a - b);
  return { p50: quantile(sorted, 0.5), p99: quantile(sorted, 0.99), pages: Math.round(quantile(sortedPages, 0.5)) };
}

const inMicroseconds = (us: number): string => (us < 10 ? us.toFixed(1) : us.toFixed(0));

const lineOf = (one: FunctionCase, { p50, pages }: Figure): string =>
  `-- Measured: ${inMicroseconds(p50)} µs, ${pages} pages: ${one.usual}.`;

/** Puts a figure into its function's file: in place of the one before, else before the line that names the callers. */
async function write(one: FunctionCase, figure: Figure): Promise<void> {
  const { definitions } = await readDefinitions(definitionsDirectory);
  const file = definitions.find(({ name }) => name === one.definition);
  if (file === undefined) throw new Error(`${one.definition} has no file in ${definitionsDirectory}`);
  const path = join(definitionsDirectory, file.path);
  const sql = await readFile(path, "utf8");
  const line = lineOf(one, figure);
  const written = /^-- Measured: /mu.test(sql)
    ? sql.replace(/^-- Measured: .*$/mu, () => line)
    : sql.replace(/^(?=-- Callers?: )/mu, () => `${line}\n`);
  if (written === sql && !sql.includes(line)) throw new Error(`${path} has no line that names the callers`);
  await writeFile(path, written);
}

const logger = createLogger("error");
const directory = await mkdtemp(join(tmpdir(), "offstage-bench-"));
// The database runs as an unprivileged user if we are root, and must reach its folder.
await chmod(directory, 0o711);
const embedded = await startEmbeddedServer({ directory: join(directory, "postgres"), logger });
const client = new pg.Client({ connectionString: embedded.url });
try {
  await (await openDatabase({ url: embedded.url, directory, logger })).close();
  await fill(embedded.url, Number(options.rows), (text) => process.stderr.write(`${text}\n`));
  await client.connect();
  await prepareCases(client, Number(options.rows));
  const rows: string[][] = [];
  for (const one of functionCases) {
    if (options.only !== undefined && !options.only.includes(one.definition)) continue;
    const figure = await measure(client, one, Number(options.calls));
    const { p50, p99, pages } = figure;
    rows.push([one.definition, inMicroseconds(p50), inMicroseconds(p99), String(pages), one.usual]);
    if (options.write) await write(one, figure);
    process.stderr.write(`${one.definition}\n`);
  }
  const head = ["function", "p50 µs", "p99 µs", "pages", "usual case"];
  const machine = `${cpus().length} × ${cpus()[0]?.model ?? "cpu"}, load ${loadavg()[0]?.toFixed(0)}`;
  process.stdout.write(`${options.rows} sessions, ${machine}\n\n${table(head, rows)}`);
} finally {
  await client.end();
  await embedded.stop();
  await rm(directory, { recursive: true, force: true });
}
