import { Logger as GraphileLogger, run } from "graphile-worker";
import pg from "pg";
import { PgBoss } from "pg-boss";
import type { Database } from "../src/database/database.ts";
import { newSession } from "../src/domain/sessions/new-session.ts";
import { createMetrics } from "../src/metrics/metrics.ts";
import type { Logger } from "../src/observability.ts";
import { completeJob, createJobs } from "../src/store/automations/jobs.ts";
import { finishSession } from "../src/store/queue/claims.ts";
import { createSession } from "../src/store/sessions/new-session.ts";
import { createWorker } from "../src/worker/worker.ts";

/** Handlers that run at once, in every queue that has such a number. */
export const concurrency = 20;

/** One way to bring work from a commit to its handler. The handler ends the work as that way wants it ended. */
export interface Queue {
  /** Settles when the work is committed. */
  add(id: string): Promise<void>;
  stop(): Promise<void>;
}

export interface Place {
  readonly url: string;
  /** The service's own, with the pool that all ways but pg-boss take. */
  readonly database: Database;
  readonly organizationId: string;
  readonly logger: Logger;
  /** Called the moment a handler has its work. */
  readonly picked: (id: string) => void;
}

/** Sessions and jobs, as the service takes them. */
export async function offstage({ database, organizationId, logger, picked }: Place): Promise<{
  readonly sessions: Queue;
  readonly jobs: Queue;
}> {
  const automation = crypto.randomUUID();
  await database.pool.query(
    `insert into automation (id, organization_id, name, macro, instructions, repository_ids, priority, paused)
     values ($1, $2, 'bench', 'bench', 'Fix it', '{}', 5, false)`,
    [automation, organizationId],
  );
  const worker = createWorker({
    database,
    logger,
    metrics: createMetrics(),
    id: "bench",
    concurrency,
    leaseMs: 60_000,
    maxRunningPerOrganization: 100_000,
    runSession: async (claim) => {
      picked(claim.sessionId);
      // Not completed: its message was not answered, so that it would be queued again.
      await finishSession(database, claim, { status: "cancelled", summary: null, failure: null });
    },
    runJob: async (job) => {
      picked(job.id);
      await completeJob(database.pool, job, job.id);
    },
  });
  await worker.start();
  return {
    sessions: {
      async add(id) {
        const session = newSession({ id, prompt: "Fix the test", repositories: [], sandboxed: true });
        await createSession(database, organizationId, session);
      },
      stop: () => worker.stop(),
    },
    jobs: {
      async add(id) {
        await createJobs(database, [{ id, organizationId, automationId: automation, priority: 5, payload: {} }]);
      },
      stop: () => worker.stop(),
    },
  };
}

/** The least that a durable pick-up costs: insert and NOTIFY, then one statement with SKIP LOCKED, and one to end it. */
export async function bareLoop({ url, database: { pool }, picked }: Place): Promise<Queue> {
  await pool.query(`
    create table bare (id uuid primary key, body jsonb not null, status text not null default 'queued',
      created_at timestamptz not null default now());
    create index bare_queue on bare (created_at) where status = 'queued'`);
  const listener = new pg.Client({ connectionString: url });
  await listener.connect();
  let running = 0;
  let lookAgain = false;
  let looking = false;
  const look = async (): Promise<void> => {
    lookAgain = true;
    if (looking) return;
    looking = true;
    while (lookAgain) {
      lookAgain = false;
      while (running < concurrency) {
        const { rows } = await pool.query<{ id: string }>({
          name: "bare_claim",
          text: `update bare set status = 'running' where id = (select id from bare where status = 'queued'
                 order by created_at for update skip locked limit 1) returning id, body`,
        });
        if (rows[0] === undefined) break;
        const { id } = rows[0];
        running += 1;
        picked(id);
        void pool
          .query({ name: "bare_end", text: "update bare set status = 'completed' where id = $1", values: [id] })
          .finally(() => {
            running -= 1;
            void look();
          });
      }
    }
    looking = false;
  };
  listener.on("notification", () => void look());
  await listener.query("listen bare");
  return {
    async add(id) {
      await pool.query({
        name: "bare_add",
        text: `with added as (insert into bare (id, body) values ($1, '{"prompt": "Fix the test"}')) select pg_notify('bare', '')`,
        values: [id],
      });
    },
    stop: () => listener.end(),
  };
}

/** As its documentation tunes it for low latency: NOTIFY on, full batches fetched on without a pause. */
export async function pgBoss({ url, picked }: Place): Promise<Queue> {
  const boss = new PgBoss({ connectionString: url, max: concurrency, useListenNotify: true });
  boss.on("error", (error) => process.stderr.write(`pg-boss: ${String(error)}\n`));
  await boss.start();
  await boss.createQueue("bench", { notify: true });
  await boss.work<{ id: string }>(
    "bench",
    { batchSize: concurrency, burstWhenBatchFull: true, pollingIntervalSeconds: 0.5 },
    (jobs) => {
      for (const { data } of jobs) picked(data.id);
      return Promise.resolve();
    },
  );
  return {
    add: async (id) => void (await boss.send("bench", { id })),
    stop: () => boss.stop({ graceful: false }),
  };
}

export async function graphileWorker({ database: { pool }, picked }: Place): Promise<Queue> {
  const runner = await run({
    pgPool: pool,
    concurrency,
    noHandleSignals: true,
    taskList: {
      bench: (payload) => picked((payload as { id: string }).id),
    },
    crontab: "",
    logger: new GraphileLogger(() => () => undefined),
  });
  return {
    add: async (id) => void (await runner.addJob("bench", { id })),
    stop: () => runner.stop(),
  };
}
