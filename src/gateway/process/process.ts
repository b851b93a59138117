import { fork, type ChildProcess } from "node:child_process";
import { writeFileSync } from "node:fs";
import { rm } from "node:fs/promises";
import { constants, getPriority, setPriority } from "node:os";
import { join } from "node:path";
import { childEnvironment, compileCache } from "../../domain/child-environment.ts";
import { InvalidInputError } from "../../domain/errors.ts";
import { countedUsage } from "../costs/estimate.ts";
import type { Refusal } from "../egress/egress.ts";
import { modelsSeenFrom, type Gateway } from "../gateway.ts";
import { isRefusal, type Admission, type Admit } from "../models/admission.ts";
import type { ModelTraffic } from "../traffic.ts";
import {
  trafficOf,
  type AskedAdmission,
  type FromGateway,
  type GatewayTask,
  type RequestCount,
  type ToGateway,
} from "./messages.ts";

/** What a gateway's process asks of the server, and reports to it. */
export interface GatewayServices {
  readonly admit: Admit;
  /** Called at most four times a second. */
  readonly onRequests: (counts: readonly RequestCount[]) => void;
  /** Called once for each host, and for the first fifty only. */
  readonly onRefused: (refusal: Refusal) => void;
  /** The process ended before it was closed. */
  readonly onLost: (error: GatewayLostError) => void;
  /** The recording could not be written. */
  readonly onUnrecorded: (problem: string) => void;
}

/** A gateway's process ended unexpectedly: it ran out of memory, or was killed. */
export class GatewayLostError extends Error {
  override readonly name = "GatewayLostError";
}

/** Opens gateways, each in a process of its own. */
export interface GatewayProcesses {
  /** Starts the process of the next gateway ahead of time, unless it is started already. */
  prepare(): void;
  /**
   * Opens a gateway.
   * @throws InvalidInputError as `openGateway` does; GatewayLostError if its process could not be started
   */
  open(task: GatewayTask, services: GatewayServices): Promise<Gateway>;
}

/** Limit of JavaScript's heap in MiB; request bodies and answers are outside of it, with limits of their own. */
const heapMib = 128;
const youngMib = 8;
/** Characters of a process's output kept for the error's message. */
const keptOutput = 2_000;
interface Patience {
  /** How long it may take to open, in ms: on a busy machine it loads for seconds. After that it counts as lost. */
  readonly openLimitMs: number;
  /** How long a question may wait for a gateway that its sandbox keeps busy, in ms. */
  readonly answerLimitMs: number;
  /**
   * How long a gateway may take to end its connections, in ms; then it is killed, and its open requests are billed at
   * their maximum.
   */
  readonly closeLimitMs: number;
  /** How long it may go on after it is closed, in ms: longer than it waits for answers. */
  readonly lingerLimitMs: number;
  /** How many may go on so at once: no limit of sessions holds for them. The oldest is ended, as at `closeLimitMs`. */
  readonly mostLingering: number;
}

const patience: Patience = {
  openLimitMs: 60_000,
  answerLimitMs: 2_000,
  closeLimitMs: 10_000,
  lingerLimitMs: 60_000,
  mostLingering: 16,
};

/**
 * Environment variables by which Node chooses trusted certificates and proxies
 * (https://nodejs.org/api/cli.html#environment-variables).
 */
const trustVariables = ["NODE_EXTRA_CA_CERTS", "NODE_USE_SYSTEM_CA", "SSL_CERT_FILE", "SSL_CERT_DIR"];

