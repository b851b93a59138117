import { setTimeout as pause } from "node:timers/promises";
import type { ModelProviderId } from "../../domain/agents/model.ts";
import { messageOf } from "../../domain/errors/errors.ts";
import { createMask } from "../../domain/masking/mask.ts";
import { createTokenBucket } from "../../domain/time/token-bucket.ts";
import { useProcessWide, type Outbound } from "../../outbound/process-wide.ts";
import { modelLabel } from "../costs/prices.ts";
import { openGateway, type LocalGateway, type Served } from "../gateway.ts";
import { isRefusal, type Admit } from "../models/admission.ts";
import type { ModelOutcome } from "../models/model-gateway.ts";
import { createCannedGateway } from "../models/canned.ts";
import { createRecorder, type Recorder } from "../models/recording.ts";
import type { CallTool, ToolAnswer } from "../tools.ts";
import {
  agesOf,
  type AdmissionAnswer,
  type FromGateway,
  type GatewayTask,
  type RequestCount,
  type ToGateway,
} from "./messages.ts";

/**
 * Program of one sandbox's gateway. It reads everything that the sandbox sends, so that this takes time, memory and
 * descriptors of one session alone. Its messages to the server are few and small.
 */

/** Admissions at once, and `perSecond` more in each second: each is a transaction, and no harness needs as many. */
const burst = 100;
const perSecond = 20;
/** Refused hosts that one gateway reports; each is reported once. */
const refusalLimit = 50;
const countsEveryMs = 250;

function say(message: FromGateway): void {
  // Without the server, `disconnect` ends this process.
  if (process.connected) process.send?.(message);
}

/** Asks the server for admissions, one message each. */
function createAdmissions() {
  const waiting = new Map<number, (answer: AdmissionAnswer) => void>();
  const pace = createTokenBucket(burst, perSecond);
  let last = 0;
  const admit: Admit = async ({ signal, ...request }) => {
    const waitMs = pace.take();
    if (waitMs > 0) await pause(waitMs);
    last += 1;
    const call = last;
    const answer = await new Promise<AdmissionAnswer>((resolve) => {
      waiting.set(call, resolve);
      say({ kind: "admit", call, request });
      if (signal.aborted) say({ kind: "hungUp", call });
      else signal.addEventListener("abort", () => say({ kind: "hungUp", call }), { once: true });
    });
    if (isRefusal(answer)) return answer;
    return { ...answer, settle: (usage) => say({ kind: "settle", call, usage }) };
  };
  return {
    admit,
    answer(call: number, answer: AdmissionAnswer): void {
      waiting.get(call)?.(answer);
      waiting.delete(call);
    },
  };
}

/** Has the server call tools, one message each. */
function createToolCalls() {
  const waiting = new Map<number, (answer: ToolAnswer) => void>();
  let last = 0;
  const call: CallTool = (name, input) => {
    last += 1;
    const { promise, resolve } = Promise.withResolvers<ToolAnswer>();
    waiting.set(last, resolve);
    say({ kind: "tool", call: last, name, input });
    return promise;
  };
  return {
    call,
    answer(number: number, answer: ToolAnswer): void {
      waiting.get(number)?.(answer);
      waiting.delete(number);
    },
  };
}

/** Reports requests in groups, by the model labels of the metrics. */
function createCounts({ prices, models }: GatewayTask["labels"]) {
  const counts = new Map<string, RequestCount>();
  let timer: NodeJS.Timeout | null = null;
  const sendCounts = (): void => {
    timer = null;
    if (counts.size > 0) say({ kind: "requests", counts: [...counts.values()] });
    counts.clear();
  };
  return {
    add(provider: ModelProviderId, name: string | null, outcome: ModelOutcome): void {
      const model = modelLabel(name, prices, models);
      const key = JSON.stringify([provider, model, outcome]);
      counts.set(key, { provider, model, outcome, count: (counts.get(key)?.count ?? 0) + 1 });
      timer ??= setTimeout(sendCounts, countsEveryMs);
    },
    tell: sendCounts,
  };
}

function createRefusals() {
  const reported = new Set<string>();
  return (refusal: Extract<FromGateway, { kind: "refused" }>["refusal"]): void => {
    const destination = `${refusal.host}:${refusal.port}`;
    if (reported.has(destination) || reported.size >= refusalLimit) return;
    reported.add(destination);
    say({ kind: "refused", refusal });
  };
}

/** The services of a gateway before there is a session: its own answers, and no other host. */
const closed: Pick<Served, "egress" | "onRefused" | "answers"> = {
  egress: { open: false, rules: [] },
  onRefused: () => undefined,
  answers: createCannedGateway,
};

async function open(task: GatewayTask, outbound: Outbound, isWarm: boolean) {
  useProcessWide(
    outbound,
    Object.values(task.models).flatMap(({ baseUrl }) => baseUrl ?? []),
  );
  const admissions = createAdmissions();
  const tools = createToolCalls();
  let counts = createCounts(task.labels);
  let recorder: Recorder | null = null;

  /** The gateway's services for a session, with the server's help. */
  function served(session: GatewayTask): Served {
    const { recording } = session;
    recorder = recording === null ? null : createRecorder(recording.file, createMask(recording.secrets).text);
    counts = createCounts(session.labels);
    return {
      ...session,
      tools: { list: session.tools ?? [], call: tools.call },
      onRefused: createRefusals(),
      admit: admissions.admit,
      onRequest: counts.add,
      recorder,
    };
  }

  const gateway: LocalGateway = await openGateway({
    ...(isWarm ? { ...closed, models: task.models, permits: task.permits } : served(task)),
    directory: task.directory,
    authorities: task.authorities,
    proxies: outbound.proxies,
  });
  say({ kind: "opened", socket: gateway.socket, token: gateway.token, authoritiesFile: gateway.authoritiesFile });
  return {
    adopt(session: GatewayTask): void {
      gateway.adopt(served(session));
      say({ kind: "adopted" });
    },
    admitted: admissions.answer,
    toolAnswered: tools.answer,
    tellTraffic: async (call: number) => say({ kind: "traffic", call, traffic: agesOf(await gateway.traffic()) }),
    async close() {
      await gateway.close();
      const problem = await (recorder?.settled() ?? Promise.resolve()).then(() => null, String);
      counts.tell();
      say({ kind: "closed", problem });
      await gateway.idle();
      counts.tell();
      process.disconnect();
    },
  };
}

function serve(): void {
  let gateway: Promise<Awaited<ReturnType<typeof open>>> | null = null;
  process.on("message", (message: ToGateway) => {
    if (message.kind === "open") {
      gateway = open(message.task, message.outbound, message.isWarm);
      gateway.catch((error: unknown) => {
        say({ kind: "unopened", message: messageOf(error) });
      });
    } else if (message.kind === "adopt") void gateway?.then(({ adopt }) => adopt(message.task));
    else if (message.kind === "toolAnswered")
      void gateway?.then(({ toolAnswered }) => toolAnswered(message.call, message.answer));
    else if (message.kind === "admitted") void gateway?.then(({ admitted }) => admitted(message.call, message.answer));
    else if (message.kind === "traffic") void gateway?.then(({ tellTraffic }) => tellTraffic(message.call));
    else void gateway?.then(({ close }) => close());
  });
  // The server has ended: end too.
  process.once("disconnect", () => process.exit());
  // A terminal or service manager sends these to every process; the server decides when its gateways end.
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.on(signal, () => undefined);
}

serve();
