import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { Database } from "../../src/database/database.ts";
import { releaseClaim, type ClaimedSession } from "../../src/store/queue/claims.ts";
import { recoverSessions } from "../../src/store/queue/lease.ts";
import { failSession } from "../../src/store/queue/retry.ts";
import { removeWorker, reportWorker } from "../../src/store/queue/worker-nodes.ts";
import { createRepository } from "../../src/store/repositories/repositories.ts";
import { setLimits } from "../../src/store/repositories/repository-settings.ts";
import { requireSession } from "../../src/store/sessions/sessions.ts";
import { createTestDatabase, type TestDatabase } from "../database.ts";
import { addAutomation, addOrganization, addSession, claim, expireLease, requireClaim } from "./fixtures.ts";

let testDatabase: TestDatabase;
let database: Database;
let organizationId: string;

beforeEach(async () => {
  testDatabase = await createTestDatabase();
  ({ database } = testDatabase);
  organizationId = await addOrganization(database);
});

afterEach(() => testDatabase.close());

const claimTitle = async (worker = "worker"): Promise<string | null> =>
  (await claim(database, { worker }))?.title ?? null;

async function lose({ sessionId }: ClaimedSession): Promise<void> {
  await expireLease(database, sessionId);
  expect(await recoverSessions(database, {})).toBe(1);
}

/** Its worker should have renewed it by now, and has not. */
const neglect = ({ sessionId }: ClaimedSession) =>
  database.pool.query("update session set lease_until = now() + $2 * interval '1 millisecond' where id = $1", [
    sessionId,
    // Of leases as long as here, the last six seconds count.
    5_000,
  ]);

const list = (id: string, concurrency: number) =>
  reportWorker(database, { id, agents: [], defaultAgent: null, concurrency });

describe("sessions that were interrupted", () => {
  test("go on in the order in which that happened, whatever lane is next", async () => {
    const held: ClaimedSession[] = [];
    for (const title of ["first", "second", "third"]) {
      const automationId = await addAutomation(database, organizationId, title);
      await addSession(database, organizationId, { title, automationId });
      held.push(await requireClaim(database));
    }
    // The lane of the one that waits the longest runs the most, and it was queued last.
    await addSession(database, organizationId, { title: "more", automationId: await automationOf(held[2]) });
    await requireClaim(database);
    for (const session of held.toReversed()) await lose(session);
    expect([await claimTitle(), await claimTitle(), await claimTitle()]).toEqual(["third", "second", "first"]);
  });

  async function automationOf(session: ClaimedSession | undefined): Promise<string> {
    const { rows } = await database.pool.query<{ id: string }>(
      "select automation_id as id from session where id = $1",
      [session?.sessionId],
    );
    return rows[0]?.id ?? "";
  }

  test("go on before an older one of the same lane begins", async () => {
    const url = "https://git.example/acme/narrow";
    const described = { url, key: url, name: "narrow", branch: null, description: null };
    const repository = await createRepository(database, organizationId, described);
    await setLimits(database, organizationId, repository.id, { maxRunningSessions: 1 });
    await addSession(database, organizationId, { title: "holder", repositories: [repository] });
    const holder = await requireClaim(database);
    await addSession(database, organizationId, { title: "older", repositories: [repository] });
    await addSession(database, organizationId, { title: "interrupted" });
    const interrupted = await requireClaim(database);
    expect(interrupted.title).toBe("interrupted");
    await lose(interrupted);
    await database.pool.query("update session set status = 'completed', worker = null where id = $1", [
      holder.sessionId,
    ]);
    expect([await claimTitle(), await claimTitle()]).toEqual(["interrupted", "older"]);
  });

  test.each(["draining", "no database"] as const)("are those, too, that a worker handed back (%s)", async (why) => {
    const noisy = await addAutomation(database, organizationId, "noisy");
    for (let index = 0; index < 2; index += 1)
      await addSession(database, organizationId, { title: "noisy", automationId: noisy });
    const [first] = [await requireClaim(database), await requireClaim(database)];
    await addSession(database, organizationId, { title: "asked" });
    await releaseClaim(database, first, why);
    expect([await claimTitle(), await claimTitle()]).toEqual(["noisy", "asked"]);
  });

  test("are not those that failed for a passing reason: these wait for their turn", async () => {
    const noisy = await addAutomation(database, organizationId, "noisy");
    for (let index = 0; index < 2; index += 1)
      await addSession(database, organizationId, { title: "noisy", automationId: noisy });
    const [first] = [await requireClaim(database), await requireClaim(database)];
    await addSession(database, organizationId, { title: "asked" });
    const away = {
      code: "forge_unavailable",
      reason: "Away.",
      retryable: true,
      passing: true,
      remedy: "Wait.",
    } as const;
    await failSession(database, first, away, { forMs: 60_000 });
    await database.pool.query("update session set retry_at = null");
    expect([await claimTitle(), await claimTitle()]).toEqual(["asked", "noisy"]);
  });

  test("leave what is more urgent its turn", async () => {
    await addSession(database, organizationId, { title: "interrupted" });
    await lose(await requireClaim(database));
    await addSession(database, organizationId, { title: "urgent", priority: 1 });
    expect([await claimTitle(), await claimTitle()]).toEqual(["urgent", "interrupted"]);
  });
});

