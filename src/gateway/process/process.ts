import { fork, type ChildProcess } from "node:child_process";
import { rm } from "node:fs/promises";
import { constants, setPriority } from "node:os";
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

/** What a gateway's process asks of the server, and tells it. */
export interface GatewayServices {
  readonly admit: Admit;
  /** Told at most four times a second. */
  readonly onRequests: (counts: readonly RequestCount[]) => void;
  /** Told once of each host, and of the first fifty alone. */
  readonly onRefused: (refusal: Refusal) => void;
  /** Its process ended before it was closed. */
  readonly onLost: (error: GatewayLostError) => void;
  /** The recording could not be written. */
  readonly onUnrecorded: (problem: string) => void;
}

/** A gateway's process ended by itself: it ran out of memory, or somebody ended it. */
export class GatewayLostError extends Error {
  override readonly name = "GatewayLostError";
}

/** Opens gateways, each in a process of its own. */
export interface GatewayProcesses {
  /** Starts the process of the next gateway, unless it is started already. */
  prepare(): void;
  /** @throws InvalidInputError, as `openGateway`; GatewayLostError if its process could not be started */
  open(task: GatewayTask, services: GatewayServices): Promise<Gateway>;
}

/** JavaScript's heap in MiB; a gateway's bodies and answers are outside of it, with limits of their own. */
const heapMib = 128;
const youngMib = 8;
/** Of what a process prints, so much is kept to say why it ended, in characters. */
const keptOutput = 2_000;
interface Patience {
  /** How long a question may wait for a gateway that its sandbox keeps busy, in ms. */
  readonly answerLimitMs: number;
  /** How long it may take to end its connections, in ms; after that it is killed, and what it asked counts as the most. */
  readonly closeLimitMs: number;
}

const patience: Patience = { answerLimitMs: 2_000, closeLimitMs: 10_000 };

/**
 * What Node takes from the environment to know whom it may trust and how it reaches others
 * (https://nodejs.org/api/cli.html#environment-variables).
 */
const trustVariables = ["NODE_EXTRA_CA_CERTS", "NODE_USE_SYSTEM_CA", "SSL_CERT_FILE", "SSL_CERT_DIR"];

/** Keeps one process ahead, since its start takes longer than that of a sandbox. */
export function createGatewayProcesses(limits: Patience = patience): GatewayProcesses {
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
      if (ahead === null) return openIn(started(), task, services, limits);
      try {
        return await openIn(ahead, task, services, limits);
      } catch (error) {
        // It may have ended while it waited.
        if (!(error instanceof GatewayLostError)) throw error;
        return openIn(started(), task, services, limits);
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
  // The server comes first, from the beginning: loading takes more than what it does for a session.
  if (child.pid !== undefined) setPriority(child.pid, constants.priority.PRIORITY_BELOW_NORMAL);
  hold(child, false);
  return child;
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
  { answerLimitMs, closeLimitMs }: Patience,
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
  // A process that is gone is heard of by its end.
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
        // Its process ended meanwhile: it was not sent.
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
    // Whatever was asked may have been answered, and is billed.
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
        // Kept busy by its sandbox, or gone.
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
        // It still hears what models answer, and then ends.
        hold(child, false);
      },
    };
  } catch (error) {
    child.kill("SIGKILL");
    throw error;
  }
}

/** As the gateway itself counts what was not heard to its end. */
function mostOf({ most }: AskedAdmission, { outputLimit }: Admission): Parameters<Admission["settle"]>[0] {
  return most === null ? null : countedUsage(null, { ...most, outputTokens: outputLimit ?? most.outputTokens });
}

function idleTraffic(): ModelTraffic {
  const now = performance.now();
  return { lastActivity: now, lastAnswer: now, answered: 0, failed: 0, lastError: null };
}
