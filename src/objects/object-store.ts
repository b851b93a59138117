import { createHash } from "node:crypto";
import { setTimeout as pause } from "node:timers/promises";
import { AwsV4Signer } from "aws4fetch";
import type { Config } from "../config/config.ts";
import { ObjectStoreError } from "../domain/errors.ts";

/** An S3-compatible store of large artifacts. Whoever puts an object keeps a row of it: nothing is ever listed. */
export interface ObjectStore {
  readonly bucket: string;
  /** The whole key of what is called `name` in this installation. */
  keyOf(name: string): string;
  /** @throws ObjectStoreError */
  put(key: string, content: Buffer, signal: AbortSignal): Promise<void>;
  /**
   * @param options.maximumBytes what is longer is cut off there
   * @returns null where there is no such object
   * @throws ObjectStoreError
   */
  get(key: string, options: { readonly maximumBytes: number; readonly signal: AbortSignal }): Promise<Buffer | null>;
  /** One that is not there is removed. @throws ObjectStoreError */
  remove(key: string, signal: AbortSignal): Promise<void>;
}

export interface ObjectStoreLimits {
  /** How long one request may take, in milliseconds. */
  readonly requestMs: number;
  /** How long one is tried again that may pass by itself, in milliseconds. */
  readonly totalMs: number;
  /** The same for what puts an object: whoever does so can do it again later, and has other things to do. */
  readonly putMs: number;
}

const usualLimits: ObjectStoreLimits = { requestMs: 15_000, totalMs: 30_000, putMs: 4_000 };
const firstWaitMs = 250;
const longestWaitMs = 5_000;
/** Of an answer that tells of a problem. */
const problemBytes = 64 * 1024;

type Method = "GET" | "PUT" | "DELETE";

interface Answer {
  readonly status: number;
  readonly content: Buffer;
}

/**
 * Addresses are of the path's style, which every such store understands. What may pass by itself (no answer, 5xx, 429) is
 * tried again within the limits; a redirect is not followed.
 */