/** Keeps one process ahead, since its start takes longer than that of a sandbox. */
export function createGatewayProcesses(changes: Partial<Patience> = {}): GatewayProcesses {
  const limits = { ...patience, ...changes };
  const closed = new Set<ChildProcess>();
  const lingers = (child: ChildProcess): void => {
    const timer = setTimeout(() => child.kill("SIGKILL"), limits.lingerLimitMs).unref();
    closed.add(child);
    child.once("exit", () => {
      clearTimeout(timer);
      closed.delete(child);
    });
    const [oldest] = closed;
    if (oldest === undefined || closed.size <= limits.mostLingering) return;
    closed.delete(oldest);
    oldest.kill("SIGKILL");
  };
  let next: ChildProcess | null = null;
  function started(): ChildProcess {
    const child = start();
    const forget = (): void => void (next === child && (next = null));
    child.once("exit", forget);
    child.once("error", forget);
    return child;
  }
  return {
    prepare: () => void (next ??= started()),
    async open(task, services) {
      const ahead = next;
      next = null;
      if (ahead === null) return openIn(started(), task, services, { ...limits, lingers });
      try {
        return await openIn(ahead, task, services, { ...limits, lingers });
      } catch (error) {
        // The waiting process may have ended: start another.
        if (!(error instanceof GatewayLostError)) throw error;
        return openIn(started(), task, services, { ...limits, lingers });
      }
    },
  };
}

function start(): ChildProcess {
  const extension = import.meta.filename.endsWith(".ts") ? "ts" : "js";
  const trust = Object.fromEntries(
    trustVariables.flatMap((name) => (process.env[name] === undefined ? [] : [[name, process.env[name]]])),
  );
  const child = fork(join(import.meta.dirname, `program.${extension}`), [], {
    env: { ...childEnvironment(process.env, trust), ...compileCache(process.env) },
    execArgv: [`--max-old-space-size=${heapMib}`, `--max-semi-space-size=${youngMib}`],
    serialization: "advanced",
    stdio: ["ignore", "ignore", "pipe", "ipc"],
  });
  if (child.pid !== undefined) letServerComeFirst(child.pid);
  hold(child, false);
  return child;
}

/** Of 1,000, by which a process seems larger to the kernel when it has to end one (proc_pid_oom_score_adj(5)). */
const endedFirst = 500;

/** From the beginning: loading takes more of the processor than what it does for a session. */
function letServerComeFirst(pid: number): void {
  const behind = constants.priority.PRIORITY_BELOW_NORMAL;
  // From further behind, as by systemd's Nice=15, only root may bring it forward (setpriority(2)).
  if (getPriority(pid) < behind) setPriority(pid, behind);
  try {
    // What sandboxes make it hold is the server's memory, and the server or its database may be larger than each gateway.
    if (process.platform === "linux") writeFileSync(`/proc/${pid}/oom_score_adj`, String(endedFirst));
  } catch {
    // Further to the front already, or no /proc that can be written.
  }
}

/** @param held whether the server's process goes on for as long as this one */
function hold(child: ChildProcess, held: boolean): void {
  const { stderr } = child as { stderr: { ref?(): void; unref?(): void } | null };
  for (const each of [child, child.channel, stderr]) {
    if (held) each?.ref?.();
    else each?.unref?.();
  }
}

interface Asked {
  readonly request: AskedAdmission;
  readonly hangUp: AbortController;
  admission: Admission | null;
}

