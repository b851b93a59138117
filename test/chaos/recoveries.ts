import { setTimeout as pause } from "node:timers/promises";
import type { ChaosFleet } from "./fleet.ts";

/** A worker's SIGKILL, with the sessions that it held. */
export interface Kill {
  /** In ms since 1970. */
  readonly at: number;
  readonly sessions: readonly string[];
}

/** How the time was spent, in ms. */
export interface RecoveryParts {
  /** Until the lease ran out, or the worker was back, and the session was in the queue. */
  readonly lease: number;
  /** Until the time of its retry: so many workers had died with it that it pauses. */
  readonly pause: number;
  /**
   * Of the rest: no worker could take it, since the database was away, or every worker was down, frozen, cut off or
   * without disk.
   */
  readonly nobody: number;
  /** Of the rest: some worker was hurt, and those that were not had all their places taken. */
  readonly shrunk: number;
  /** Of the rest: no worker was hurt, and all their places were taken. */
  readonly full: number;
  /** Of the rest: a worker had a free place. */
  readonly free: number;
}

/** What happened to a session between the death of its worker and its next attempt. */
export interface Recovery {
  readonly sessionId: string;
  /** From the SIGKILL to the next attempt, in ms. */
  readonly tookMs: number;
  /** The same without the time in which mishaps left no worker, or no place, to take it. */
  readonly ownMs: number;
  readonly parts: RecoveryParts;
  /** Sessions that began meanwhile, although this one had begun before them. */
  readonly begun: number;
  /** Sessions that went on before it although they were in the queue ten seconds later, when it could have been claimed. */
  readonly overtaken: number;
}

interface Sample {
  readonly at: number;
  /** Of each worker: its free places; null: it is hurt. Null: the database is away. */
  readonly places: readonly (number | null)[] | null;
}

const sampleMs = 200;
/** What is in the queue so much later was surely committed later, on a slow machine too. */
const surelyLaterMs = 10_000;

/** Looks at the fleet all the time, so that each wait can be explained afterwards. */
export function watchPlaces(fleet: ChaosFleet, signal: AbortSignal): readonly Sample[] {
  const samples: Sample[] = [];
  void (async () => {
    while (!signal.aborted) {
      samples.push(await look(fleet));
      await pause(sampleMs);
    }
  })();
  return samples;
}

async function look({ store, workers }: ChaosFleet): Promise<Sample> {
  const at = Date.now();
  try {
    const { rows } = await store.query<{ id: string; seenAt: Date; free: number }>(
      `select id, seen_at as "seenAt", concurrency - (
         select count(*)::integer from session where status = 'running' and worker = worker_node.id) as free
       from worker_node`,
    );
    const places = await Promise.all(
      workers.map(async (worker) => {
        const id = await worker.workerId();
        const row = rows.find((candidate) => candidate.id === id);
        const startedAt = worker.workingSince();
        const isHurt = startedAt === null || worker.link.isCut() || worker.diskIsFull();
        // It reports itself when it has started.
        return row === undefined || isHurt || row.seenAt.getTime() < startedAt ? null : row.free;
      }),
    );
    return { at, places };
  } catch {
    return { at, places: null };
  }
}

interface Move {
  readonly sessionId: string;
  readonly at: number;
  readonly to: string;
  readonly lost: boolean;
  readonly retryAt: number | null;
}

/** From each kill to the next attempts at the sessions that the worker had held, in rising order of the time. */
export async function recoveries(
  fleet: ChaosFleet,
  kills: readonly Kill[],
  samples: readonly Sample[],
): Promise<Recovery[]> {
  const { rows } = await fleet.store.query<Move>(
    `select session_id as "sessionId", extract(epoch from created_at)::float8 * 1000 as at, data ->> 'to' as to,
       coalesce(data ->> 'from' = 'running' and data ->> 'reason' like 'Its worker died%', false) as lost,
       extract(epoch from (data #>> '{retry,at}')::timestamptz)::float8 * 1000 as "retryAt"
     from event where type = 'session.status' order by created_at, seq`,
  );
  const claims = claimsOf(rows);
  const found: Recovery[] = [];
  for (const { at, sessions } of kills) {
    for (const sessionId of sessions) {
      const after = rows.filter((move) => move.sessionId === sessionId && move.at > at);
      const claimed = after.find(({ to }) => to === "running");
      if (claimed === undefined) continue;
      const queued = after.find(({ to, at: movedAt }) => to === "queued" && movedAt <= claimed.at);
      found.push(explain({ sessionId, killedAt: at, queued, claimedAt: claimed.at, samples, claims }));
    }
  }
  return found.toSorted((a, b) => a.tookMs - b.tookMs);
}

