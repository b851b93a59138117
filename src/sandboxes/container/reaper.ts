import { randomUUID } from "node:crypto";
import { messageOf } from "../../domain/errors/errors.ts";
import { backoffMs } from "../../domain/time/backoff.ts";
import { createPeriodic } from "../../lifecycle/periodic.ts";
import { createService, type Service } from "../../lifecycle/service.ts";
import type { Logger } from "../../observability.ts";
import type { EngineApi } from "./api.ts";
import { callEngine, untilStopped, type CallLimits } from "./call.ts";
import { containerLabel, processLabel, serverLabel } from "./labels.ts";
import type { OwnerProcess } from "./owner-process.ts";
import { EngineError } from "./socket.ts";
import { sweepContainers } from "./sweep.ts";
import type { WorkLimiter } from "./work-limiter.ts";

/**
 * After a failed removal: the longest pause before the next try (see `backoffMs`), and how many tries before it is left to
 * the sweep.
 */
export interface Retries {
  readonly firstMs: number;
  readonly longestMs: number;
  readonly most: number;
  /** Time between sweeps. */
  readonly sweepMs: number;
}

/** Default retries. */
export const defaultRetries: Retries = { firstMs: 1_000, longestMs: 60_000, most: 8, sweepMs: 60_000 };

/** Dependencies for reaping containers. */
export interface ReaperOptions {
  readonly engine: EngineApi;
  /** Id of this server: unique among all that use the engine, and constant over restarts. */
  readonly serverId: () => Promise<string>;
  readonly maker: OwnerProcess;
  /** Limits concurrent removals. */
  readonly removals: WorkLimiter;
  readonly patience: CallLimits;
  readonly retries: Retries;
  readonly logger: Logger | null;
}

/** A container that is being created or exists; its id is null until the engine has returned it. */
export interface OwnedContainer {
  readonly name: string;
  readonly id: string | null;
}

/** Makes sure that each container that this server created is removed in the end, whatever its engine does. */
export interface Reaper {
  /** A name for a container that is about to be created: the sweep leaves it alone until `remove` or `removeLater`. */
  reserveName(): string;
  labels(name: string): Promise<Record<string, string>>;
  /**
   * Removes the container with everything in it; retries later if that fails. Never rejects.
   * @returns whether it is gone
   */
  remove(held: OwnedContainer): Promise<boolean>;
  /** For one that the engine could not be asked to remove, or that may come to be only now. */
  removeLater(held: OwnedContainer): void;
  /**
   * Removes this server's containers that no process needs: those of ended processes, and those whose removal failed.
   * @throws Error of the engine
   */
  sweep(): Promise<void>;
  /** Sweeps at its start and then periodically. When it stops, no removal is tried again: the next process does that. */
  readonly sweeps: Service;
}

/** Creates the reaper of this process's containers. */
export function createReaper(options: ReaperOptions): Reaper {
  const { engine, serverId, maker, removals, patience, retries, logger } = options;
  const owned = new Set<string>();
  const waiting = new Map<string, NodeJS.Timeout>();

  /** @returns false if there is no container of that id or name */
  function removeNow(idOrName: string, stopping?: AbortSignal): Promise<boolean> {
    const until = untilStopped(stopping, patience);
    return removals.run(() =>
      callEngine({ action: "remove a container", limitMs: patience.workMs, until }, (signal) =>
        engine.remove(idOrName, signal).then(
          () => true,
          (error: unknown) => {
            if (error instanceof EngineError && error.status === 404) return false;
            throw error;
          },
        ),
      ),
    );
  }

  async function remove(one: OwnedContainer): Promise<boolean> {
    try {
      await removeNow(one.id ?? one.name);
      owned.delete(one.name);
      return true;
    } catch (error) {
      logger?.warn({ err: error, container: one.name }, "could not remove a container; will retry");
      removeLater(one);
      return false;
    }
  }

  function removeLater(one: OwnedContainer): void {
    owned.delete(one.name);
    if (!waiting.has(one.name)) again(one, 1);
  }

  function again(one: OwnedContainer, attempt: number): void {
    const afterMs = backoffMs(attempt, { fromMs: retries.firstMs, toMs: retries.longestMs, jitter: 0.5 });
    const timer = setTimeout(() => void tryAgain(one, attempt), afterMs);
    timer.unref();
    waiting.set(one.name, timer);
  }

  async function tryAgain(one: OwnedContainer, attempt: number): Promise<void> {
    const { name, id } = one;
    const problem = await removeNow(id ?? name).then(
      (wasThere) => (wasThere || id !== null ? null : "it is not there, and may yet come to be"),
      messageOf,
    );
    if (!waiting.has(name)) return;
    waiting.delete(name);
    if (problem === null) logger?.info({ container: name, attempt }, "removed a container after a retry");
    else if (attempt < retries.most) again(one, attempt + 1);
    else logger?.debug({ container: name, problem }, "leaving a container to the next sweep");
  }

  async function sweep(stopping?: AbortSignal): Promise<void> {
    await sweepContainers({
      engine,
      server: await serverId(),
      process: await maker.name(),
      maker,
      isHeld: (name) => owned.has(name),
      remove: (id) => removeNow(id, stopping),
      patience,
      logger,
      stopping,
    });
  }

  let failed = false;
  const passes = createPeriodic({
    everyMs: retries.sweepMs,
    async pass(stopping) {
      await sweep(stopping);
      failed = false;
    },
    onFailure(error) {
      // Logged once, not at every sweep while the engine is down.
      if (!failed) logger?.warn({ err: error }, "could not remove leftover containers; will retry");
      failed = true;
    },
  });
  const sweeps = createService({
    start: () => passes.start(),
    async stop() {
      await passes.stop();
      for (const each of waiting.values()) clearTimeout(each);
      waiting.clear();
    },
  });

  return {
    reserveName() {
      const name = `offstage-${randomUUID()}`;
      owned.add(name);
      return name;
    },
    labels: async (name) => ({
      [serverLabel]: await serverId(),
      [processLabel]: await maker.name(),
      [containerLabel]: name,
    }),
    remove,
    removeLater,
    sweep: () => sweep(),
    sweeps,
  };
}
