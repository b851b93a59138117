import { setTimeout as pause } from "node:timers/promises";
import type { ChaosFleet } from "./fleet.ts";

const pollMs = 20;
/** In this time a session whose worker was killed is found without one. */
const foundMs = 6_000;

/**
 * Kills workers while they run a turn of the feedback loop, each in another session, until so many sessions have lost theirs in one.
 * @param kill ends the worker of that index at once
 */
export async function killDuringTurns(
  fleet: ChaosFleet,
  wanted: number,
  kill: (index: number) => Promise<void>,
  signal: AbortSignal,
): Promise<void> {
  while (!signal.aborted) {
    await pause(pollMs);
    // The database may be away, and a session may have ended just before its worker did.
    const lost = await lostDuringTurns(fleet).catch(() => null);
    if (lost === null) continue;
    if (lost.length >= wanted) return;
    const running = await runningTurns(fleet).catch(() => []);
    const chosen = running.find(({ sessionId }) => !lost.includes(sessionId));
    if (chosen === undefined) continue;
    for (const [index, worker] of fleet.workers.entries())
      if ((await worker.workerId()) === chosen.worker) await kill(index);
    await pause(foundMs, undefined, { signal }).catch(() => undefined);
  }
}

/** Sessions whose worker died while one of their follow-ups was asked for and not done. */
export async function lostDuringTurns({ store }: Pick<ChaosFleet, "store">): Promise<string[]> {
  const { rows } = await store.query<{ id: string }>(
    `select distinct event.session_id as id from event
     where type = 'session.status' and data ->> 'from' = 'running' and data ->> 'reason' like 'Its worker died%'
       and exists (select from event started where started.session_id = event.session_id and started.seq < event.seq
         and started.type = 'agent.started'
         and started.seq > (select min(said.seq) from event said join message on message.id = (said.data ->> 'messageId')::uuid
           where said.session_id = event.session_id and said.type = 'message.user' and message.position > 1))`,
  );
  return rows.map(({ id }) => id);
}

async function runningTurns({ store }: ChaosFleet): Promise<{ readonly sessionId: string; readonly worker: string }[]> {
  const { rows } = await store.query<{ sessionId: string; worker: string }>(
    `select session.id as "sessionId", session.worker from message join session on session.id = message.session_id
     where message.position > 1 and message.status = 'running' and session.status = 'running'
       and exists (select from event started where started.session_id = session.id and started.type = 'agent.started'
         and started.seq > (select max(said.seq) from event said
           where said.session_id = session.id and said.type = 'session.status' and said.data ->> 'to' = 'running'))`,
  );
  return rows;
}
