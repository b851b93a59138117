import type { ChildProcess } from "node:child_process";
import { writeFileSync } from "node:fs";
import { rm } from "node:fs/promises";
import { childEnvironment } from "../../domain/environments/child-environment.ts";
import { InvalidInputError } from "../../domain/errors/errors.ts";
import { noProxies } from "../../outbound/proxies.ts";
import type { Outbound } from "../../outbound/process-wide.ts";
import { compileCache } from "../../programs/compile-cache.ts";
import { forkProgram, type ForkedProgram } from "../../programs/forked-program.ts";
import { lowerPriority } from "../../programs/priority.ts";
import { programFile } from "../../programs/program-file.ts";
import type { RefusedConnection } from "../egress/egress.ts";
import { modelsSeenFrom, registryUrl, type Gateway } from "../gateway.ts";
import type { Admit } from "../models/admission.ts";
import type { CallTool } from "../tools.ts";
import { idleTraffic, type ModelTraffic } from "../traffic.ts";
import {
  trafficOf,
  type AdmissionRequest,
  type FromGateway,
  type GatewayTask,
  type RequestCount,
  type ToGateway,
} from "./messages.ts";
import { createPendingAdmissions } from "./pending-admissions.ts";

/** The requests and reports of a gateway's process to the server. */
export interface GatewayServices {
  readonly admit: Admit;
  /** Does what the sandbox asks of the task's tools; omitted if it has none. */
  readonly callTool?: CallTool;
  /** Called at most four times a second. */
  readonly onRequests: (counts: readonly RequestCount[]) => void;
  /** Called once for each host, and for the first fifty only. */
  readonly onRefused: (refusal: RefusedConnection) => void;
  /** The process ended before it was closed. */
  readonly onLost: (error: GatewayLostError) => void;
  /** The recording could not be written. */
  readonly onUnrecorded: (problem: string) => void;
}

/** A gateway's process ended unexpectedly: it ran out of memory, or was killed. */
export class GatewayLostError extends Error {
  override readonly name = "GatewayLostError";
}

/** Opens gateways, each in its own process. */
export interface GatewayProcesses {
  /** Starts the process of the next gateway ahead of time, unless it is started already. */
  prepare(): void;
  /**
   * Opens a gateway.
   * @throws InvalidInputError as `openGateway` does; GatewayLostError if its process could not be started
   */
  open(task: GatewayTask, services: GatewayServices): Promise<Gateway>;
  /**
   * Opens a gateway before there is a session: it answers requests to models without a provider, which is free and not
   * counted, and lets nothing else through.
   * @param task of which it needs the folder, the models and their permits
   * @param onLost called if its process ends before it is adopted or closed
   * @throws as `open` does
   */
  openWarm(task: WarmTask, onLost: (error: GatewayLostError) => void): Promise<WarmGateway>;
}

/** The task of a gateway before there is a session. */
export type WarmTask = Pick<GatewayTask, "directory" | "models" | "permits" | "labels" | "authorities">;

/** A gateway that waits for a session. */
export interface WarmGateway extends Gateway {
  /**
   * From now on it is the session's, as if it had been opened for it; to be called once.
   * @param task without registries
   * @throws GatewayLostError if its process ends meanwhile
   */
  adopt(task: GatewayTask, services: GatewayServices): Promise<Gateway>;
}

/** Limit of JavaScript's heap in MiB; request bodies and answers are outside of it, with other limits. */
const heapMib = 128;
const youngMib = 8;

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

const directOnly: Outbound = { proxies: noProxies, authorities: [] };

/** Starts one process ahead, since that takes longer than the start of a sandbox. */
export function createGatewayProcesses(changes: Partial<Patience & Pick<Opening, "outbound">> = {}): GatewayProcesses {
  const limits = { ...patience, outbound: directOnly, ...changes };
  const lingers = createLingering(limits);
  let next: ForkedProgram | null = null;
  function started(): ForkedProgram {
    const program = start();
    const forget = (): void => void (next === program && (next = null));
    program.child.once("exit", forget);
    program.child.once("error", forget);
    return program;
  }
  async function open(task: GatewayTask, services: GatewayServices): Promise<Gateway> {
    const ahead = next;
    next = null;
    const opening = { ...limits, lingers, isWarm: false };
    if (ahead === null) return openIn(started(), task, services, opening);
    try {
      return await openIn(ahead, task, services, opening);
    } catch (error) {
      // The waiting process may have ended: start another.
      if (!(error instanceof GatewayLostError)) throw error;
      return openIn(started(), task, services, opening);
    }
  }
  return {
    prepare: () => void (next ??= started()),
    open,
    openWarm(task, onLost) {
      const whole = { ...task, egress: { open: false, rules: [] }, registries: [], recording: null };
      const program = next ?? started();
      next = null;
      return openIn(program, whole, { ...unheard, onLost }, { ...limits, lingers, isWarm: true });
    },
  };
}

/** A gateway without a session reports nothing. */
const unheard: Omit<GatewayServices, "onLost"> = {
  admit: () => Promise.resolve({ status: 403, message: "there is no session yet" }),
  onRequests: () => undefined,
  onRefused: () => undefined,
  onUnrecorded: () => undefined,
};

/** @returns what is called for each gateway that is closed and whose process still reads answers */
function createLingering({ lingerLimitMs, mostLingering }: Patience): (child: ChildProcess) => void {
  const closed = new Set<ChildProcess>();
  return (child) => {
    const timer = setTimeout(() => child.kill("SIGKILL"), lingerLimitMs).unref();
    closed.add(child);
    child.once("exit", () => {
      clearTimeout(timer);
      closed.delete(child);
    });
    const [oldest] = closed;
    if (oldest === undefined || closed.size <= mostLingering) return;
    closed.delete(oldest);
    oldest.kill("SIGKILL");
  };
}

