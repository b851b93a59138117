import fc from "fast-check";
import { afterAll, beforeAll, expect, test } from "vitest";
import { ConflictError } from "../../src/domain/errors/errors.ts";
import type { SessionStatus } from "../../src/domain/sessions/status.ts";
import { finishSession, releaseClaim } from "../../src/store/queue/claims.ts";
import { LeaseLostError, recoverSessions, renewClaim, type Claim } from "../../src/store/queue/lease.ts";
import { completeMessage, nextMessage } from "../../src/store/queue/progress.ts";
import { addMessage, cancelSession, queueSession } from "../../src/store/sessions/sessions.ts";
import { createTestDatabase, type TestDatabase } from "../database.ts";
import { addOrganization, addSession, claim, expireLease } from "./fixtures.ts";

/** A session as it must be: everything that decides what may happen next. */
interface Expected {
  readonly id: string;
  status: SessionStatus;
  attempt: number;
  cancelRequested: boolean;
  expired: boolean;
  /** Workers that died since work was requested, a turn ended or a worker handed it back. */
  lost: number;
  readonly messages: ("pending" | "running" | "done")[];
}

/** Every claim that was ever given out, good or stale. */
interface Model {
  readonly sessions: Expected[];
  readonly held: Claim[];
}

interface Real {
  readonly testDatabase: TestDatabase;
  readonly organizationId: string;
}

const limit = 2;
/** Of workers that died: the next one fails the session. */
const lostLimit = 9;
const over = (status: SessionStatus): boolean => ["completed", "failed", "cancelled"].includes(status);

const sessionAt = (model: Model, index: number): Expected => model.sessions[index % model.sessions.length] as Expected;

/** The session that a claim is good for; null for one that is stale. */
function goodFor(model: Model, { sessionId, attempt }: Claim): Expected | null {
  const session = model.sessions.find(({ id }) => id === sessionId);
  const isGood = session?.attempt === attempt && session.status === "running" && !session.expired;
  return isGood ? session : null;
}

async function refused(work: Promise<unknown>, by: new (...parameters: never[]) => Error): Promise<void> {
  await expect(work).rejects.toBeInstanceOf(by);
}

/** What is stored is what the model says, the life that the events tell is the one it had, and the limit holds. */
async function same({ sessions }: Model, { testDatabase, organizationId }: Real): Promise<void> {
  const { rows } = await testDatabase.database.pool.query<{
    id: string;
    status: SessionStatus;
    attempt: number;
    held: boolean;
    events: number;
    last: number;
    announced: SessionStatus | null;
    broken: number;
  }>(
    `select id, status, attempt, worker is not null as held,
       (select count(*)::integer from event where session_id = session.id) as events, last_event::integer as last,
       (select data ->> 'to' from event where session_id = session.id and type = 'session.status' order by seq desc limit 1) as announced,
       (select count(*)::integer from (
         select data ->> 'from' as came, lag(data ->> 'to') over (order by seq) as was from event
         where session_id = session.id and type = 'session.status') as moves where came <> was) as broken
     from session where organization_id = $1`,
    [organizationId],
  );
  expect(rows).toHaveLength(sessions.length);
  for (const { id, status, attempt } of sessions) {
    const row = rows.find((candidate) => candidate.id === id);
    expect(row).toMatchObject({ status, attempt, held: status === "running", broken: 0 });
    expect(row?.events).toBe(row?.last);
    expect(row?.announced ?? status).toBe(status);
  }
  expect(rows.filter(({ status }) => status === "running").length).toBeLessThanOrEqual(limit);
}

class Step implements fc.AsyncCommand<Model, Real> {
  private readonly name: string;
  private readonly possible: (model: Model) => boolean;
  private readonly work: (model: Model, real: Real) => Promise<void>;

  constructor(name: string, possible: (model: Model) => boolean, work: (model: Model, real: Real) => Promise<void>) {
    this.name = name;
    this.possible = possible;
    this.work = work;
  }

  check(model: Readonly<Model>): boolean {
    return this.possible(model);
  }

