import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { RepositoryAddress } from "../../src/domain/repositories/repository.ts";
import type { Forge } from "../../src/forges/forge.ts";
import { createForges } from "../../src/forges/forges.ts";
import { createLogger } from "../../src/observability.ts";
import { listWorkers } from "../../src/store/queue/worker-nodes.ts";
import { moveToTarget } from "../../src/store/repositories/pull-requests.ts";
import { createHeartbeat } from "../../src/worker/background/heartbeat.ts";
import { pollPullRequests } from "../../src/worker/background/pull-request-polling.ts";
import { createTestDatabase, type TestDatabase } from "../database.ts";
import { asAzure } from "../forge/azure-url.ts";
import { startForge, type TestForge } from "../forge/server.ts";
import { addOrganization, addSession } from "../store/fixtures.ts";

const logger = createLogger("silent");
let testDatabase: TestDatabase;
/** A forge that never answers. */
let forge: Server;
let calls = 0;

beforeAll(async () => {
  testDatabase = await createTestDatabase();
  forge = createServer(() => void (calls += 1));
  await new Promise<void>((resolve) => forge.listen(0, "127.0.0.1", resolve));
});
afterAll(async () => {
  forge.closeAllConnections();
  await new Promise((resolve) => forge.close(resolve));
  await testDatabase.close();
});

test("a worker that stopped is off the list, though a heartbeat was under way", async () => {
  const { database } = testDatabase;
  const held = Promise.withResolvers<void>();
  const described = Promise.withResolvers<void>();
  let descriptions = 0;
  const heartbeat = createHeartbeat({
    database,
    logger,
    id: "worker",
    everyMs: 1,
    describe: async () => {
      descriptions += 1;
      if (descriptions === 2) {
        described.resolve();
        await held.promise;
      }
      return { agents: [], defaultAgent: null, concurrency: 1 };
    },
  });
  await heartbeat.start();
  expect((await listWorkers(database)).map(({ id }) => id)).toEqual(["worker"]);
  await described.promise;
  const stopped = heartbeat.stop();
  // A removal that does not wait for the heartbeat would be over now.
  await untilIdle();
  held.resolve();
  await stopped;
  await untilIdle();
  expect(await listWorkers(database)).toEqual([]);
});

/** Until nothing that was begun asks the database any more. */
async function untilIdle(): Promise<void> {
  const { pool } = testDatabase.database;
  for (let turn = 0; turn < 10; turn += 1) await new Promise(setImmediate);
  await expect.poll(() => pool.totalCount - pool.idleCount).toBe(0);
}

test("a worker that stops waits for no forge that does not answer, and asks about no further pull request", async () => {
  const { database } = testDatabase;
  const url = `http://127.0.0.1:${(forge.address() as AddressInfo).port}`;
  await addOpenPullRequests(`${url}/acme/widgets`, 2);
  const { forgeOf } = createForges([{ kind: "gitea", webUrl: url, apiUrl: `${url}/api/v1` }]);
  const stopping = new AbortController();
  const round = pollPullRequests({ database, logger, forgeOf, minutes: 5 }, stopping.signal);
  await expect.poll(() => calls).toBe(1);
  stopping.abort();
  expect(await round).toBe(2);
  expect(calls).toBe(1);
});

test("a forge that does not answer delays no other pull requests, and is asked once in a round", async () => {
  const { database } = testDatabase;
  const url = `http://127.0.0.1:${(forge.address() as AddressInfo).port}`;
  const real = await startForge();
  try {
    const before = calls;
    await addOpenPullRequests(`${url}/acme/widgets`, 3);
    const { url: other } = await real.createRepository("acme", "app", { "a.txt": "1\n" });
    await real.commit("acme", "app", "work", { "a.txt": "mine\n" });
    await openForWork(real);
    real.endPullRequest("acme", "app", 1, "merged");
    const sessionId = await addOpenPullRequests(other, 1);
    const { forgeOf } = createForges([
      { kind: "gitea", webUrl: url, apiUrl: `${url}/api/v1` },
      { kind: "gitea", webUrl: real.url, apiUrl: `${real.url}/api/v1`, token: real.token },
    ]);
    let isRoundOver = false;
    const round = pollPullRequests({ database, logger, forgeOf, minutes: 5 }, new AbortController().signal).finally(
      () => (isRoundOver = true),
    );
    const stateOf = async () =>
      (
        await database.pool.query<{ state: string }>("select state from pull_request where session_id = $1", [
          sessionId,
        ])
      ).rows[0]?.state;
    await expect.poll(stateOf).toBe("merged");
    expect(isRoundOver).toBe(false);
    expect([await round, calls - before]).toEqual([4, 1]);
    // One that is closed here, and open there.
    await openForWork(real);
    const close = `update pull_request set state = 'closed', number = 2, checked_at = now() - interval '1 hour',
      closed_at = now() - $2 * interval '1 day' where session_id = $1`;
    const again = () => pollPullRequests({ database, logger, forgeOf, minutes: 5 }, new AbortController().signal);
    await database.pool.query(close, [sessionId, 4]);
    await again();
    expect(await stateOf()).toBe("closed");
    await database.pool.query(close, [sessionId, 2]);
    await again();
    expect(await stateOf()).toBe("open");
    await database.pool.query("update pull_request set state = 'merged' where session_id = $1", [sessionId]);
  } finally {
    await real.close();
  }
});

