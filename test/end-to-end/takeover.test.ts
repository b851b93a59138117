import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import pg from "pg";
import { afterAll, beforeAll, expect, test } from "vitest";
import { startFleet, type Fleet } from "../fleet.ts";
import type { ServerProcess } from "../server-process.ts";
import { waitFor } from "../wait-for.ts";
import { createWorld, untilOver, type World } from "../world.ts";
import { waitingScript } from "./script.ts";

/** How long the session of a killed worker has no worker, with the default lease. */
let world: World;
let fleet: Fleet;
let store: pg.Client;
let isKilled = false;

/** What the documentation promises, in milliseconds. */
const leaseMs = 12_000;
const takeoverMs = 15_000;
const hourMs = 3_600_000;

beforeAll(async () => {
  world = await createWorld(waitingScript(() => isKilled));
  fleet = await startFleet(world, { apis: 1, variables: { OFFSTAGE_LEASE_SECONDS: "" } });
  store = new pg.Client({ connectionString: world.variables["DATABASE_URL"] });
  await store.connect();
});

afterAll(async () => {
  await store?.end();
  await fleet?.close();
  await world?.close();
});

/** A worker whose machine's clock is wrong by so many milliseconds, and says what it shows. */
async function startWorker(name: string, wrongBy: number): Promise<ServerProcess> {
  const clock = join(world.data, `${name}-clock.mjs`);
  await writeFile(
    clock,
    `const { now } = Date;
     globalThis.Date = class extends Date {
       constructor(...values) { if (values.length === 0) super(now() + ${wrongBy}); else super(...values); }
       static now() { return now() + ${wrongBy}; }
     };
     console.error("the clock shows", Date.now(), new Date().getTime());`,
  );
  const worker = await fleet.startWorker(name, { NODE_OPTIONS: `--import=${clock}` });
  const shown = await waitFor(() => /the clock shows (\d+) (\d+)/u.exec(worker.output()), "its clock is shown");
  for (const time of shown.slice(1)) expect(Math.abs(Number(time) - wrongBy - Date.now())).toBeLessThan(hourMs / 2);
  return worker;
}

interface Held {
  readonly attempt: number;
  readonly claimedAt: Date;
  readonly leaseUntil: Date;
  /** The database's clock. */
  readonly now: Date;
}

/** The session's row, and when the event of its last claim was written: all by the database's clock. */
async function look(id: string): Promise<Held | null> {
  const { rows } = await store.query<Held>(
    `select attempt, lease_until as "leaseUntil", clock_timestamp() as now,
       (select max(created_at) from event where session_id = session.id and type = 'session.status'
          and data ->> 'to' = 'running') as "claimedAt"
     from session where id = $1 and status = 'running'`,
    [id],
  );
  return rows[0] ?? null;
}

test("another worker has it within 15 seconds of the kill, and not while it is renewed, whatever the workers' clocks show", async () => {
  const { url } = await world.forge.createRepository("acme", "taken-over", { "README.md": "# Before\n" });
  const holder = await startWorker("ahead", hourMs);
  const prompt = "write a.txt: alpha, then shell sleep 600, then write b.txt: beta";
  const { id } = await fleet.api(0).session.create({ prompt, repositories: [url] });
  await waitFor(() => look(id), "it is claimed");
  await startWorker("behind", -hourMs);
  const renewed = await waitFor(async () => {
    const held = await look(id);
    return held !== null && held.leaseUntil.getTime() - held.claimedAt.getTime() > leaseMs ? held : null;
  }, "its lease is renewed");
  expect(renewed.attempt).toBe(1);

  await holder.kill("SIGKILL");
  isKilled = true;
  const killed = await look(id);
  if (killed === null) throw new Error("it was over before the kill");
  expect(killed.attempt).toBe(1);
  // The last renewal was before the kill, and no lease is longer.
  expect(killed.leaseUntil.getTime()).toBeLessThanOrEqual(killed.now.getTime() + leaseMs);

  // How late this process comes round itself, on a machine that has much else to do: so late a worker may come too.
  let late = 0;
  let before = performance.now();
  const taken = await waitFor(async () => {
    await pause(1);
    late = Math.max(late, performance.now() - before - 100);
    before = performance.now();
    const held = await look(id);
    return held?.attempt === 2 ? held : null;
  }, "another worker has it");
  expect(taken.claimedAt.getTime()).toBeGreaterThanOrEqual(killed.leaseUntil.getTime());
  expect(taken.claimedAt.getTime() - killed.now.getTime()).toBeLessThanOrEqual(takeoverMs + late);

  expect(await untilOver(fleet.api(0), id)).toMatchObject({ status: "completed", failure: null });
  expect(await world.forge.pullRequests("acme", "taken-over")).toHaveLength(1);
});