  async run(model: Model, real: Real): Promise<void> {
    await this.work(model, real);
    await same(model, real);
  }

  toString(): string {
    return this.name;
  }
}

const always = (): boolean => true;
const someSession = ({ sessions }: Model): boolean => sessions.length > 0;
const someClaim = ({ held }: Model): boolean => held.length > 0;

const create = (draft: boolean): Step =>
  new Step(`create${draft ? " a draft" : ""}`, always, async (model, { testDatabase, organizationId }) => {
    const { id } = await addSession(testDatabase.database, organizationId, { queueRightAway: !draft });
    const status = draft ? "draft" : "queued";
    model.sessions.push({
      id,
      status,
      attempt: 0,
      cancelRequested: false,
      expired: false,
      lost: 0,
      messages: ["pending"],
    });
  });

const take = (worker: number): Step =>
  new Step(`worker ${worker} claims`, always, async (model, { testDatabase }) => {
    const held = await claim(testDatabase.database, { worker: `worker ${worker}` });
    const queued = model.sessions.filter(({ status }) => status === "queued");
    const running = model.sessions.filter(({ status }) => status === "running");
    expect(held === null).toBe(queued.length === 0 || running.length >= limit);
    if (held === null) return;
    const session = queued.find(({ id }) => id === held.sessionId);
    if (session === undefined) throw new Error("a session was claimed that was not queued");
    session.status = "running";
    session.attempt += 1;
    session.cancelRequested = false;
    session.expired = false;
    expect(held.attempt).toBe(session.attempt);
    model.held.push(held);
  });

const expire = (index: number): Step =>
  new Step(`the lease of ${index} runs out`, someSession, async (model, { testDatabase }) => {
    const session = sessionAt(model, index);
    if (session.status !== "running") return;
    await expireLease(testDatabase.database, session.id);
    session.expired = true;
  });

const recover = (): Step =>
  new Step("recover", always, async (model, { testDatabase }) => {
    await recoverSessions(testDatabase.database, {});
    // The time of each retry has come, as if it had passed.
    await testDatabase.database.pool.query("update session set retry_at = null where retry_at is not null");
    for (const session of model.sessions) {
      if (session.status !== "running" || !session.expired) continue;
      session.lost += 1;
      session.status = session.cancelRequested ? "cancelled" : session.lost > lostLimit ? "failed" : "queued";
      session.cancelRequested = false;
    }
  });

const renew = (index: number): Step =>
  new Step(`renew ${index}`, someClaim, async (model, { testDatabase }) => {
    const held = model.held[index % model.held.length] as Claim;
    const session = goodFor(model, held);
    const renewed = await renewClaim(testDatabase.database, held, 60_000);
    expect(renewed).toEqual(session === null ? null : { cancelRequested: session.cancelRequested });
  });

const cancel = (index: number): Step =>
  new Step(`cancel ${index}`, someSession, async (model, { testDatabase, organizationId }) => {
    const session = sessionAt(model, index);
    const asked = cancelSession(testDatabase.database, organizationId, session.id);
    if (over(session.status)) return refused(asked, ConflictError);
    await asked;
    if (session.status === "running") session.cancelRequested = true;
    else session.status = "cancelled";
  });

const message = (index: number): Step =>
  new Step(`message ${index}`, someSession, async (model, { testDatabase, organizationId }) => {
    const session = sessionAt(model, index);
    const sent = addMessage(testDatabase.database, organizationId, session.id, {
      id: crypto.randomUUID(),
      text: "More",
      from: null,
    });
    if (session.cancelRequested) return refused(sent, ConflictError);
    await sent;
    if (session.status === "cancelled") {
      for (const [position, status] of session.messages.entries()) {
        if (status === "running") session.messages[position] = "done";
      }
    }
    session.messages.push("pending");
    session.lost = 0;
    if (over(session.status)) session.status = "queued";
  });