test.each(["azure", "github", "gitlab", "gitea"] as const)(
  "on %s a pull request that gets another target is recorded with it, in the place of one that was closed",
  async (kind) => {
    const { database } = testDatabase;
    const real = await startForge();
    try {
      const { url } = await real.createRepository("acme", "app", { "a.txt": "1\n" });
      await real.commit("acme", "app", "work", { "a.txt": "mine\n" });
      await real.commit("acme", "app", "release", { "b.txt": "b\n" });
      await openForWork(real);
      const sessionId = await addOpenPullRequests(kind === "azure" ? asAzure(url) : url, 1);
      await database.pool.query(
        `insert into pull_request (id, organization_id, session_id, repository_id, head, target, number, url, state)
         select gen_random_uuid(), organization_id, session_id, repository_id, head, 'release', 7, url, 'closed'
         from pull_request where session_id = $1`,
        [sessionId],
      );
      const apiUrl = `${real.url}${{ azure: "", github: "/api/v3", gitlab: "/api/v4", gitea: "/api/v1" }[kind]}`;
      const { forgeOf } = createForges([{ kind, webUrl: real.url, apiUrl, token: real.token }]);
      const targets = async (): Promise<unknown> =>
        (await database.pool.query("select number, target from pull_request where session_id = $1", [sessionId])).rows;
      for (const target of ["release", "main"]) {
        real.retarget("acme", "app", 1, target);
        await database.pool.query(
          "update pull_request set checked_at = now() - interval '1 hour' where session_id = $1",
          [sessionId],
        );
        await pollPullRequests({ database, logger, forgeOf, minutes: 5 }, new AbortController().signal);
        expect(await targets()).toEqual([{ number: 1, target }]);
      }
      await database.pool.query("update pull_request set state = 'merged' where session_id = $1", [sessionId]);
    } finally {
      await real.close();
    }
  },
);

test.each(["azure", "github", "gitlab", "gitea"] as const)(
  "on %s a pull request that collides with its target says so once, when the forge has made up its mind",
  async (kind) => {
    const { database } = testDatabase;
    const real = await startForge();
    try {
      const { url } = await real.createRepository("acme", "app", { "a.txt": "1\n" });
      await real.commit("acme", "app", "work", { "a.txt": "mine\n" });
      await openForWork(real);
      const sessionId = await addOpenPullRequests(kind === "azure" ? asAzure(url) : url, 1);
      const apiUrl = `${real.url}${{ azure: "", github: "/api/v3", gitlab: "/api/v4", gitea: "/api/v1" }[kind]}`;
      const { forgeOf } = createForges([{ kind, webUrl: real.url, apiUrl, token: real.token }]);
      const round = () => pollPullRequests({ database, logger, forgeOf, minutes: 5 }, new AbortController().signal);
      const known = async (): Promise<unknown> => {
        const { rows } = await database.pool.query<{ mergeable: boolean | null; events: number }>(
          `select mergeable, (select count(*)::integer from event where session_id = $1
             and type = 'pullRequest.conflicted') as events from pull_request where session_id = $1`,
          [sessionId],
        );
        return rows[0];
      };
      // It has to be asked once before it knows, and is asked again in the next round.
      expect([await round(), await known()]).toEqual([1, { mergeable: null, events: 0 }]);
      expect([await round(), await known()]).toEqual([1, { mergeable: true, events: 0 }]);
      expect(await round()).toBe(0);
      await real.commit("acme", "app", "main", { "a.txt": "theirs\n" });
      const interval = "update pull_request set checked_at = now() - interval '1 hour' where session_id = $1";
      await database.pool.query(interval, [sessionId]);
      expect([await round(), await known()]).toEqual([1, { mergeable: true, events: 0 }]);
      expect([await round(), await known()]).toEqual([1, { mergeable: false, events: 1 }]);
      await database.pool.query(interval, [sessionId]);
      expect([await round(), await known()]).toEqual([1, { mergeable: false, events: 1 }]);
      expect(await round()).toBe(0);
    } finally {
      await real.close();
    }
  },
);

