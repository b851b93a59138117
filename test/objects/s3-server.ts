import { createHash } from "node:crypto";
import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { buffer } from "node:stream/consumers";
import { signatureProblem } from "./signature.ts";

type Method = "GET" | "PUT" | "DELETE";

/** What becomes of a request: an answer with this status, none at all, or none though it was carried out. */
export type Fault = 500 | 503 | 429 | "no answer" | "cut off" | "no answer after all";

/** An S3-compatible store with one bucket, for what the service asks of one. Signatures and content are checked. */
export interface S3Server {
  readonly url: string;
  /** What `readConfig` or a child process gets. */
  readonly variables: Record<string, string>;
  readonly objects: Map<string, Buffer>;
  /** Requests that came, as `PUT key`, refused ones too. */
  readonly requests: string[];
  /** Has the next requests fail, each in its way. */
  failNext(method: Method, ...faults: Fault[]): void;
  /** Has all requests of a method fail until `repair`. */
  fail(method: Method, fault: Fault): void;
  repair(): void;
  close(): Promise<void>;
}

export const s3Keys = { accessKeyId: "test-access-key", secretAccessKey: "test-secret+/that/must=not-leak" };
const bucket = "offstage-test";
const region = "eu-test-1";

export async function startS3Server(): Promise<S3Server> {
  const objects = new Map<string, Buffer>();
  const requests: string[] = [];
  const next = new Map<string, Fault[]>();
  const always = new Map<string, Fault>();
  const unanswered = new Set<ServerResponse>();

  async function handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { method = "", url: target = "" } = request;
    const headers = Object.fromEntries(Object.entries(request.headers).map(([name, value]) => [name, String(value)]));
    const key = target.startsWith(`/${bucket}/`) ? decodeURIComponent(target.slice(bucket.length + 2)) : null;
    requests.push(`${method} ${key}`);
    const fault = next.get(method)?.shift() ?? always.get(method);
    if (fault === "cut off") return void request.destroy();
    const content = await buffer(request);
    if (fault === "no answer") return void unanswered.add(response);
    if (typeof fault === "number") return problem(response, fault, fault === 500 ? "InternalError" : "SlowDown");

    const wrong = signatureProblem({ method, target, headers }, { ...s3Keys, region }, new Date());
    if (wrong !== null) return problem(response, wrong === "AuthorizationHeaderMalformed" ? 400 : 403, wrong);
    if (createHash("sha256").update(content).digest("hex") !== headers["x-amz-content-sha256"]) {
      return problem(response, 400, "XAmzContentSHA256Mismatch");
    }
    if (key === null) return problem(response, 404, "NoSuchBucket");
    if (method === "PUT") objects.set(key, content);
    else if (method === "DELETE") objects.delete(key);
    else if (!objects.has(key)) return problem(response, 404, "NoSuchKey");
    if (fault === "no answer after all") return void unanswered.add(response);
    response.writeHead(method === "DELETE" ? 204 : 200).end(method === "GET" ? objects.get(key) : undefined);
  }

  const server = createServer((request, response) => {
    handle(request, response).catch(() => response.destroy());
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return {
    url,
    variables: {
      OFFSTAGE_S3_ENDPOINT: url,
      OFFSTAGE_S3_BUCKET: bucket,
      OFFSTAGE_S3_REGION: region,
      OFFSTAGE_S3_ACCESS_KEY_ID: s3Keys.accessKeyId,
      OFFSTAGE_S3_SECRET_ACCESS_KEY: s3Keys.secretAccessKey,
      OFFSTAGE_S3_PREFIX: "of/this",
    },
    objects,
    requests,
    failNext(method, ...faults) {
      next.set(method, [...(next.get(method) ?? []), ...faults]);
    },
    fail: (method, fault) => void always.set(method, fault),
    repair() {
      next.clear();
      always.clear();
      for (const response of unanswered) response.destroy();
      unanswered.clear();
    },
    async close() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

/** As S3 answers, with what it knows of the key: none of that may be passed on. */
function problem(response: ServerResponse, status: number, code: string): void {
  const said = `<AWSAccessKeyId>${s3Keys.accessKeyId}</AWSAccessKeyId><StringToSign>${s3Keys.secretAccessKey}</StringToSign>`;
  response.writeHead(status, { "Content-Type": "application/xml" });
  response.end(
    `<?xml version="1.0" encoding="UTF-8"?>\n<Error><Code>${code}</Code><Message>No.</Message>${said}</Error>`,
  );
}