const retry = (index: number): Step =>
  new Step(`queue ${index}`, someSession, async (model, { testDatabase, organizationId }) => {
    const session = sessionAt(model, index);
    const asked = queueSession(testDatabase.database, organizationId, session.id);
    if (session.status === "queued" || session.status === "running") return refused(asked, ConflictError);
    await asked;
    if ((session.status === "failed" || session.status === "cancelled") && session.messages.at(-1) !== "done")
      session.messages[session.messages.length - 1] = "pending";
    session.status = "queued";
    session.lost = 0;
  });

const turn = (index: number): Step =>
  new Step(`a turn of ${index}`, someClaim, async (model, { testDatabase: { database } }) => {
    const held = model.held[index % model.held.length] as Claim;
    const session = goodFor(model, held);
    if (session === null) return refused(nextMessage(database, held), LeaseLostError);
    const next = await nextMessage(database, held);
    const position = session.messages.findIndex((status) => status !== "done");
    expect(next?.position ?? 0).toBe(position + 1);
    expect(next?.interrupted ?? false).toBe(session.messages[position] === "running");
    if (next === null) return;
    await completeMessage(database, held, next.id, { answer: "Done.", isKept: true });
    session.messages[position] = "done";
    session.lost = 0;
  });

const begin = (index: number): Step =>
  new Step(`${index} begins a turn`, someClaim, async (model, { testDatabase: { database } }) => {
    const held = model.held[index % model.held.length] as Claim;
    const session = goodFor(model, held);
    if (session === null) return refused(nextMessage(database, held), LeaseLostError);
    await nextMessage(database, held);
    const position = session.messages.findIndex((status) => status !== "done");
    if (position !== -1) session.messages[position] = "running";
  });

const finish = (index: number, status: "completed" | "failed" | "cancelled"): Step =>
  new Step(`${index} ends ${status}`, someClaim, async (model, { testDatabase: { database } }) => {
    const held = model.held[index % model.held.length] as Claim;
    const session = goodFor(model, held);
    const ended = finishSession(database, held, { status, summary: null, failure: null });
    if (session === null) return refused(ended, LeaseLostError);
    const more = status === "completed" && session.messages.includes("pending");
    const reached = more ? (session.cancelRequested ? "cancelled" : "queued") : status;
    expect(await ended).toBe(reached);
    session.status = reached;
    session.cancelRequested = false;
  });

const release = (index: number): Step =>
  new Step(`${index} is handed back`, someClaim, async (model, { testDatabase: { database } }) => {
    const held = model.held[index % model.held.length] as Claim;
    const session = goodFor(model, held);
    const released = releaseClaim(database, held);
    if (session === null) return refused(released, LeaseLostError);
    await released;
    session.status = session.cancelRequested ? "cancelled" : "queued";
    session.cancelRequested = false;
    session.lost = 0;
  });

let testDatabase: TestDatabase;

beforeAll(async () => {
  testDatabase = await createTestDatabase();
});

afterAll(() => testDatabase.close());

const which = fc.nat({ max: 20 });
const steps = fc.commands(
  [
    fc.boolean().map(create),
    fc.nat({ max: 2 }).map(take),
    fc.nat({ max: 2 }).map(take),
    which.map(expire),
    fc.constant(null).map(recover),
    which.map(renew),
    which.map(cancel),
    which.map(message),
    which.map(retry),
    which.map(turn),
    which.map(begin),
    fc
      .tuple(which, fc.constantFrom("completed", "failed", "cancelled"))
      .map(([index, status]) => finish(index, status)),
    which.map(release),
  ],
  { size: "+1", maxCommands: 60 },
);

test("in whatever order things happen, a session is what its life says, held by one, and the limit holds", async () => {
  await fc.assert(
    fc.asyncProperty(steps, async (commands) => {
      const organizationId = await addOrganization(testDatabase.database, limit);
      try {
        const setup = () => ({ model: { sessions: [], held: [] } as Model, real: { testDatabase, organizationId } });
        await fc.asyncModelRun(setup, commands);
      } finally {
        // Out of the next run's way.
        await testDatabase.database.pool.query(
          "update session set status = 'cancelled', worker = null where organization_id = $1",
          [organizationId],
        );
      }
    }),
    { numRuns: 60 },
  );
});
