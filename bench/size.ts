import { chmod, mkdir, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import pg from "pg";
import { openDatabase, type Database } from "../src/database/database.ts";
import { startEmbeddedServer } from "../src/database/embedded/embedded.ts";
import { newSession } from "../src/domain/sessions/new-session.ts";
import { createLogger } from "../src/observability.ts";
import type { SessionListQuery } from "../src/store/sessions/conditions.ts";
import { attentionReasons } from "../src/domain/sessions/attention.ts";
import { listLabels } from "../src/store/sessions/labels.ts";
import { listEvents } from "../src/store/sessions/events.ts";
import { createSession } from "../src/store/sessions/new-session.ts";
import { searchSessions } from "../src/store/sessions/search.ts";
import { listSessions } from "../src/store/sessions/list.ts";
import { getSession } from "../src/store/sessions/sessions.ts";
import {
  fill,
  labels,
  largestOrganization,
  people,
  rareAutomation,
  rareWord,
  repositories,
  sessionIdSql,
  smallOrganization,
} from "./fill.ts";
import { machine, quantile, table } from "./measure.ts";

/**
 * How long the questions of the API take in a store with few sessions and with very many. Each size is a database of its
 * own in one server, and they are asked in turn.
 *
 *   npm run bench:size -- --rows 10000,1000000,10000000
 */
const { values: options } = parseArgs({
  options: {
    rows: { type: "string", default: "10000,1000000" },
    rounds: { type: "string", default: "8" },
    /** Only questions whose name has this. */
    only: { type: "string", default: "" },
    /** A folder that is kept, and whose filled databases are used again. */
    folder: { type: "string" },
  },
});
const sizes = options.rows.split(",").map(Number);
const rounds = Number(options.rounds);
const questionsEach = 40;

interface Store {
  readonly rows: number;
  readonly database: Database;
  /** Sessions that have events, of the largest organization: from all its time, from the middle of it, and the newest. */
  readonly known: readonly string[];
  readonly middle: readonly string[];
  readonly recent: readonly string[];
  /** A repository of one in a hundred of its sessions. */
  readonly repository: string;
}

type Question = (store: Store) => Promise<unknown>;

const organization = largestOrganization;
const newOrganization = "00000000-0000-4000-8000-000000000021";
const anyOf = (ids: readonly string[]): string => ids[Math.floor(Math.random() * ids.length)] ?? "";
const one = (store: Store): string => anyOf(store.known);
const search =
  (words: string, query: Partial<SessionListQuery> = {}, of: string = organization): Question =>
  ({ database }) =>
    searchSessions(database, of, words, { limit: 20, ...query });

const list =
  (query: Partial<SessionListQuery>): Question =>
  ({ database }) =>
    listSessions(database, organization, { limit: 20, archived: false, ...query });

async function cursorOf(store: Store, session: string): Promise<string> {
  const { rows } = await store.database.pool.query<{ cursor: string }>(
    `select to_char(created_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') || ' ' || id as cursor from session where id = $1`,
    [session],
  );
  return Buffer.from(rows[0]?.cursor ?? "").toString("base64url");
}

async function readEvents(store: Store, session: string): Promise<void> {
  const page = await listEvents(store.database, organization, session, 0, 100);
  if (page?.events.length !== 5) throw new Error("not all events");
}

/** By what they answer, which is the same at every size but for the words whose share is the same. */
const questions: Readonly<Record<string, Question>> = {
  create: ({ database }) =>
    // Of one that nothing else asks for: what is searched stays as it is.
    createSession(
      database,
      newOrganization,
      newSession({ prompt: "Fix the test that fails", repositories: [], sandboxed: true }),
    ),
  get: async (store) => {
    if ((await getSession(store.database, organization, one(store))) === null) throw new Error("not found");
  },
  "event page of any session": (store) => readEvents(store, one(store)),
  "event page of a recent session": (store) => readEvents(store, anyOf(store.recent)),
  list: ({ database }) => listSessions(database, organization, { limit: 20, archived: false }),
  "list with the archived ones": list({}),
  "list of the archived ones": list({ archived: true }),
  "list of a label, half": list({ label: [labels.half] }),
  "list of a label, 1 %": list({ label: [labels.some] }),
  "list of a label, 5 in all": list({ label: [labels.rare], archived: undefined }),
  "list of two labels, half and 5 in all": list({ label: [labels.half, labels.rare], archived: undefined }),
  "list of a person, half": list({ requestedBy: people[0] }),
  "list of a person, 5 in all": list({ requestedBy: people[1], archived: undefined }),
  "list of a repository, 1 %": async (store) => list({ repositoryId: store.repository })(store),
  "list of a repository, 5 in all": list({ repositoryId: repositories.rare, archived: undefined }),
  "list of the failed (20 %)": list({ status: ["failed"] }),
  "list of what needs a person": list({ attention: attentionReasons }),
  "list of a person, a label and a status that few have": list({
    requestedBy: people[0],
    label: [labels.some],
    status: ["cancelled"],
  }),
  "list of a person and a status that none has": list({ requestedBy: people[0], status: ["waiting"] }),
  "list of a person with a label that none of theirs has": list({ requestedBy: people[1], label: [labels.half] }),
  "labels in use": ({ database }) => listLabels(database, organization, { limit: 20 }),
  "list, from the middle": async (store) =>
    listSessions(store.database, organization, { limit: 20, cursor: await cursorOf(store, anyOf(store.middle)) }),
  "list, from any place": async (store) =>
    listSessions(store.database, organization, { limit: 20, cursor: await cursorOf(store, one(store)) }),
  "list of one status, running": ({ database }) =>
    listSessions(database, organization, { limit: 20, status: ["running"] }),
  "list of one status, draft (none)": ({ database }) =>
    listSessions(database, organization, { limit: 20, status: ["draft"] }),
  "list of one automation, 1 of 6": ({ database }) =>
    listSessions(database, organization, { limit: 20, automationId: rareAutomation.replace(/9$/u, "1") }),
  "list of one automation, 5 in all": ({ database }) =>
    listSessions(database, organization, { limit: 20, automationId: rareAutomation }),
  "search by id": (store) => searchSessions(store.database, organization, one(store), { limit: 20 }),
  "search, in 5 in all": search(rareWord),
  "search, in none": search("zzzzzz"),
  "search, in 30 %": search("common"),
  "search, in 1 %": search("medium"),
  "search, in 0.1 %": search("seldom"),
  "search, in 30 % and 1 %": search("common medium"),
  "search, in 30 % and 5 in all": search(`common ${rareWord}`),
  "search, in 1 %, from the middle": async (store) =>
    search("medium", { cursor: await cursorOf(store, anyOf(store.middle)) })(store),
  "search, in 1 %, from any place": async (store) =>
    search("medium", { cursor: await cursorOf(store, one(store)) })(store),
  "search, in 30 %, of the failed (20 %)": search("common", { status: ["failed"] }),
  "search, in 0.1 %, of the failed (20 %)": search("seldom", { status: ["failed"] }),
  "search, in 1 %, of an automation (1 of 6)": search("medium", { automationId: rareAutomation.replace(/9$/u, "1") }),
  "search, in 1 % of an organization of 1,000": search("medium", {}, smallOrganization),
  "search, in 30 % of an organization of 1,000": search("common", {}, smallOrganization),
};

async function openStore(server: string, rows: number): Promise<Store> {
  const url = (name: string): string => server.replace("/postgres?", `/${name}?`);
  const open = (name: string): Promise<Database> =>
    openDatabase({ url: url(name), directory: "", logger: createLogger("error") });
  const name = `size_${rows}`;
  const administration = new pg.Client({ connectionString: server });
  await administration.connect();
  const { rowCount } = await administration.query("select 1 from pg_database where datname = $1", [name]);
  if (rowCount === 0) {
    // Under another name until it is whole.
    await administration.query(`drop database if exists filling`);
    await administration.query(`create database filling`);
    await (await open("filling")).close();
    await fill(url("filling"), rows, (text) => process.stderr.write(`${new Date().toISOString()} ${text}\n`));
    await administration.query(`alter database filling rename to ${name}`);
  }
  await administration.end();
  const database = await open(name);
  await database.pool.query("insert into organization (id, name) values ($1, 'new') on conflict do nothing", [
    newOrganization,
  ]);
  // Of so many numbers, `step` apart, up to the last; the organization has six in ten of them.
  const sessionsOf = async (last: number, step: number, count: number): Promise<string[]> => {
    const { rows: known } = await database.pool.query<{ id: string }>(
      `select session.id from generate_series($1::bigint, greatest(10, $1::bigint - $2 * ($3 - 1)), -$2) n
       join session on session.id = ${sessionIdSql("n")} where organization_id = $4`,
      [last, step, count, organization],
    );
    return known.map(({ id }) => id);
  };
  const repository = await database.pool.query<{ id: string }>(`select ${repositories.usual} as id`);
  return {
    rows,
    database,
    repository: repository.rows[0]?.id ?? "",
    known: await sessionsOf(rows, 10 * Math.max(1, Math.floor(rows / 10_000)), 1_000),
    middle: await sessionsOf(rows / 2, 10, 30),
    recent: await sessionsOf(rows, 10, 50),
  };
}

async function compare(stores: readonly Store[], question: Question): Promise<number[][]> {
  const took = stores.map((): number[] => []);
  for (let round = -1; round < rounds; round += 1) {
    for (const [index, store] of stores.entries()) {
      for (let time = 0; time < questionsEach; time += 1) {
        const before = performance.now();
        await question(store);
        const ms = performance.now() - before;
        // The first round warms up; a question that takes a second is not asked for hours.
        if (round >= 0) took[index]?.push(ms);
        if (ms > 1_000) break;
      }
    }
  }
  return took.map((all) => all.toSorted((a, b) => a - b));
}

const folder = options.folder ?? (await mkdtemp(join(tmpdir(), "offstage-size-")));
await mkdir(folder, { recursive: true });
// The unprivileged user that the database runs as under root must be able to pass.
await chmod(folder, 0o755);
const server = await startEmbeddedServer({
  directory: join(folder, "postgres"),
  logger: createLogger("warn"),
});
const stores: Store[] = [];
try {
  for (const rows of sizes) stores.push(await openStore(server.url, rows));
  const lines: string[][] = [];
  for (const [name, question] of Object.entries(questions).filter(([text]) => text.includes(options.only))) {
    const took = await compare(stores, question);
    process.stderr.write(`${name}: ${took.map((all) => quantile(all, 0.5).toFixed(2)).join(", ")} ms\n`);
    const p50 = took.map((all) => quantile(all, 0.5));
    lines.push([
      name,
      ...took.flatMap((all) => [quantile(all, 0.5).toFixed(2), quantile(all, 0.99).toFixed(2)]),
      ((p50.at(-1) ?? Number.NaN) / (p50[0] ?? Number.NaN)).toFixed(2),
    ]);
  }
  const head = ["sessions", ...sizes.flatMap((rows) => [`${rows} p50 ms`, "p99 ms"]), "last / first"];
  process.stdout.write(`${machine()}\n\n${table(head, lines)}`);
} finally {
  for (const store of stores) await store.database.close();
  await server.stop();
  if (options.folder === undefined) await rm(folder, { recursive: true, force: true });
}