describe("the last free place", () => {
  let held: ClaimedSession;

  /** One session at work on a worker, another in the queue, and one place free on each of two workers. */
  beforeEach(async () => {
    await list("alive", 1);
    await list("silent", 1);
    await addSession(database, organizationId, { title: "begun" });
    held = await requireClaim(database, { worker: "silent" });
    await addSession(database, organizationId, { title: "new" });
  });

  test("is for the next in the queue while every lease is renewed", async () => {
    expect(await claimTitle("alive")).toBe("new");
  });

  test("is kept for a session whose lease is not renewed, until its worker is found dead or works again", async () => {
    await neglect(held);
    expect(await claimTitle("alive")).toBeNull();
    await lose(held);
    expect(await claimTitle("alive")).toBe("begun");
  });

  test("is given to another when the worker renews its lease after all", async () => {
    await neglect(held);
    expect(await claimTitle("alive")).toBeNull();
    await database.pool.query("update session set lease_until = now() + interval '1 minute' where id = $1", [
      held.sessionId,
    ]);
    expect(await claimTitle("alive")).toBe("new");
  });

  test("is kept while a session pauses for seconds after its worker's death, and not for longer", async () => {
    await lose(held);
    const pauseFor = (seconds: number) =>
      database.pool.query("update session set retry_at = now() + $2 * interval '1 second' where id = $1", [
        held.sessionId,
        seconds,
      ]);
    await pauseFor(5);
    expect(await claimTitle("alive")).toBeNull();
    await pauseFor(60);
    expect(await claimTitle("alive")).toBe("new");
  });

  test.each<[string, () => Promise<unknown>]>([
    ["there is a place for each on other workers", () => list("roomy", 1)],
    ["it is more urgent", () => database.pool.query("update session set priority = 1 where title = 'new'")],
    [
      "it is another organization's",
      async () => {
        const other = await addOrganization(database);
        await database.pool.query("update session set organization_id = $1 where title = 'new'", [other]);
      },
    ],
    ["the one that asks is not listed yet", () => database.pool.query("delete from worker_node where id = 'alive'")],
  ])("is not kept if %s", async (_, change) => {
    await neglect(held);
    await change();
    expect(await claimTitle("alive")).toBe("new");
  });
});

describe("deaths of workers", () => {
  beforeEach(async () => {
    for (const worker of ["one", "two", "three"]) await list(worker, 4);
    await addSession(database, organizationId, { title: "asked about" });
  });

  /** Each session of the queue is claimed by the worker, which dies. @returns whether all are tried again */
  async function die(worker: string, sessions = 1): Promise<boolean> {
    // It was started again.
    await list(worker, 4);
    const held: ClaimedSession[] = [];
    while (held.length < sessions) held.push(await requireClaim(database, { worker }));
    for (const session of held) await lose(session);
    await database.pool.query("update session set retry_at = null");
    const statuses = held.map(
      async ({ sessionId }) => (await requireSession(database, organizationId, sessionId)).status,
    );
    return (await Promise.all(statuses)).every((status) => status === "queued");
  }

  test("count for a quarter if workers die without the session as well, and be it that they had nothing to do", async () => {
    let deaths = 0;
    while (deaths < 100 && (await die("one"))) {
      deaths += 1;
      await list("three", 4);
      await recoverSessions(database, { worker: "three" });
    }
    // The first counts in full.
    expect(deaths).toBe(33);
  });

  test("count in full if the others stopped in order", async () => {
    let deaths = 0;
    while (deaths < 100 && (await die("one"))) {
      deaths += 1;
      await list("three", 4);
      await removeWorker(database, "three");
      await recoverSessions(database, { worker: "three" });
    }
    expect(deaths).toBe(9);
  });

  test("count in full for sessions that go from worker to worker and are found dead one after the other", async () => {
    await addSession(database, organizationId);
    let deaths = 0;
    while (deaths < 100 && (await die(["one", "two"][deaths % 2] ?? "", 2))) deaths += 1;
    expect(deaths).toBe(9);
  });
});
