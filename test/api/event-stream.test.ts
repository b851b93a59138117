import type { AddressInfo } from "node:net";
import { afterAll, beforeAll, expect, it } from "vitest";
import { createClient, type Client } from "../../src/client.ts";
import {
  appendClaimEvents,
  claimSession,
  completeMessage,
  finishSession,
  nextMessage,
  type Claim,
} from "../../src/store/claims.ts";
import { createTestApp, type TestApp } from "./app.ts";

let testApp: TestApp;
let client: Client;
let url: string;

beforeAll(async () => {
  testApp = await createTestApp({ heartbeatMs: 50 });
  await testApp.app.listen({ host: "127.0.0.1", port: 0 });
  url = `http://127.0.0.1:${(testApp.app.server.address() as AddressInfo).port}`;
  client = createClient({ baseUrl: url, key: testApp.adminKey });
});

afterAll(() => testApp?.close());

async function runningSession(): Promise<Claim> {
  const { database } = testApp.testDatabase;
  await client.session.create({ prompt: "x" });
  const claim = await claimSession(database, { worker: "w", leaseMs: 60_000, maxRunningPerOrganization: 1_000 });
  if (claim === null) throw new Error("nothing was queued");
  return claim;
}

const say = (claim: Claim, ...texts: string[]): Promise<void> =>
  appendClaimEvents(
    testApp.testDatabase.database,
    claim,
    texts.map((text) => ({ type: "notice", data: { level: "info", text } })),
  );

async function end(claim: Claim): Promise<void> {
  const { database } = testApp.testDatabase;
  const message = await nextMessage(database, claim);
  await completeMessage(database, claim, message?.id ?? "", "done");
  await finishSession(database, claim, { status: "completed", summary: null, failure: null });
}

/** The stream as it comes, read until `enough` says so, or to its end. */
async function read(
  id: string,
  headers: Record<string, string>,
  enough: (text: string) => boolean = () => false,
): Promise<string> {
  const response = await fetch(`${url}/session/${id}/events`, {
    headers: { Authorization: `Bearer ${testApp.adminKey}`, Accept: "text/event-stream", ...headers },
  });
  expect(response.headers.get("content-type")).toContain("text/event-stream");
  const decoder = new TextDecoder();
  let text = "";
  for await (const chunk of response.body ?? []) {
    text += decoder.decode(chunk as Uint8Array, { stream: true });
    if (enough(text)) break;
  }
  return text;
}

const numbers = (text: string): number[] => [...text.matchAll(/^id: (\d+)$/gmu)].map((match) => Number(match[1]));

it("tells what was and what comes, in order, and ends with the session", async () => {
  const claim = await runningSession();
  const whole = read(claim.sessionId, {});
  await say(claim, "one");
  await say(claim, "two", "three");
  await end(claim);
  const text = await whole;
  expect(numbers(text)).toEqual(numbers(text).map((_, index) => index + 1));
  expect(text).toContain('"three"');
  expect(text.trimEnd().endsWith("event: end\ndata: {}")).toBe(true);
});

it("goes on after Last-Event-ID, and after the query's number where there is none", async () => {
  const claim = await runningSession();
  await say(claim, "one", "two", "three");
  await end(claim);
  expect(numbers(await read(claim.sessionId, { "Last-Event-ID": "4" }))[0]).toBe(5);
  expect(numbers(await read(claim.sessionId, { "Last-Event-ID": "nonsense" }))[0]).toBe(1);
  const page = await client.session.events(claim.sessionId, { after: "4", limit: 1 });
  expect(page).toMatchObject({ events: [{ seq: 5 }], nextCursor: "5" });
});

it("keeps a quiet connection alive with a comment", async () => {
  const claim = await runningSession();
  const text = await read(claim.sessionId, {}, (so) => (so.match(/: heartbeat/gu) ?? []).length >= 2);
  expect(text).toContain(": heartbeat\n\n");
  await end(claim);
});

it("tells a hundred events to twenty watchers at once, each every one and once", async () => {
  const claim = await runningSession();
  const watchers = Array.from({ length: 20 }, () => read(claim.sessionId, {}));
  for (let index = 0; index < 50; index += 1) await say(claim, `${index}a`, `${index}b`);
  await end(claim);
  for (const text of await Promise.all(watchers)) {
    const seen = numbers(text);
    expect(seen).toEqual(seen.map((_, index) => index + 1));
    expect(seen.length).toBeGreaterThan(100);
  }
});

it("is not given to a stranger", async () => {
  const claim = await runningSession();
  const response = await fetch(`${url}/session/${claim.sessionId}/events`, {
    headers: { Accept: "text/event-stream" },
  });
  expect(response.status).toBe(401);
  await end(claim);
});
