import { randomBytes } from "node:crypto";
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { createClient, type Client } from "../../src/client.ts";
import { readConfig } from "../../src/config/config.ts";
import { createLogger } from "../../src/observability.ts";
import { startOffstage, type Offstage, type ServerRole } from "../../src/server/offstage.ts";
import { callApi } from "../call.ts";
import { script } from "../end-to-end/script.ts";
import { freePorts } from "../fleet.ts";
import { waitFor } from "../wait-for.ts";
import { adminKey, createWorld, modelKey, untilOver, type World } from "../world.ts";
import { startOtlpReceiver, type OtlpReceiver, type ReceivedSpan } from "./otlp-receiver.ts";

/** An API node and a worker, each with a sender of its own, and a real receiver over HTTP. */
let world: World;
let receiver: OtlpReceiver;
let url: string;
let client: Client;
const nodes: Offstage[] = [];
const headerSecret = "collector-secret-that-is-for-the-collector";

async function startNode(role: ServerRole, shared: Record<string, string>): Promise<Offstage> {
  const data = join(world.data, role);
  await mkdir(data, { recursive: true });
  const settings = {
    ...world.variables,
    ...shared,
    OFFSTAGE_DATA: data,
    OTEL_SERVICE_NAME: `offstage-${role}`,
    OTEL_EXPORTER_OTLP_ENDPOINT: receiver.url,
    OTEL_EXPORTER_OTLP_HEADERS: `x-collector-key=${headerSecret}`,
  };
  const node = await startOffstage(readConfig(settings), createLogger("warn"), role);
  nodes.push(node);
  return node;
}

beforeAll(async () => {
  receiver = await startOtlpReceiver();
  world = await createWorld(script);
  const [port = 0] = await freePorts(1);
  url = `http://127.0.0.1:${port}`;
  const shared = {
    OFFSTAGE_DEFAULT_AGENT: "basic:scripted",
    OFFSTAGE_MASTER_KEY: randomBytes(32).toString("base64"),
    OFFSTAGE_PORT: String(port),
    OFFSTAGE_PUBLIC_URL: url,
  };
  await startNode("api", shared);
  await startNode("worker", shared);
  client = createClient({ baseUrl: url, key: adminKey });
});

afterAll(async () => {
  for (const node of nodes) await node.stop();
  await world?.close();
  await receiver?.close();
});

const prompt = "write traced.txt: words of the prompt that no span may hold";

/** All spans of the trace in which one has this attribute, once these names, of either node, are among them. */
async function traceWith(
  attribute: string,
  value: string,
  names: readonly string[] = [],
): Promise<readonly ReceivedSpan[]> {
  return waitFor(
    () => {
      const found = receiver.spans().find(({ attributes }) => attributes[attribute] === value);
      const trace = receiver.spans().filter(({ traceId }) => traceId === found?.traceId);
      const isWhole = names.every((name) => trace.some((span) => span.name === name));
      return found !== undefined && isWhole ? trace : null;
    },
    `the spans ${names.join(", ")} of ${value} arrive`,
  );
}

/** Names of the spans below one, in the order of their names, each with those below it. */
function treeOf(spans: readonly ReceivedSpan[], parent: ReceivedSpan | undefined): unknown[] {
  return spans
    .filter(({ parentSpanId }) => parentSpanId === (parent?.spanId ?? ""))
    .toSorted((one, other) => one.name.localeCompare(other.name))
    .map((span) => {
      const below = treeOf(spans, span);
      return below.length === 0 ? span.name : [span.name, below];
    });
}

const runTree = [
  "session.attempt",
  [
    ["step.agent", ["turn"]],
    "step.commit",
    "step.prepare",
    ["step.pullRequest", ["pullRequest"]],
    ["step.push", ["push"]],
  ],
];

