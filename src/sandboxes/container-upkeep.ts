import { randomUUID } from "node:crypto";
import { readFileSync, readlinkSync } from "node:fs";
import type Docker from "dockerode";
import type { Logger } from "../observability.ts";
import { callEngine, type Patience } from "./container-call.ts";
import { messageOf } from "./container-engine.ts";

/** Whose a container is: the server by an id that it keeps over restarts, wherever it runs, and the process that made it. */
export const serverLabel = "dev.offstage.server";
export const processLabel = "dev.offstage.process";

/** How long after one that failed a removal is tried again, doubled each time, and how often before it is left to the sweep. */
export interface Retries {
  readonly firstMs: number;
  readonly longestMs: number;
  readonly most: number;
  /** Time between sweeps. */
  readonly sweepMs: number;
}

export const usualRetries: Retries = { firstMs: 1_000, longestMs: 60_000, most: 8, sweepMs: 60_000 };

export interface UpkeepOptions {
  readonly docker: Docker;
  /** Of the server, the same over restarts and different from any other that uses the engine. */
  readonly serverId: () => Promise<string>;
  readonly patience: Patience;
  readonly retries: Retries;
  readonly logger: Logger | null;
}

/** Sees to it that each container that this server made is gone in the end, whatever its engine does. */
export interface Upkeep {
  /** A name for a container that is about to be made: it is left alone until `remove` or `removeLater`. */
  hold(): string;
  labels(): Promise<Record<string, string>>;
  /** Removes it with everything in it. Where that fails it is done later. Never rejects. @returns whether it is gone */
  remove(name: string): Promise<boolean>;
  /** For one that the engine could not be asked to remove, or that may come to be only now. */
  removeLater(name: string): void;
  /** Removes what is this server's and nobody's any more: of processes that are gone, and what was left to it. @throws Error of the engine */
  sweep(): Promise<void>;
  /** Sweeps now and from time to time. @returns what stops that, safe to call twice */
  tend(): () => Promise<void>;
}

export function createUpkeep({ docker, serverId, patience, retries, logger }: UpkeepOptions): Upkeep {
  const thisProcess = processName();
  const held = new Set<string>();
  const waiting = new Map<string, NodeJS.Timeout>();

  /** @returns false where there is none of that name */
  function removeNow(name: string): Promise<boolean> {
    return callEngine({ toDo: "remove a container", limitMs: patience.workMs }, (abortSignal) =>
      docker
        .getContainer(name)
        .remove({ force: true, v: true, abortSignal })
        .then(
          () => true,
          (error: unknown) => {
            if ((error as { statusCode?: number }).statusCode === 404) return false;
            throw error;
          },
        ),
    );
  }

  async function remove(name: string): Promise<boolean> {
    try {
      await removeNow(name);
      held.delete(name);
      return true;
    } catch (error) {
      logger?.warn({ err: error, container: name }, "could not remove a container; will try again");
      removeLater(name);
      return false;
    }
  }

  function removeLater(name: string): void {
    held.delete(name);
    if (!waiting.has(name)) again(name, 1);
  }

  function again(name: string, attempt: number): void {
    const afterMs = Math.min(retries.longestMs, retries.firstMs * 2 ** (attempt - 1));
    const timer = setTimeout(() => void tryAgain(name, attempt), afterMs);
    timer.unref();
    waiting.set(name, timer);
  }

  async function tryAgain(name: string, attempt: number): Promise<void> {
    const problem = await removeNow(name).then(
      (wasThere) => (wasThere ? null : "it is not there, and may yet come to be"),
      messageOf,
    );
    if (!waiting.has(name)) return;
    waiting.delete(name);
    if (problem === null) logger?.info({ container: name, attempt }, "removed a container that could not be before");
    else if (attempt < retries.most) again(name, attempt + 1);
    else logger?.debug({ container: name, problem }, "left a container to the sweep");
  }

  async function sweep(): Promise<void> {
    const label = `${serverLabel}=${await serverId()}`;
    const list = { all: true, filters: { label: [label] } };
    const left = await callEngine({ toDo: "list its containers", limitMs: patience.answerMs }, (abortSignal) =>
      docker.listContainers({ ...list, abortSignal }),
    );
    const problems: unknown[] = [];
    for (const { Id, Names, Labels } of left) {
      const names = Names.map((name) => name.replace(/^\//u, ""));
      const maker = Labels[processLabel] ?? "";
      const isInUse = maker === thisProcess ? names.some((name) => held.has(name)) : isAlive(maker, thisProcess);
      if (isInUse) continue;
      try {
        await removeNow(Id);
        logger?.info({ container: names[0] ?? Id }, "removed a container that was left");
      } catch (error) {
        problems.push(error);
      }
    }
    if (problems.length > 0) throw problems[0];
  }

  function tend(): () => Promise<void> {
    let sweeping: Promise<void> = Promise.resolve();
    let failed = false;
    const sweepOnce = (): void => {
      sweeping = sweeping.then(sweep).then(
        () => {
          failed = false;
        },
        (error: unknown) => {
          // Told once: an engine that is gone is gone for many times.
          if (!failed) logger?.warn({ err: error }, "could not remove containers that were left; will try again");
          failed = true;
        },
      );
    };
    sweepOnce();
    const timer = setInterval(sweepOnce, retries.sweepMs);
    timer.unref();
    return () => {
      clearInterval(timer);
      // What is left is the next one's.
      for (const each of waiting.values()) clearTimeout(each);
      waiting.clear();
      return Promise.resolve();
    };
  }

  return {
    hold() {
      const name = `offstage-${randomUUID()}`;
      held.add(name);
      return name;
    },
    labels: async () => ({ [serverLabel]: await serverId(), [processLabel]: thisProcess }),
    remove,
    removeLater,
    sweep,
    tend,
  };
}

/** The kernel's start, the namespace in which a number of a process means something, the number, and when that began. */
function processName(): string {
  try {
    const boot = readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim();
    return `${boot} ${readlinkSync("/proc/self/ns/pid")} ${process.pid} ${startOf(process.pid)}`;
  } catch {
    // No Linux: of other processes nothing is known then.
    return `- - ${process.pid} ${Math.round(Date.now() - process.uptime() * 1_000)}`;
  }
}

/** In ticks since the machine started (proc_pid_stat(5)); the name before it may hold anything. */
function startOf(pid: number): string {
  const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
  return stat.slice(stat.lastIndexOf(")") + 2).split(" ")[19] ?? "";
}

/**
 * Whether the process that made a container still runs; one of another machine or container had this server's id before it.
 * @param thisProcess what is known of this one
 */
function isAlive(maker: string, thisProcess: string): boolean {
  const [boot, namespace, pid, start] = maker.split(" ");
  const [ownBoot, ownNamespace] = thisProcess.split(" ");
  if (boot !== ownBoot || namespace !== ownNamespace) return false;
  try {
    return startOf(Number(pid)) === start;
  } catch {
    return false;
  }
}
