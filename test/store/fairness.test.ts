import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { Database } from "../../src/database/database.ts";
import { claimJob, completeJob, createJobs } from "../../src/store/automations/jobs.ts";
import { finishSession, type ClaimedSession } from "../../src/store/queue/claims.ts";
import { recoverSessions } from "../../src/store/queue/lease.ts";
import { estimateWait, queueDepth } from "../../src/store/queue/queue.ts";
import { reportWorker } from "../../src/store/queue/worker-nodes.ts";
import { createRepository } from "../../src/store/repositories/repositories.ts";
import { setLimits } from "../../src/store/repositories/repository-settings.ts";
import { cancelSession } from "../../src/store/sessions/sessions.ts";
import { createTestDatabase, type TestDatabase } from "../database.ts";
import { addAutomation, addOrganization, addSession, atOnce, claim, requireClaim } from "./fixtures.ts";

let testDatabase: TestDatabase;
let database: Database;

beforeEach(async () => {
  testDatabase = await createTestDatabase();
  ({ database } = testDatabase);
});

afterEach(() => testDatabase.close());

async function addRepository(organizationId: string, name: string) {
  const url = `https://git.example/acme/${name}`;
  return createRepository(database, organizationId, { url, key: url, name, branch: null, description: null });
}

/** The next `count` claims, none of which ends. */
async function claims(count: number): Promise<ClaimedSession[]> {
  const taken: ClaimedSession[] = [];
  for (let index = 0; index < count; index += 1) taken.push(await requireClaim(database));
  return taken;
}

const titles = (taken: readonly ClaimedSession[]): string[] => taken.map(({ title }) => title);
const countOf = <T>(items: readonly T[], wanted: T): number => items.filter((item) => item === wanted).length;

describe("between organizations", () => {
  test("one that queued a hundred leaves every second place to another", async () => {
    const noisy = await addOrganization(database);
    const quiet = await addOrganization(database);
    await atOnce(100, () => addSession(database, noisy, { priority: 1 }));
    await atOnce(3, () => addSession(database, quiet, { priority: 9 }));
    const taken = await claims(6);
    expect(
      countOf(
        taken.map(({ organizationId }) => organizationId),
        quiet,
      ),
    ).toBe(3);
  });

  test("one that runs much lets those go first that run little", async () => {
    const busy = await addOrganization(database);
    await atOnce(6, () => addSession(database, busy));
    await claims(4);
    const late = await addOrganization(database);
    await atOnce(2, () => addSession(database, late));
    expect((await claims(2)).every(({ organizationId }) => organizationId === late)).toBe(true);
  });
});

test("however many organizations wait for their repositories, the one behind them is served", async () => {
  await atOnce(51, async (index) => {
    const organizationId = await addOrganization(database);
    const repository = await addRepository(organizationId, `full-${index}`);
    await addSession(database, organizationId, { repositories: [repository], priority: 1 });
    await addSession(database, organizationId, { repositories: [repository], priority: 1 });
  });
  const narrow = { maximum: 100, perRepository: 1 };
  for (let index = 0; index < 51; index += 1) await requireClaim(database, narrow);
  expect(await claim(database, narrow)).toBeNull();
  const behind = await addOrganization(database);
  await atOnce(2, () => addSession(database, behind, { priority: 9 }));
  expect((await requireClaim(database, narrow)).organizationId).toBe(behind);
  expect((await requireClaim(database, narrow)).organizationId).toBe(behind);
});

describe("within an organization", () => {
  test("automations and people take turns, however much one has queued", async () => {
    const organizationId = await addOrganization(database);
    const noisy = await addAutomation(database, organizationId, "noisy");
    const rare = await addAutomation(database, organizationId, "rare");
    await atOnce(50, () => addSession(database, organizationId, { title: "noisy", automationId: noisy }));
    await atOnce(3, () => addSession(database, organizationId, { title: "rare", automationId: rare }));
    await atOnce(3, () => addSession(database, organizationId, { title: "asked" }));
    const taken = titles(await claims(9));
    expect([countOf(taken, "noisy"), countOf(taken, "rare"), countOf(taken, "asked")]).toEqual([3, 3, 3]);
  });

  test("more urgent sessions come first, whoever queued them", async () => {
    const organizationId = await addOrganization(database);
    const automation = await addAutomation(database, organizationId, "urgent");
    await atOnce(3, () => addSession(database, organizationId, { title: "asked" }));
    await atOnce(3, () =>
      addSession(database, organizationId, { title: "urgent", automationId: automation, priority: 1 }),
    );
    expect(titles(await claims(3))).toEqual(["urgent", "urgent", "urgent"]);
  });
});

test("a session whose worker died goes on before others begin, whatever lane is next", async () => {
  const organizationId = await addOrganization(database);
  const noisy = await addAutomation(database, organizationId, "noisy");
  await atOnce(3, () => addSession(database, organizationId, { title: "noisy", automationId: noisy }));
  const [first] = await claims(3);
  await atOnce(2, () => addSession(database, organizationId, { title: "asked" }));
  await database.pool.query("update session set lease_until = now() - interval '1 second' where id = $1", [
    first?.sessionId,
  ]);
  expect(await recoverSessions(database, {})).toBe(1);
  const taken = await claims(3);
  expect(taken[0]?.sessionId).toBe(first?.sessionId);
  expect(titles(taken.slice(1))).toEqual(["asked", "asked"]);
});