export function createObjectStore(
  settings: NonNullable<Config["objects"]>,
  limits: ObjectStoreLimits = usualLimits,
): ObjectStore {
  const { endpoint, bucket, region, accessKeyId, secretAccessKey, prefix } = settings;
  const name = `the object store at ${new URL(endpoint).host}`;
  const signingKeys = new Map<string, ArrayBuffer>();

  async function send(method: Method, key: string, body: Buffer | null, signal: AbortSignal): Promise<Response> {
    const { url, headers } = await new AwsV4Signer({
      method,
      url: `${endpoint}/${bucket}/${key}`,
      // The store then checks the content too.
      headers: {
        "X-Amz-Content-Sha256": createHash("sha256")
          .update(body ?? "")
          .digest("hex"),
      },
      service: "s3",
      region,
      accessKeyId,
      secretAccessKey,
      cache: signingKeys,
    }).sign();
    return fetch(url, {
      method,
      headers,
      redirect: "manual",
      signal,
      body: body === null ? null : new Uint8Array(body),
    });
  }

  async function ask(
    method: Method,
    key: string,
    { body, maximumBytes, signal }: { body: Buffer | null; maximumBytes: number; signal: AbortSignal },
  ): Promise<Answer> {
    const overtime = AbortSignal.timeout(limits.requestMs);
    let answer: Answer;
    try {
      const response = await send(method, key, body, AbortSignal.any([signal, overtime]));
      const content = await readAtMost(response, response.ok ? maximumBytes : problemBytes);
      answer = { status: response.status, content };
    } catch (cause) {
      const problem = overtime.aborted
        ? `did not answer within ${limits.requestMs / 1_000} s`
        : `could not be reached${codeOf(cause)}`;
      throw new ObjectStoreError(`${name} ${problem}`, true, { cause });
    }
    if (answer.status >= 200 && answer.status < 300) return answer;
    const code = /<Code>(\w{1,64})<\/Code>/u.exec(answer.content.toString("latin1"))?.[1] ?? "";
    if (answer.status === 404 && code === "NoSuchKey") return answer;
    const passing = answer.status >= 500 || answer.status === 429 || answer.status === 408 || code === "RequestTimeout";
    const said = code === "" ? answer.status : `${answer.status} (${code})`;
    throw new ObjectStoreError(`${name} answered ${said}${passing ? "" : mendOf(answer.status, code)}`, passing);
  }

  async function call(
    method: Method,
    key: string,
    request: { body: Buffer | null; maximumBytes: number; signal: AbortSignal },
  ): Promise<Answer> {
    // By the clock: what was asleep for long asks nothing more, since what it puts may be swept already.
    const until = Date.now() + (method === "PUT" ? limits.putMs : limits.totalMs);
    for (let attempt = 0; ; attempt += 1) {
      try {
        request.signal.throwIfAborted();
        return await ask(method, key, request);
      } catch (error) {
        if (request.signal.aborted) throw endedBy(request.signal, name);
        const waitMs = Math.min(longestWaitMs, firstWaitMs * 2 ** attempt) * (0.5 + Math.random() / 2);
        const mayPass = error instanceof ObjectStoreError && error.passing;
        if (!mayPass || Date.now() + waitMs > until) throw error;
        await pause(waitMs, undefined, { signal: request.signal }).catch(() => undefined);
      }
    }
  }

  return {
    bucket,
    keyOf: (of) => prefix + of,
    async put(key, content, signal) {
      const { status, content: said } = await call("PUT", key, { body: content, maximumBytes: problemBytes, signal });
      if (status === 404) throw new ObjectStoreError(`${name} refused an object: ${said.toString()}`, false);
    },
    async get(key, { maximumBytes, signal }) {
      const { status, content } = await call("GET", key, { body: null, maximumBytes, signal });
      return status === 404 ? null : content;
    },
    async remove(key, signal) {
      await call("DELETE", key, { body: null, maximumBytes: problemBytes, signal });
    },
  };
}

async function readAtMost(response: Response, maximumBytes: number): Promise<Buffer> {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of response.body ?? []) {
    chunks.push(chunk);
    bytes += chunk.length;
    if (bytes > maximumBytes) break;
  }
  return Buffer.concat(chunks).subarray(0, maximumBytes);
}

/** A time limit of the caller's is the store's fault; a cancel or a lost lease is not. */
function endedBy(signal: AbortSignal, name: string): unknown {
  const { reason } = signal as { reason: unknown };
  const isOvertime = reason instanceof Error && reason.name === "TimeoutError";
  return isOvertime ? new ObjectStoreError(`${name} was too slow`, true, { cause: reason }) : reason;
}

/** What the system said of the connection, as ` (ECONNREFUSED)`. */
function codeOf(error: unknown): string {
  const { cause } = (error ?? {}) as { cause?: { code?: unknown } };
  return typeof cause?.code === "string" ? ` (${cause.code})` : "";
}

function mendOf(status: number, code: string): string {
  if (code === "NoSuchBucket") return ": create the bucket, or correct OFFSTAGE_S3_BUCKET";
  if (code === "RequestTimeTooSkewed") return ": set this machine's clock";
  if (code === "InvalidAccessKeyId") return ": correct OFFSTAGE_S3_ACCESS_KEY_ID";
  if (code === "SignatureDoesNotMatch") return ": correct OFFSTAGE_S3_SECRET_ACCESS_KEY and OFFSTAGE_S3_REGION";
  if (code === "AuthorizationHeaderMalformed" || (status >= 300 && status < 400))
    return ": correct OFFSTAGE_S3_REGION and OFFSTAGE_S3_ENDPOINT";
  if (status === 403 || status === 401)
    return ": let the key of OFFSTAGE_S3_ACCESS_KEY_ID put, get and delete objects in the bucket";
  return ": check the OFFSTAGE_S3_ settings";
}