interface ClaimMade {
  readonly sessionId: string;
  readonly at: number;
  readonly isFirst: boolean;
  /** When the session was found without a worker before; null: it was not. */
  readonly lostAt: number | null;
}

function claimsOf(moves: readonly Move[]): ClaimMade[] {
  const last = new Map<string, Move>();
  const begun = new Set<string>();
  const claims: ClaimMade[] = [];
  for (const move of moves) {
    const { sessionId, at, to } = move;
    if (to === "running") {
      const before = last.get(sessionId);
      claims.push({ sessionId, at, isFirst: !begun.has(sessionId), lostAt: before?.lost === true ? before.at : null });
      begun.add(sessionId);
    }
    last.set(sessionId, move);
  }
  return claims;
}

function explain(lost: {
  readonly sessionId: string;
  readonly killedAt: number;
  readonly queued: Move | undefined;
  readonly claimedAt: number;
  readonly samples: readonly Sample[];
  readonly claims: readonly ClaimMade[];
}): Recovery {
  const { sessionId, killedAt, claimedAt } = lost;
  const queuedAt = Math.min(claimedAt, lost.queued?.at ?? killedAt);
  const claimableAt = Math.min(claimedAt, Math.max(queuedAt, lost.queued?.retryAt ?? 0));
  const parts = { lease: 0, pause: 0, nobody: 0, shrunk: 0, full: 0, free: 0 };
  const within = (from: number, until: number) => Math.max(0, Math.min(claimedAt, until) - Math.max(killedAt, from));
  parts.pause = claimableAt - queuedAt;
  for (const [index, { at, places }] of lost.samples.entries()) {
    const until = lost.samples[index + 1]?.at ?? Infinity;
    const inLease = Math.min(queuedAt, until) - Math.max(killedAt, at);
    const state = stateOf(places);
    if (inLease > 0) parts[state === "nobody" ? "nobody" : "lease"] += inLease;
    const waiting = within(Math.max(claimableAt, at), until);
    if (waiting > 0) parts[state] += waiting;
  }
  const tookMs = claimedAt - killedAt;
  const meanwhile = lost.claims.filter((claim) => claim.sessionId !== sessionId && claim.at < claimedAt);
  return {
    sessionId,
    tookMs,
    ownMs: tookMs - parts.nobody - parts.shrunk,
    parts,
    begun: meanwhile.filter(({ at, isFirst }) => isFirst && at > killedAt).length,
    overtaken: meanwhile.filter(({ lostAt }) => lostAt !== null && lostAt > claimableAt + surelyLaterMs).length,
  };
}

function stateOf(places: Sample["places"]): "nobody" | "shrunk" | "full" | "free" {
  if (places === null || places.every((free) => free === null)) return "nobody";
  if (places.some((free) => free !== null && free > 0)) return "free";
  return places.includes(null) ? "shrunk" : "full";
}

/**
 * Most lease lengths that a recovery may take of the time that is ours: until the lease was over, the pause before a retry, and what
 * passed while a worker had a place. With the usual lease (15 s) 20 s are 1.3 of them; the rest is for a machine that is slow or busy.
 */
const mostLeases = 7;

/**
 * The recoveries that took too long by our own doing, if that is so of more than one in a hundred.
 * @returns one sentence for each of them
 */
export function slowRecoveries(found: readonly Recovery[], leaseMs: number): string[] {
  const own = ({ parts: { lease, pause: paused, free } }: Recovery): number => lease + paused + free;
  const slow = found.filter((recovery) => own(recovery) > mostLeases * leaseMs);
  if (slow.length <= Math.floor(found.length / 100)) return [];
  return slow.map((recovery) => `a slow recovery: ${describeRecovery(recovery)}`);
}

const inSeconds = (ms: number): string => `${(ms / 1_000).toFixed(1)} s`;

/** One line about the reason of a slow recovery. */
export function describeRecovery({ sessionId, tookMs, parts, begun, overtaken }: Recovery): string {
  const named = Object.entries(parts)
    .filter(([, ms]) => ms >= 50)
    .map(([name, ms]) => `${name} ${inSeconds(ms)}`);
  return `${inSeconds(tookMs)} of ${sessionId}: ${named.join(", ")}; ${begun} began meanwhile, ${overtaken} overtook it`;
}
