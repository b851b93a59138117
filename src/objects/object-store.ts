import { createHash } from "node:crypto";
import { setTimeout as pause } from "node:timers/promises";
import { AwsV4Signer } from "aws4fetch";
import type { Config } from "../config/config.ts";
import { ObjectStoreError } from "../domain/errors/errors.ts";
import { backoffMs } from "../domain/time/backoff.ts";

/**
 * An S3-compatible store of large artifacts. The code that puts an object keeps a row about it in the database, so
 * objects are never listed.
 */
export interface ObjectStore {
  readonly bucket: string;
  /** The full key of the object `name` in this installation. */
  keyOf(name: string): string;
  /**
   * Stores an object.
   * @throws ObjectStoreError
   */
  put(key: string, content: Buffer, signal: AbortSignal): Promise<void>;
  /**
   * Reads an object.
   * @param options.maximumBytes longer content is truncated
   * @returns null if there is no such object
   * @throws ObjectStoreError
   */
  get(key: string, options: { readonly maximumBytes: number; readonly signal: AbortSignal }): Promise<Buffer | null>;
  /**
   * Removes an object; succeeds if there is none.
   * @throws ObjectStoreError
   */
  remove(key: string, signal: AbortSignal): Promise<void>;
}

/** Time limits of requests to the object store. */
export interface ObjectStoreLimits {
  /** Milliseconds that one request may take. */
  readonly requestMs: number;
  /** Milliseconds for which a request with a temporary failure is retried. */
  readonly totalMs: number;
  /** The same for putting an object. It is shorter, because the caller can try again later and has other work. */
  readonly putMs: number;
}

const usualLimits: ObjectStoreLimits = { requestMs: 15_000, totalMs: 30_000, putMs: 4_000 };
const retrying = { fromMs: 250, toMs: 5_000, jitter: 0.5 };
/** Limit of the body of an error that is read. */
const problemBytes = 64 * 1024;

type Method = "GET" | "PUT" | "DELETE";

interface Answer {
  readonly status: number;
  readonly content: Buffer;
}

/**
 * Makes a client of the object store. It uses path-style addresses, which all such stores support. Temporary failures
 * (no answer, 5xx, 408, 429) are retried within the limits; redirects are not followed.
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
      // With this header the store verifies the content.
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
    const transient =
      answer.status >= 500 || answer.status === 429 || answer.status === 408 || code === "RequestTimeout";
    const answered = code === "" ? answer.status : `${answer.status} (${code})`;
    throw new ObjectStoreError(
      `${name} answered ${answered}${transient ? "" : remedyOf(answer.status, code)}`,
      transient,
    );
  }

  async function call(
    method: Method,
    key: string,
    request: { body: Buffer | null; maximumBytes: number; signal: AbortSignal },
  ): Promise<Answer> {
    // By the wall clock: a process that was suspended for long must not retry, because a sweep may already have
    // removed what it puts.
    const until = Date.now() + (method === "PUT" ? limits.putMs : limits.totalMs);
    for (let attempt = 1; ; attempt += 1) {
      try {
        request.signal.throwIfAborted();
        return await ask(method, key, request);
      } catch (error) {
        if (request.signal.aborted) throw endedBy(request.signal, name);
        const waitMs = backoffMs(attempt, retrying);
        const mayPass = error instanceof ObjectStoreError && error.transient;
        if (!mayPass || Date.now() + waitMs > until) throw error;
        await pause(waitMs, undefined, { signal: request.signal }).catch(() => undefined);
      }
    }
  }

  return {
    bucket,
    keyOf: (of) => prefix + of,
    async put(key, content, signal) {
      const { status, content: answered } = await call("PUT", key, {
        body: content,
        maximumBytes: problemBytes,
        signal,
      });
      if (status === 404) throw new ObjectStoreError(`${name} refused an object: ${answered.toString()}`, false);
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

/**
 * The reason of an aborted request: a timeout of the caller counts as the store's failure, a cancellation or a lost
 * lease does not.
 */
function endedBy(signal: AbortSignal, name: string): unknown {
  const { reason } = signal as { reason: unknown };
  const isOvertime = reason instanceof Error && reason.name === "TimeoutError";
  return isOvertime ? new ObjectStoreError(`${name} was too slow`, true, { cause: reason }) : reason;
}

/** The system's error code for the connection, for example ` (ECONNREFUSED)`. */
function codeOf(error: unknown): string {
  const { cause } = (error ?? {}) as { cause?: { code?: unknown } };
  return typeof cause?.code === "string" ? ` (${cause.code})` : "";
}

function remedyOf(status: number, code: string): string {
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
