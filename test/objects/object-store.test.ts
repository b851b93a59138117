import { randomBytes } from "node:crypto";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { readConfig } from "../../src/config/config.ts";
import { ObjectStoreError } from "../../src/domain/errors/errors.ts";
import { createObjectStore, type ObjectStore } from "../../src/objects/object-store.ts";
import { s3Keys, startS3Server, type S3Server } from "./s3-server.ts";
import { signatureProblem } from "./signature.ts";

let s3: S3Server;

beforeAll(async () => {
  s3 = await startS3Server();
});
afterEach(() => {
  s3.repair();
  s3.objects.clear();
  s3.requests.splice(0);
});
afterAll(() => s3.close());

const patient = { requestMs: 20_000, totalMs: 60_000, putMs: 60_000 };
const never = new AbortController().signal;

function store(variables: Record<string, string> = {}, limits = patient): ObjectStore {
  const { objects } = readConfig({ ...s3.variables, ...variables });
  if (objects === null) throw new Error("nothing is configured");
  return createObjectStore(objects, limits);
}

const get = (objects: ObjectStore, key: string, maximumBytes = 10_000_000) =>
  objects.get(key, { maximumBytes, signal: never });

/** What it rejects with, of which nothing may show a secret, however it is printed. */
async function problemOf(promise: Promise<unknown>): Promise<ObjectStoreError> {
  const error = await promise.then(
    () => null,
    (reason: unknown) => reason,
  );
  if (!(error instanceof ObjectStoreError)) throw new Error("it did not fail as it should", { cause: error });
  for (let shown: unknown = error; shown instanceof Error; shown = shown.cause) {
    const all = [shown.message, shown.stack, JSON.stringify(shown)].join(" ");
    for (const secret of Object.values(s3Keys)) expect(all).not.toContain(secret);
  }
  return error;
}

it("puts, gets and removes, below the prefix", async () => {
  const objects = store();
  const content = randomBytes(5_000_000);
  const key = objects.keyOf("checkpoints/a");
  expect(key).toBe("of/this/checkpoints/a");
  await objects.put(key, content, never);
  expect([...s3.objects.keys()]).toEqual([key]);
  expect((await get(objects, key))?.equals(content)).toBe(true);
  await objects.remove(key, never);
  expect(s3.objects.size).toBe(0);
  expect(await get(objects, key)).toBeNull();
  await objects.remove(key, never);
});

it("reads no more of an object than there should be", async () => {
  const objects = store();
  await objects.put("large", randomBytes(3_000_000), never);
  expect((await get(objects, "large", 1_000))?.length).toBe(1_000);
});

describe("what is wrong for good is said at once, with the remedy, and without the keys", () => {
  it.each([
    [
      "another secret",
      { OFFSTAGE_S3_SECRET_ACCESS_KEY: "wrong" },
      /403 \(SignatureDoesNotMatch\): correct .*SECRET_AC/u,
    ],
    ["another key", { OFFSTAGE_S3_ACCESS_KEY_ID: "wrong" }, /403 \(InvalidAccessKeyId\): correct .*ACCESS_KEY_ID/u],
    ["another region", { OFFSTAGE_S3_REGION: "us-east-1" }, /400 \(Auth\w+\): correct OFFSTAGE_S3_REGION/u],
    ["another bucket", { OFFSTAGE_S3_BUCKET: "absent" }, /404 \(NoSuchBucket\): create the bucket, or correct/u],
  ])("%s", async (_, variables, sentence) => {
    const objects = store(variables);
    for (const ask of [() => objects.put("a", Buffer.from("a"), never), () => get(objects, "a")]) {
      const error = await problemOf(ask());
      expect(error.message).toMatch(sentence);
      expect(error.transient).toBe(false);
    }
    expect(s3.requests).toHaveLength(2);
    expect(s3.objects.size).toBe(0);
  });
});

it("tries again what may pass by itself: faults, too many requests, connections that are cut", async () => {
  const objects = store();
  s3.failNext("PUT", 500, 503, "cut off", 429);
  await objects.put("a", Buffer.from("content"), never);
  s3.failNext("GET", 503, "cut off");
  expect((await get(objects, "a"))?.toString()).toBe("content");
  s3.failNext("DELETE", "cut off", 500);
  await objects.remove("a", never);
  expect(s3.objects.size).toBe(0);
  expect(s3.requests).toHaveLength(5 + 3 + 3);
});

it("tries again if there is no answer, also to what was carried out", async () => {
  const objects = store({}, { requestMs: 300, totalMs: 60_000, putMs: 60_000 });
  s3.failNext("PUT", "no answer", "no answer after all");
  await objects.put("a", Buffer.from("content"), never);
  expect((await get(objects, "a"))?.toString()).toBe("content");
});

it("gives up if the store stays down, and says why", async () => {
  const objects = store({}, { requestMs: 20_000, totalMs: 100, putMs: 100 });
  s3.fail("PUT", 503);
  const error = await problemOf(objects.put("a", Buffer.from("a"), never));
  expect(error).toMatchObject({
    transient: true,
    message: expect.stringMatching(/^the object store at 127.0.0.1:\d+ answered 503 \(SlowDown\)$/u) as unknown,
  });
  const gone = await startS3Server();
  await gone.close();
  const nowhere = store({ OFFSTAGE_S3_ENDPOINT: gone.url }, { requestMs: 20_000, totalMs: 100, putMs: 100 });
  expect((await problemOf(get(nowhere, "a"))).message).toMatch(/ could not be reached \(ECONNREFUSED\)$/u);
});

it("ends at once if what asked is cancelled, with its reason, and with the store's fault if its time is over", async () => {
  const objects = store();
  s3.fail("GET", "no answer");
  const cancelled = new AbortController();
  const asking = objects.get("a", { maximumBytes: 1, signal: cancelled.signal });
  cancelled.abort(new Error("was cancelled"));
  await expect(asking).rejects.toThrow("was cancelled");
  const late = await problemOf(objects.get("a", { maximumBytes: 1, signal: AbortSignal.timeout(1) }));
  expect(late.message).toMatch(/was too slow$/u);
});

it("has its signatures checked as AWS's own example says", () => {
  // "Signature Calculations for the Authorization Header", example of a GET with a range.
  const headers = {
    host: "examplebucket.s3.amazonaws.com",
    range: "bytes=0-9",
    "x-amz-content-sha256": "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
    "x-amz-date": "20130524T000000Z",
    authorization:
      "AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/aws4_request,SignedHeaders=host;range;x-amz-content-sha256;x-amz-date,Signature=f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41",
  };
  const keys = {
    accessKeyId: "AKIAIOSFODNN7EXAMPLE",
    secretAccessKey: "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
    region: "us-east-1",
  };
  const now = new Date("2013-05-24T00:10:00Z");
  const request = { method: "GET", target: "/test.txt", headers };
  expect(signatureProblem(request, keys, now)).toBeNull();
  expect(signatureProblem({ ...request, target: "/test.txT" }, keys, now)).toBe("SignatureDoesNotMatch");
  expect(signatureProblem(request, keys, new Date("2013-05-24T00:16:00Z"))).toBe("RequestTimeTooSkewed");
});
