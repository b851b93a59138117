import { Agent, request as httpRequest } from "node:http";
import type { FuzzRequest } from "./requests.ts";

/** No answer may take longer: the bound of the issue that asked for this. */
export const slowMs = 2_000;
/** An answer that has not begun by then is none. */
const patienceMs = 20_000;
/** A slow answer may be a busy machine's: the same request is sent again alone, and is a slow one if it is so each time. */
const repetitions = 2;

export interface Reply {
  readonly status: number;
  readonly text: string;
  readonly type: string;
  /** From the first byte sent to the last received; of a stream, to its head. */
  readonly ms: number;
}

export interface Report {
  readonly sent: number;
  /** Requests, those that were answered with 200, and the worst time in ms, by operation. */
  readonly operations: ReadonlyMap<string, Tally>;
  /** How many answers had each status. */
  readonly statuses: ReadonlyMap<number, number>;
  /** One line for each answer that must not be. */
  readonly complaints: readonly string[];
}

export interface Tally {
  readonly count: number;
  readonly succeeded: number;
  readonly worstMs: number;
}

export interface CheckOptions {
  readonly origin: string;
  readonly requests: readonly FuzzRequest[];
  readonly concurrency: number;
  /** What no answer may hold, unless the key of the request may read it. */
  readonly forbidden: { readonly text: string; readonly except: string };
}

/** Sends every request, a few at a time, and looks at each answer. */
export async function check({ origin, requests, concurrency, forbidden }: CheckOptions): Promise<Report> {
  const agent = new Agent({ keepAlive: true, maxSockets: concurrency });
  const operations = new Map<string, { -readonly [Name in keyof Tally]: Tally[Name] }>();
  const statuses = new Map<number, number>();
  const complaints: string[] = [];
  const slow: FuzzRequest[] = [];
  const left = requests.values();

  async function lane(): Promise<void> {
    for (const request of left) {
      const reply = await send(origin, agent, request).catch((error: Error) => error);
      const known = operations.get(request.operation) ?? { count: 0, succeeded: 0, worstMs: 0 };
      known.count += 1;
      operations.set(request.operation, known);
      if (reply instanceof Error) {
        complaints.push(`${nameOf(request)} → no answer: ${reply.message}`);
        continue;
      }
      if (reply.status === 200 || reply.status === 202) known.succeeded += 1;
      known.worstMs = Math.max(known.worstMs, reply.ms);
      statuses.set(reply.status, (statuses.get(reply.status) ?? 0) + 1);
      const mayRead = request.headers.some((value) => value.includes(forbidden.except));
      const problem = problemOf(request, reply, mayRead ? null : forbidden.text);
      if (problem !== null)
        complaints.push(`${nameOf(request)} → ${reply.status} ${problem}: ${reply.text.slice(0, 300)}`);
      if (reply.ms > slowMs) slow.push(request);
    }
  }
  await Promise.all(Array.from({ length: concurrency }, lane));
  for (const request of slow) {
    const times = await timesAlone(origin, agent, request);
    if (times.every((ms) => ms > slowMs))
      complaints.push(`${nameOf(request)} → slow: ${times.map(Math.round).join(", ")} ms alone`);
  }
  agent.destroy();
  return { sent: requests.length, operations, statuses, complaints };
}

async function timesAlone(origin: string, agent: Agent, request: FuzzRequest): Promise<number[]> {
  const times: number[] = [];
  for (let count = 0; count < repetitions; count += 1) {
    times.push(
      await send(origin, agent, request).then(
        ({ ms }) => ms,
        () => patienceMs,
      ),
    );
  }
  return times;
}

function problemOf({ method }: FuzzRequest, { status, text, type }: Reply, forbidden: string | null): string | null {
  if (status >= 500) return "a fault of the server's";
  if (forbidden !== null && text.includes(forbidden)) return "has another organization's data";
  if (status < 400 || method === "HEAD") return null;
  try {
    const body: unknown = JSON.parse(text);
    if (type.startsWith("application/json") && Object.keys(body as object).join() === "error") return null;
  } catch {
    // Reported below.
  }
  return "an error that is not in the form of errors";
}

/** Sends one request and reads its answer, of a stream only the head. @throws if there is no answer */
function send(origin: string, agent: Agent, { method, target, headers, body }: FuzzRequest): Promise<Reply> {
  const { hostname, port, host } = new URL(origin);
  return new Promise((resolve, reject) => {
    const began = performance.now();
    const hasHost = headers.includes("host");
    const request = httpRequest({
      hostname,
      port,
      agent,
      method,
      path: target,
      headers: [
        ...(hasHost ? [] : ["host", host]),
        ...headers,
        ...(body === null ? [] : ["content-length", String(body.length)]),
      ],
    });
    const timer = setTimeout(() => request.destroy(new Error(`nothing within ${patienceMs} ms`)), patienceMs);
    // One that is answered before all of it was read may break while it is sent: its answer is what counts.
    let answered = false;
    request.once("error", (error) => {
      clearTimeout(timer);
      if (!answered) reject(error);
    });
    request.once("response", (response) => {
      answered = true;
      const type = response.headers["content-type"] ?? "";
      const chunks: Buffer[] = [];
      const finish = (): void => {
        clearTimeout(timer);
        const text = Buffer.concat(chunks).toString();
        resolve({ status: response.statusCode ?? 0, text, type, ms: performance.now() - began });
      };
      if (type.startsWith("text/event-stream")) {
        finish();
        request.destroy();
        return;
      }
      response.on("data", (chunk: Buffer) => chunks.push(chunk));
      response.once("end", finish);
      response.once("error", reject);
    });
    request.end(body ?? undefined);
  });
}

function nameOf({ method, target, headers, body }: FuzzRequest): string {
  const sent =
    body === null ? "" : ` ${body.subarray(0, 300).toString()}${body.length > 300 ? `… (${body.length} bytes)` : ""}`;
  // A test's output needs no keys.
  const shown = headers.filter((value) => !value.startsWith("Bearer ofs_")).join(" ");
  return `${method} ${target.slice(0, 300)} [${shown.slice(0, 200)}]${sent}`;
}