function start(): ForkedProgram {
  const trust = Object.fromEntries(
    trustVariables.flatMap((name) => (process.env[name] === undefined ? [] : [[name, process.env[name]]])),
  );
  const program = forkProgram(programFile(import.meta.url, "program"), {
    env: childEnvironment(process.env, { ...trust, ...compileCache(process.env) }),
    execArgv: [`--max-old-space-size=${heapMib}`, `--max-semi-space-size=${youngMib}`],
    serialization: "advanced",
  });
  const { pid } = program.child;
  if (pid !== undefined) {
    lowerPriority(pid);
    endBeforeServer(pid);
  }
  return program;
}

/** Added to a process's score, of 1,000, when the kernel has to end one (proc_pid_oom_score_adj(5)). */
const endedFirst = 500;

/** Sandboxes can make it hold memory of the machine; the server or its database may use more. */
function endBeforeServer(pid: number): void {
  if (process.platform !== "linux") return;
  try {
    writeFileSync(`/proc/${pid}/oom_score_adj`, String(endedFirst));
  } catch {
    // It is ended before others already, or /proc can't be written.
  }
}

interface Opening extends Patience {
  /** How gateways reach the outside. */
  readonly outbound: Outbound;
  readonly lingers: (child: ChildProcess) => void;
  /** Whether it is opened before there is a session. */
  readonly isWarm: boolean;
}

async function openIn(
  program: ForkedProgram,
  task: GatewayTask,
  given: GatewayServices,
  { outbound, openLimitMs, answerLimitMs, closeLimitMs, lingers, isWarm }: Opening,
): Promise<WarmGateway> {
  const { child } = program;
  let services = given;
  const opened = Promise.withResolvers<Extract<FromGateway, { kind: "opened" }>>();
  const closed = Promise.withResolvers<void>();
  const adopted = Promise.withResolvers<void>();
  // The caller that adopts handles the error; there may be none.
  adopted.promise.catch(() => undefined);
  const admissions = createPendingAdmissions((request) => services.admit(request));
  const questions = new Map<number, (traffic: ModelTraffic) => void>();
  let lastQuestion = 0;
  let lastTraffic = idleTraffic();
  let state: "opening" | "open" | "closing" = "opening";
  // If the child has ended, its exit event reports that.
  const send = (message: ToGateway): void => void (child.connected && child.send(message, () => undefined));

  async function admit(call: number, request: AdmissionRequest): Promise<void> {
    const answer = await admissions.ask(call, request);
    if (answer !== null) send({ kind: "admitted", call, answer });
  }

  async function callTool(call: number, name: string, input: unknown): Promise<void> {
    const answer = (await services.callTool?.(name, input)) ?? { text: "there is no such tool", isError: true };
    send({ kind: "toolAnswered", call, answer });
  }

  child.on("message", (message: FromGateway) => {
    switch (message.kind) {
      case "opened":
        opened.resolve(message);
        break;
      case "unopened":
        opened.reject(new InvalidInputError(message.message));
        break;
      case "adopted":
        adopted.resolve();
        break;
      case "admit":
        void admit(message.call, message.request);
        break;
      case "tool":
        void callTool(message.call, message.name, message.input);
        break;
      case "hungUp":
        admissions.hangUp(message.call);
        break;
      case "settle":
        admissions.settle(message.call, message.usage);
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
    const error = new GatewayLostError(
      `the process of the session's gateway ended (${how}): ${program.printed().trim()}`,
    );
    opened.reject(error);
    adopted.reject(error);
    admissions.end(error);
    for (const answer of questions.values()) answer(lastTraffic);
    closed.resolve();
    if (state === "open") services.onLost(error);
  };
  child.once("exit", (code, signal) => over(String(signal ?? code)));
  child.once("error", (error) => over(error.message));
  program.keepAlive(true);
  send({ kind: "open", task, outbound, isWarm });

  const late = new GatewayLostError(`the process of the session's gateway did not open within ${openLimitMs} ms`);
  const opening = setTimeout(() => opened.reject(late), openLimitMs);
  try {
    const { socket, token, authoritiesFile } = await opened.promise;
    state = "open";
    const gateway: Gateway = {
      socket,
      token,
      authoritiesFile,
      registryAt: (origin, id) => registryUrl(origin, token, id),
      modelsAt: (origin) => modelsSeenFrom(origin, task.models, token),
      async traffic() {
        lastQuestion += 1;
        const call = lastQuestion;
        const answer = new Promise<ModelTraffic>((resolve) => questions.set(call, resolve));
        send({ kind: "traffic", call });
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
        send({ kind: "close" });
        const timer = setTimeout(() => child.kill("SIGKILL"), child.connected ? closeLimitMs : 0);
        await closed.promise;
        clearTimeout(timer);
        await rm(socket, { force: true });
        if (authoritiesFile !== null) await rm(authoritiesFile, { force: true });
        // It still reads models' answers, then ends.
        program.keepAlive(false);
        if (child.exitCode === null && child.signalCode === null) lingers(child);
      },
    };
    return {
      ...gateway,
      async adopt(session, next) {
        services = next;
        lastTraffic = idleTraffic();
        send({ kind: "adopt", task: session });
        await adopted.promise;
        return gateway;
      },
    };
  } catch (error) {
    child.kill("SIGKILL");
    throw error;
  } finally {
    clearTimeout(opening);
  }
}
