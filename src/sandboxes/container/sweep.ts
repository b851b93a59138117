import type { Logger } from "../../observability.ts";
import type { EngineApi, Listed } from "./api.ts";
import { callEngine, untilStopped, type CallLimits } from "./call.ts";
import { containerLabel, processLabel, serverLabel } from "./labels.ts";
import type { OwnerProcess } from "./owner-process.ts";

/** Dependencies of a sweep. */
export interface Sweep {
  readonly engine: EngineApi;
  /** Id of the server that owns the containers. */
  readonly server: string;
  /** Name of this process in the containers' labels. */
  readonly process: string;
  readonly maker: OwnerProcess;
  /** Whether this process still needs the container that it created under this name. */
  readonly isHeld: (name: string) => boolean;
  /** Rejects if the engine does not remove it. */
  readonly remove: (id: string) => Promise<boolean>;
  readonly patience: CallLimits;
  readonly logger: Logger | null;
  /** Ends the sweep after the removal under way. */
  readonly stopping?: AbortSignal | undefined;
}

/**
 * Removes the containers of this server that no process needs any more: those of its ended processes, whether they ever
 * started and whatever they are called now, and those that this process released. Leaves every other container alone,
 * even if the engine lists more than was asked for.
 * @throws the engine's first error, after all were tried; the reason of `stopping` if that aborts
 */
export async function sweepContainers(sweep: Sweep): Promise<void> {
  const { engine, server, maker, patience, logger, stopping } = sweep;
  const call = { action: "list its containers", limitMs: patience.answerMs, until: untilStopped(stopping, patience) };
  const listed = await callEngine(call, (signal) => engine.list(`${serverLabel}=${server}`, signal));
  const own = listed.filter(({ Labels }) => Labels?.[serverLabel] === server);
  const alive = new Map<string, boolean>();
  const problems: unknown[] = [];
  for (const one of own) {
    const by = one.Labels?.[processLabel] ?? "";
    if (!alive.has(by)) alive.set(by, by === sweep.process || (await maker.isAlive(by)));
    const isNeeded = by === sweep.process ? sweep.isHeld(nameOf(one)) : alive.get(by) === true;
    if (isNeeded) continue;
    stopping?.throwIfAborted();
    try {
      await sweep.remove(one.Id);
      logger?.info({ container: nameOf(one) }, "removed a leftover container");
    } catch (error) {
      problems.push(error);
    }
  }
  if (problems.length > 0) throw problems[0];
  await maker.tidy();
}

/** The name under which it was created; its present name may differ. */
function nameOf({ Id, Names, Labels }: Listed): string {
  return Labels?.[containerLabel] ?? Names?.[0]?.replace(/^\//u, "") ?? Id;
}