test("what a forge said of a pull request counts no more once the session has pushed, or it has another target", async () => {
  const { database } = testDatabase;
  const { pool } = database;
  const real = await startForge();
  try {
    const { url } = await real.createRepository("acme", "app", { "a.txt": "1\n" });
    await real.commit("acme", "app", "release", { "b.txt": "b\n" });
    await real.commit("acme", "app", "work", { "a.txt": "mine\n" });
    await openForWork(real);
    await real.commit("acme", "app", "main", { "a.txt": "theirs\n" });
    const sessionId = await addOpenPullRequests(url, 1);
    const forges = createForges([{ kind: "github", webUrl: real.url, apiUrl: real.apiUrl, token: real.token }]);
    /** A pass in which something happens between the forge's answer and its record. */
    const round = (meanwhile: () => Promise<unknown> = () => Promise.resolve()): Promise<number> => {
      const forgeOf = (address: RepositoryAddress): Forge => {
        const asIs = forges.forgeOf(address);
        return {
          ...asIs,
          async readPullRequest(...asked) {
            const read = await asIs.readPullRequest(...asked);
            await meanwhile();
            return read;
          },
        };
      };
      return pollPullRequests({ database, logger, forgeOf, minutes: 5 }, new AbortController().signal);
    };
    const known = async (): Promise<unknown> => {
      const { rows } = await pool.query(
        `select mergeable, mergeable_asked as asked, target, (select count(*)::integer from event where session_id = $1
           and type = 'pullRequest.conflicted') as events from pull_request where session_id = $1`,
        [sessionId],
      );
      return rows[0] as unknown;
    };
    // What `savePullRequest` does when the session has pushed again.
    const push = () =>
      pool.query(
        `update pull_request set number = number, head_sha = 'b', mergeable = null, mergeable_asked = 0, checked_at = '-infinity'
         where session_id = $1`,
        [sessionId],
      );
    const fresh = { mergeable: null, asked: 0, target: "main", events: 0 };
    await round();
    expect([await round(push), await known()]).toEqual([1, fresh]);
    // A first no is no more counted than a second one.
    expect([await round(push), await known()]).toEqual([1, fresh]);
    await round();
    const { rows } = await pool.query<{ id: string }>("select id from pull_request where session_id = $1", [sessionId]);
    const move = () => moveToTarget(database, { id: rows[0]?.id ?? "", sessionId }, "release");
    const moved = { ...fresh, target: "release" };
    expect([await round(move), await known()]).toEqual([1, moved]);
    // The forge's target is another still: it is read in the next pass, and counted as new there.
    expect([await round(), await known()]).toEqual([1, { ...fresh, asked: 1 }]);
    expect([await round(), await known()]).toEqual([1, { ...fresh, mergeable: false, events: 1 }]);
    await pool.query("update pull_request set state = 'merged' where session_id = $1", [sessionId]);
  } finally {
    await real.close();
  }
});

/** Opens a pull request of the branch `work` on a forge. */
async function openForWork({ apiUrl, token }: TestForge): Promise<void> {
  await fetch(`${apiUrl}/repos/acme/app/pulls`, {
    method: "POST",
    headers: { Authorization: `Bearer ${token}` },
    body: JSON.stringify({ head: "work", base: "main", title: "Work", body: "" }),
  });
}

async function addOpenPullRequests(repositoryUrl: string, count: number): Promise<string> {
  const { database } = testDatabase;
  const organizationId = await addOrganization(database);
  const { id: sessionId } = await addSession(database, organizationId);
  const repositoryId = crypto.randomUUID();
  await database.pool.query(
    "insert into repository (id, organization_id, url, address_key, name) values ($1, $2, $3, $3, 'widgets')",
    [repositoryId, organizationId, repositoryUrl],
  );
  await database.pool.query(
    `insert into pull_request (id, organization_id, session_id, repository_id, head, target, number, url, checked_at)
     select gen_random_uuid(), $1, $2, $3, 'head', 'target-' || number, number, 'https://forge.example', now() - interval '1 hour'
     from generate_series(1, $4) as number`,
    [organizationId, sessionId, repositoryId, count],
  );
  return sessionId;
}