async function openIn(
  child: ChildProcess,
  task: GatewayTask,
  services: GatewayServices,
  { openLimitMs, answerLimitMs, closeLimitMs, lingers }: Patience & { readonly lingers: (child: ChildProcess) => void },
): Promise<Gateway> {
  const opened = Promise.withResolvers<{ readonly socket: string; readonly token: string }>();
  const closed = Promise.withResolvers<void>();
  const asked = new Map<number, Asked>();
  const questions = new Map<number, (traffic: ModelTraffic) => void>();
  let lastQuestion = 0;
  let lastTraffic = idleTraffic();
  let state: "opening" | "open" | "closing" = "opening";
  let printed = "";
  child.stderr?.on("data", (chunk: Buffer) => (printed = (printed + chunk.toString()).slice(-keptOutput)));
  // If the child has ended, its exit event reports that.
  const tell = (message: ToGateway): void => void (child.connected && child.send(message, () => undefined));

  async function admit(call: number, request: AskedAdmission): Promise<void> {
    const one: Asked = { request, hangUp: new AbortController(), admission: null };
    asked.set(call, one);
    try {
      const answer = await services.admit({ ...request, signal: one.hangUp.signal });
      if (isRefusal(answer)) {
        asked.delete(call);
        tell({ kind: "admitted", call, answer });
      } else if (asked.has(call)) {
        one.admission = answer;
        tell({ kind: "admitted", call, answer: { outputLimit: answer.outputLimit } });
        // The child has ended meanwhile: the request was not sent.
      } else answer.settle(null);
    } catch (error) {
      asked.delete(call);
      const why = error instanceof Error ? error.message : String(error);
      tell({ kind: "admitted", call, answer: { status: 503, message: `the budget could not be looked at: ${why}` } });
    }
  }

  function settle(call: number, usage: Parameters<Admission["settle"]>[0]): void {
    asked.get(call)?.admission?.settle(usage);
    asked.delete(call);
  }

  child.on("message", (message: FromGateway) => {
    switch (message.kind) {
      case "loaded":
        break;
      case "opened":
        opened.resolve(message);
        break;
      case "unopened":
        opened.reject(new InvalidInputError(message.message));
        break;
      case "admit":
        void admit(message.call, message.request);
        break;
      case "hungUp":
        asked.get(message.call)?.hangUp.abort(new Error("it hung up"));
        break;
      case "settle":
        settle(message.call, message.usage);
        break;
      case "requests":
        services.onRequests(message.counts);
        break;
      case "refused":
        services.onRefused(message.refusal);
        break;
      case "traffic":
        lastTraffic = trafficOf(message.traffic);
        questions.get(message.call)?.(lastTraffic);
        break;
      case "closed":
        if (message.problem !== null) services.onUnrecorded(message.problem);
        closed.resolve();
    }
  });
  const over = (how: string): void => {
    const error = new GatewayLostError(`the process of the session's gateway ended (${how}): ${printed.trim()}`);
    opened.reject(error);
    // The provider may have answered, and billed, any open request.
    for (const { request, hangUp, admission } of asked.values()) {
      admission?.settle(mostOf(request, admission));
      hangUp.abort(error);
    }
    asked.clear();
    for (const answer of questions.values()) answer(lastTraffic);
    closed.resolve();
    if (state === "open") services.onLost(error);
  };
  child.once("exit", (code, signal) => over(String(signal ?? code)));
  child.once("error", (error) => over(error.message));
  hold(child, true);
  tell({ kind: "open", task });

  const late = new GatewayLostError(`the process of the session's gateway did not open within ${openLimitMs} ms`);
  const opening = setTimeout(() => opened.reject(late), openLimitMs);
  try {
    const { socket, token } = await opened.promise;
    state = "open";
    return {
      socket,
      modelsAt: (origin) => modelsSeenFrom(origin, task.models, token),
      async traffic() {
        lastQuestion += 1;
        const call = lastQuestion;
        const answer = new Promise<ModelTraffic>((resolve) => questions.set(call, resolve));
        tell({ kind: "traffic", call });
        // The child does not answer: its sandbox keeps it busy, or it has ended.
        const timer = setTimeout(() => questions.get(call)?.(lastTraffic), child.connected ? answerLimitMs : 0);
        try {
          return await answer;
        } finally {
          clearTimeout(timer);
          questions.delete(call);
        }
      },
      async close() {
        state = "closing";
        tell({ kind: "close" });
        const timer = setTimeout(() => child.kill("SIGKILL"), child.connected ? closeLimitMs : 0);
        await closed.promise;
        clearTimeout(timer);
        await rm(socket, { force: true });
        // It still reads models' answers, then ends.
        hold(child, false);
        if (child.exitCode === null && child.signalCode === null) lingers(child);
      },
    };
  } catch (error) {
    child.kill("SIGKILL");
    throw error;
  } finally {
    clearTimeout(opening);
  }
}

/** The maximum that a request can cost, as the gateway itself counts an answer that was not read to its end. */
function mostOf({ most }: AskedAdmission, { outputLimit }: Admission): Parameters<Admission["settle"]>[0] {
  return most === null ? null : countedUsage(null, { ...most, outputTokens: outputLimit ?? most.outputTokens });
}

function idleTraffic(): ModelTraffic {
  const now = performance.now();
  return { lastActivity: now, lastAnswer: now, answered: 0, failed: 0, lastError: null };
}