describe("a repository", () => {
  test("never has more sessions at work than it may, under 20 claimers, and holds up no other", async () => {
    const organizationId = await addOrganization(database);
    const narrow = await addRepository(organizationId, "narrow");
    const wide = await addRepository(organizationId, "wide");
    await setLimits(database, organizationId, narrow.id, { maxRunningSessions: 2 });
    await atOnce(10, () => addSession(database, organizationId, { title: "narrow", repositories: [narrow] }));
    await atOnce(4, () => addSession(database, organizationId, { title: "both", repositories: [wide, narrow] }));
    await atOnce(5, () => addSession(database, organizationId, { title: "wide", repositories: [wide] }));
    const taken = (await atOnce(20, () => claim(database))).filter((held) => held !== null);
    expect(taken.filter(({ repositories }) => repositories.some(({ id }) => id === narrow.id))).toHaveLength(2);
    expect(countOf(titles(taken), "wide")).toBe(5);
  });

  test("goes on when one of its sessions is over, and the server's limit holds where it has none", async () => {
    const organizationId = await addOrganization(database);
    const repository = await addRepository(organizationId, "one");
    await atOnce(2, () => addSession(database, organizationId, { repositories: [repository] }));
    const narrow = { maximum: 100, perRepository: 1 };
    const first = await requireClaim(database, narrow);
    expect(await claim(database, narrow)).toBeNull();
    await finishSession(database, first, { status: "cancelled", summary: null, failure: null });
    expect(await claim(database, narrow)).not.toBeNull();
  });
});

describe("triggers", () => {
  test("of one automation that came a thousand times leave others their turn", async () => {
    const organizationId = await addOrganization(database);
    const noisy = await addAutomation(database, organizationId, "noisy");
    const rare = await addAutomation(database, organizationId, "rare");
    const other = await addOrganization(database);
    const elsewhere = await addAutomation(database, other, "elsewhere");
    const create = (organization: string, automationId: string) =>
      createJobs(database, [
        { id: crypto.randomUUID(), organizationId: organization, automationId, priority: 5, payload: {} },
      ]);
    await atOnce(300, () => create(organizationId, noisy));
    await create(organizationId, rare);
    await create(other, elsewhere);
    const served = new Set<string>();
    let taken = 0;
    while (served.size < 3 && taken < 100) {
      const job = await claimJob(database, { worker: "worker", leaseMs: 60_000 });
      if (job === null) break;
      served.add(job.automation.id);
      taken += 1;
      await completeJob(database.pool, job, crypto.randomUUID());
    }
    expect(served).toEqual(new Set([noisy, rare, elsewhere]));
  });

  test("are each taken once by many at once", async () => {
    const organizationId = await addOrganization(database);
    const automations = await atOnce(4, (index) => addAutomation(database, organizationId, `many-${index}`));
    await atOnce(60, (index) =>
      createJobs(database, [
        {
          id: crypto.randomUUID(),
          organizationId,
          automationId: automations[index % 4] ?? "",
          priority: 1 + (index % 9),
          payload: {},
        },
      ]),
    );
    const taken: string[] = [];
    await atOnce(8, async () => {
      for (let misses = 0; misses < 20;) {
        const job = await claimJob(database, { worker: "worker", leaseMs: 60_000 });
        if (job === null) misses += 1;
        else taken.push(job.id);
      }
    });
    expect(taken).toHaveLength(60);
    expect(new Set(taken).size).toBe(60);
  });
});

test("the depth of a queue counts what waits, of one organization, and no further than asked", async () => {
  const organizationId = await addOrganization(database);
  await atOnce(5, () => addSession(database, organizationId));
  await addSession(database, await addOrganization(database));
  await claims(1);
  expect(await queueDepth(database, organizationId)).toBeGreaterThanOrEqual(4);
  expect(await queueDepth(database, organizationId, 3)).toBe(3);
});

test("a wait is estimated from the last sessions and the workers that are there", async () => {
  const organizationId = await addOrganization(database, 2);
  expect(await estimateWait(database, organizationId, 0, 20)).toBeNull();
  await addSession(database, organizationId);
  const held = await requireClaim(database);
  await cancelSession(database, organizationId, held.sessionId);
  await database.pool.query(
    `update session set status = 'completed', started_at = now() - interval '60 seconds', finished_at = now()`,
  );
  expect(await estimateWait(database, organizationId, 0, 20)).toBeNull();
  await reportWorker(database, { id: "worker", agents: [], defaultAgent: null, concurrency: 8 });
  expect(await estimateWait(database, organizationId, 0, 20)).toBe(30);
  expect(await estimateWait(database, organizationId, 3, 20)).toBe(120);
});
