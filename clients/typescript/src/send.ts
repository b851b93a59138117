/** The server refused a request, or answered what is no answer of the API. */
export class OffstageError extends Error {
  override readonly name = "OffstageError";
  /** HTTP status; 0: the server could not be reached. */
  readonly status: number;

  constructor(status: number, message: string, options?: ErrorOptions) {
    super(message, options);
    this.status = status;
  }
}

/** How a client reaches its server. */
export interface OffstageOptions {
  /** The server's address; default OFFSTAGE_SERVER, else http://127.0.0.1:4747. */
  readonly server?: string;
  /** An API key; default OFFSTAGE_API_KEY. */
  readonly key?: string;
  /** How often a request is sent again that failed for a passing reason; default 4. */
  readonly retries?: number;
  /** Sends requests; default the global `fetch`. */
  readonly fetch?: typeof fetch;
}

/** Options of one call. */
export interface CallOptions {
  readonly signal?: AbortSignal;
  /** For a call that creates something: the same key with the same body gives the first answer again. Default: a new one for each call. */
  readonly idempotencyKey?: string;
}

/** One request of the API. */
export interface Call extends CallOptions {
  readonly method: "GET" | "POST";
  /** With the values of its parameters in it. */
  readonly path: string;
  readonly query?: object | undefined;
  readonly body?: unknown;
  /** Whether it may be sent twice: it reads, or its Idempotency-Key makes it the same request. */
  readonly isIdempotent: boolean;
  readonly headers?: Readonly<Record<string, string>>;
}

/** Statuses that pass by themselves. */
const passing: ReadonlySet<number> = new Set([429, 502, 503, 504]);
/** Pauses between tries, in ms: doubled each time, with as much again by chance. */
const firstPauseMs = 250;
const longestPauseMs = 10_000;

/**
 * Sends requests with the client's key, again if they fail for a passing reason.
 * @returns the answer: what `read` makes of it, if that is given, else as it came
 */
export interface Send {
  (call: Call): Promise<Response>;
  <Answer>(call: Call, read: (response: Response) => Promise<Answer>): Promise<Answer>;
}

/** Makes the sender of a client. */
export function createSend(options: OffstageOptions): Send {
  const environment = (globalThis as { process?: { env?: Record<string, string | undefined> } }).process?.env ?? {};
  const server = (options.server ?? environment["OFFSTAGE_SERVER"] ?? "http://127.0.0.1:4747").replace(/\/+$/u, "");
  const key = options.key ?? environment["OFFSTAGE_API_KEY"];
  const { retries = 4, fetch: fetched = (...request: Parameters<typeof fetch>) => fetch(...request) } = options;

  return async <Answer>(call: Call, read?: (response: Response) => Promise<Answer>) => {
    const { method, path, query, body, isIdempotent, signal, idempotencyKey } = call;
    const search = searchOf(query ?? {});
    const init: RequestInit = {
      method,
      headers: {
        ...(key !== undefined && key !== "" && { Authorization: `Bearer ${key}` }),
        ...(body !== undefined && { "Content-Type": "application/json" }),
        ...(method === "POST" && isIdempotent && { "Idempotency-Key": idempotencyKey ?? crypto.randomUUID() }),
        ...call.headers,
      },
      ...(method === "POST" && { body: JSON.stringify(body ?? {}) }),
      ...(signal !== undefined && { signal }),
    };
    for (let tries = 0; ; tries += 1) {
      const outcome = await attempt(async () => {
        const response = await fetched(`${server}${path}${search}`, init);
        // A connection may be lost in the midst of an answer, too.
        return response.ok ? { answer: read === undefined ? response : await read(response) } : response;
      }, signal);
      if ("answer" in outcome) return outcome.answer as Answer & Response;
      const isPassing = outcome instanceof Response ? passing.has(outcome.status) : true;
      if (!isPassing || !isIdempotent || tries >= retries) {
        if (outcome instanceof Response) throw await refusal(outcome);
        throw new OffstageError(0, `${server} can't be reached`, { cause: outcome });
      }
      await pause(pauseMs(tries, outcome), signal);
      if (outcome instanceof Response) await outcome.body?.cancel();
    }
  };
}

/** What a parameter of a query may be. */
type Given = string | number | boolean | null | undefined;

/** The query of an address: a list is a parameter that is given several times. */
function searchOf(query: object): string {
  const given = Object.entries(query).flatMap(([name, value]: [string, Given | readonly Given[]]) =>
    [value].flat().flatMap((each): [string, string][] => (each == null ? [] : [[name, String(each)]])),
  );
  return given.length === 0 ? "" : `?${new URLSearchParams(given).toString()}`;
}

/** What is said of an answer of another program. */
export const strangeAnswer = "the answer is none of Offstage's: check the server's address";

/** What an answer says as JSON. @throws OffstageError if it is none, as that of another program */
export async function readJson(response: Response): Promise<unknown> {
  const text = await response.text();
  try {
    return JSON.parse(text);
  } catch (cause) {
    throw new OffstageError(response.status, strangeAnswer, { cause });
  }
}

/** @returns why there is no answer; throws if the caller gave up, or the answer can't be read */
async function attempt<Outcome>(
  work: () => Promise<Outcome>,
  signal: AbortSignal | undefined,
): Promise<Outcome | Error> {
  try {
    return await work();
  } catch (error) {
    if (signal?.aborted === true || error instanceof OffstageError) throw error;
    return error instanceof Error ? error : new Error(String(error));
  }
}

function pauseMs(tries: number, outcome: Response | Error): number {
  const asked =
    outcome instanceof Response ? Number(outcome.headers.get("retry-after") ?? Number.NaN) * 1_000 : Number.NaN;
  const own = Math.min(longestPauseMs, firstPauseMs * 2 ** tries) * (1 + Math.random());
  return Number.isNaN(asked) ? own : Math.max(asked, own);
}

async function refusal(response: Response): Promise<OffstageError> {
  const body: unknown = await response.json().catch(() => null);
  const { error } = (body ?? {}) as { readonly error?: unknown };
  const sentence = typeof error === "string" ? error : `the server answered ${response.status}`;
  return new OffstageError(response.status, sentence);
}

/** Waits, or throws if the caller gives up. */
export async function pause(ms: number, signal?: AbortSignal): Promise<void> {
  await new Promise<void>((resolve, reject) => {
    const stop = (): void => {
      clearTimeout(timer);
      reject(signal?.reason as Error);
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener("abort", stop);
      resolve();
    }, ms);
    if (signal?.aborted === true) stop();
    else signal?.addEventListener("abort", stop, { once: true });
  });
}
