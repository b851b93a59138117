import { existsSync } from "node:fs";
import { join } from "node:path";
import { setImmediate as nextTurn } from "node:timers/promises";
import pg from "pg";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { createDatabaseLink, type DatabaseLink } from "../chaos/database-link.ts";
import { startFleet, type Fleet } from "../fleet.ts";
import type { ServerProcess } from "../server-process.ts";
import { waitFor } from "../wait-for.ts";
import { createWorld, noticesOf, untilOver, type World } from "../world.ts";
import { obey } from "./script.ts";

/** The database is away for longer than the lease, from the moment at which an agent has said its last word. */
let world: World;
let fleet: Fleet;
/** Not through the workers' links. */
let store: pg.Client;
let links: Map<string, DatabaseLink>;
let workers: ServerProcess[];
let round = 0;
/** No answer without a call of a tool, which is an agent's last word, ends before. */
let letEnd: PromiseWithResolvers<void>;

beforeAll(async () => {
  world = await createWorld((message) =>
    obey(message).map((action) => ("say" in action ? [action, { endsAfter: letEnd.promise }] : action)),
  );
  fleet = await startFleet(world, { apis: 1 });
  store = new pg.Client({ connectionString: world.variables["DATABASE_URL"] });
  await store.connect();
});

beforeEach(() => {
  links = new Map();
  workers = [];
  round += 1;
  letEnd = Promise.withResolvers();
});

afterEach(async () => {
  for (const worker of workers) await worker.kill("SIGKILL");
  for (const link of links.values()) await link.close();
});

afterAll(async () => {
  await store?.end();
  await fleet?.close();
  await world?.close();
});

/** Makes a worker's way to the database, again if it was closed. */
async function connect(name: string): Promise<string> {
  const direct = world.variables["DATABASE_URL"] ?? "";
  const folder = /(?<=[?&]host=)[^&]+/u;
  const link = await createDatabaseLink(
    decodeURIComponent(folder.exec(direct)?.[0] ?? ""),
    join(world.data, `${name}-link`),
  );
  links.set(name, link);
  return direct.replace(folder, folder.exec(link.url)?.[0] ?? "");
}

async function startWorker(name: string): Promise<ServerProcess> {
  const worker = await fleet.startWorker(name, { DATABASE_URL: await connect(name) });
  workers.push(worker);
  return worker;
}

interface Row {
  readonly worker: string | null;
  readonly workspaceWorker: string | null;
  readonly attempt: number;
  /** Whether the agent has said its last word. */
  readonly hasSaid: boolean;
  /** Whether its lease ran out a second ago. */
  readonly isOut: boolean;
  readonly messages: string;
}

async function look(id: string): Promise<Row> {
  const { rows } = await store.query<Row>(
    `select worker, workspace_worker as "workspaceWorker", attempt,
       exists (select from event where session_id = session.id and type = 'agent.message'
         and data ->> 'text' like 'Did as asked%') as "hasSaid",
       lease_until < clock_timestamp() - interval '1 second' as "isOut",
       (select string_agg(status, ' ') from message where session_id = session.id) as messages
     from session where id = $1`,
    [id],
  );
  const [row] = rows;
  if (row === undefined) throw new Error("there is no session");
  return row;
}

/** When the database goes away: while the agent says its last word, or when that is stored. */
type Moment = "asked" | "said";

/** Has an agent end its turn, and takes the database away before the worker can record it. @returns the session's id */
async function endWithoutDatabase(
  name: string,
  takeAway: () => Promise<unknown>,
  moment: Moment = "said",
): Promise<string> {
  const { url } = await world.forge.createRepository("acme", name, { "README.md": "# Before\n" });
  const { id } = await fleet.api(0).session.create({ prompt: `write ${name}.txt: alpha`, repositories: [url] });
  if (moment === "asked") letEnd.resolve();
  const isNow =
    moment === "said"
      ? async () => (await look(id)).hasSaid
      : async () => (await nextTurn(), requestsFor(name) === askedOnce);
  while (!(await isNow()));
  await takeAway();
  letEnd.resolve();
  expect(await look(id), "the turn was recorded before the database was away").toMatchObject({ messages: "running" });
  const folders = [...links.keys()].map((worker) => join(world.data, worker, "sessions", id));
  await waitFor(() => folders.some((folder) => existsSync(join(folder, "answered.json"))), "the turn has ended");
  return id;
}

/** How often the model was asked in a session. */
function requestsFor(name: string): number {
  return world.model.requests.filter(({ conversation }) => conversation.everything.includes(`write ${name}.txt`))
    .length;
}

/** The one call of a tool, and the last word. */
const askedOnce = 2;

async function expectAskedOnce(name: string, id: string): Promise<void> {
  expect(await untilOver(fleet.api(0), id)).toMatchObject({ status: "completed", failure: null });
  expect(requestsFor(name)).toBe(askedOnce);
  expect(await noticesOf(fleet.api(0), id)).toContainEqual(expect.stringContaining("had ended this turn"));
  expect(await world.forge.pullRequests("acme", name)).toHaveLength(1);
  expect(await look(id)).toMatchObject({ messages: "done" });
  const { events } = await fleet.api(0).session.events(id, { limit: 1_000 });
  const said = events.filter(({ type, data }) => type === "agent.message" && JSON.stringify(data).includes("Did as"));
  expect(said).toHaveLength(1);
}

const moments: readonly Moment[] = ["said", "asked"];

describe.each(moments)(
  "a turn that ended while the database was away, since its last word was %s, is asked once",
  (moment) => {
    test.each<{ how: string; away: () => Promise<unknown>; back: () => Promise<unknown> }>([
      {
        how: "nothing comes through",
        away: () => Promise.resolve([...links.values()].forEach((link) => link.cut())),
        back: () => Promise.resolve([...links.values()].forEach((link) => link.repair())),
      },
      {
        how: "every connection is refused",
        away: () => Promise.all([...links.values()].map((link) => link.close())),
        back: () => Promise.all([...links.keys()].map(connect)),
      },
    ])("by its own worker: $how", async ({ away, back }) => {
      const name = `asked-${round}`;
      await Promise.all(["one", "other"].map((worker) => startWorker(`${worker}-${round}`)));
      const id = await endWithoutDatabase(name, away, moment);
      const before = await look(id);
      await waitFor(async () => (await look(id)).isOut, "its lease has run out");
      await back();
      await expectAskedOnce(name, id);
      const after = await look(id);
      // A new fence, and the same disk.
      expect(after.attempt).toBe(before.attempt + 1);
      expect(after.workspaceWorker).toBe(before.worker);
    });
  },
);

test("a turn whose worker is killed before it could record its end is asked once when the worker is back", async () => {
  const name = `killed-${round}`;
  const worker = await startWorker(`alone-${round}`);
  const id = await endWithoutDatabase(name, async () => links.get(`alone-${round}`)?.cut());
  await worker.kill("SIGKILL");
  await links.get(`alone-${round}`)?.close();
  await startWorker(`alone-${round}`);
  await expectAskedOnce(name, id);
});