test("one trace goes from the request on one node to the pull request of another", async () => {
  const { url: repository } = await world.forge.createRepository("acme", "traced", { "README.md": "# Before\n" });
  // As a client that has no other way shows it: the key must be in no span all the same.
  const response = await fetch(`${url}/session/create?apiKey=${adminKey}`, {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify({ prompt, repositories: [repository] }),
  });
  const { id } = (await response.json()) as { id: string };
  expect((await untilOver(client, id)).pullRequests).toHaveLength(1);
  const spans = await traceWith("offstage.session.id", id, ["session.attempt", "postPublic-apiSessionCreate"]);
  expect(treeOf(spans, undefined)).toEqual([["postPublic-apiSessionCreate", [runTree]]]);
  const request = spans.find(({ parentSpanId }) => parentSpanId === "");
  expect(request).toMatchObject({
    service: "offstage-api",
    failed: false,
    attributes: {
      "http.request.method": "POST",
      "http.route": "/session/create",
      "http.response.status_code": 200,
      "offstage.request.id": response.headers.get("x-request-id"),
    },
  });
  expect(spans.find(({ name }) => name === "session.attempt")).toMatchObject({
    service: "offstage-worker",
    attributes: { "offstage.attempt": 1, "offstage.outcome": "completed" },
  });
  expect(spans.find(({ name }) => name === "turn")?.attributes).toMatchObject({ "offstage.agent": "basic" });
});

test("a trigger's trace goes on through its job", async () => {
  const automation = await callApi(url, "/automation/create", {
    name: "Traced",
    macro: "traced",
    instructions: "say triggered",
  });
  const job = await callApi(url, `/automation/${automation.id}/trigger`, {});
  const all = await traceWith("offstage.job.id", job.id, ["triggerAutomation", "job.run", "session.attempt"]);
  // A job that a busy worker could not run at once is run again, which the trace has, too.
  const spans = all.filter(({ name, failed }) => name !== "job.run" || !failed);
  expect(treeOf(spans, undefined)).toEqual([
    [
      "triggerAutomation",
      [["job.run", [["session.attempt", [["step.agent", ["turn"]], "step.commit", "step.prepare"]]]]],
    ],
  ]);
});

test("a caller's own trace is gone on with, and what is no trace context is left aside", async () => {
  const traceId = "0af7651916cd43dd8448eb211c80319c";
  const get = (traceparent: string): Promise<Response> =>
    fetch(`${url}/session/list`, { headers: { authorization: `Bearer ${adminKey}`, traceparent } });
  const known = await get(`00-${traceId}-b7ad6b7169203331-01`);
  const [span] = await traceWith("offstage.request.id", known.headers.get("x-request-id") ?? "");
  expect(span).toMatchObject({ traceId, parentSpanId: "b7ad6b7169203331" });
  const unknown = await get(`00-${traceId}-not a trace-01`);
  expect(unknown.status).toBe(200);
  const [other] = await traceWith("offstage.request.id", unknown.headers.get("x-request-id") ?? "");
  expect(other?.parentSpanId).toBe("");
});

test("an attempt that fails says so by its code, and not in words", async () => {
  const { id } = await client.session.create({ prompt, repositories: [`${world.forge.url}/acme/secret-name`] });
  expect((await untilOver(client, id)).status).toBe("failed");
  const spans = await traceWith("offstage.session.id", id, ["session.attempt"]);
  const failed = spans.filter(({ name }) => name === "session.attempt" || name === "step.prepare");
  expect(failed).toHaveLength(2);
  for (const span of failed) {
    expect(span).toMatchObject({ failed: true, attributes: { "error.type": "repository_not_found" } });
  }
});

test("no span holds a key, a secret, a prompt or a repository's address", () => {
  const sent = receiver.everything();
  // What is there to be searched: that the receiver got the spans, with its own key and nothing else of ours.
  expect(sent).toContain("postPublic-apiSessionCreate");
  expect(sent).toContain(headerSecret);
  const spans = JSON.stringify(receiver.spans());
  for (const hidden of [adminKey, "apiKey", modelKey, world.forge.token, "words of the prompt", "secret-name"]) {
    expect(spans).not.toContain(hidden);
    expect(sent).not.toContain(hidden);
  }
});

test("a node that stops sends what it still has", async () => {
  const { id } = await client.session.create({ prompt: "say stopping" });
  await untilOver(client, id);
  for (const node of nodes.splice(0)) await node.stop();
  expect(receiver.spans().some(({ attributes }) => attributes["offstage.session.id"] === id)).toBe(true);
});
