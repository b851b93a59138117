import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { Client } from "../../src/client.ts";
import { readConfig } from "../../src/config/config.ts";
import { failureCodes } from "../../src/domain/errors/errors.ts";
import { createLogger } from "../../src/observability.ts";
import { startOffstage, type Offstage } from "../../src/server/offstage.ts";
import { script } from "../end-to-end/script.ts";
import { freePorts } from "../fleet.ts";
import { waitFor } from "../wait-for.ts";
import { adminKey, createWorld, startInProcess, untilOver, type World } from "../world.ts";
import { readScrape, type Scrape } from "./scrape.ts";

/** All metrics, after real runs. */
let world: World;
let offstage: Offstage;
let client: Client;

const settings = {
  OFFSTAGE_DEFAULT_AGENT: "basic:scripted",
  OFFSTAGE_PRICES: JSON.stringify({ "script*": { input: 1_000, output: 1_000 } }),
};

beforeAll(async () => {
  world = await createWorld(script);
  ({ offstage, client } = await startInProcess(world, settings));
});

afterAll(async () => {
  await offstage?.stop();
  await world?.close();
});

async function scrape(url = offstage.url): Promise<Scrape> {
  const response = await fetch(`${url}/metrics`);
  expect(response.status).toBe(200);
  expect(response.headers.get("content-type")).toMatch(/^text\/plain; version=0\.0\.4/u);
  return readScrape(await response.text());
}

/** Scrapes until the fleet's figures, which are kept for a moment, are these. */
const scrapeUntil = (isThere: (found: Scrape) => boolean, what: string): Promise<Scrape> =>
  waitFor(async () => {
    const found = await scrape();
    return isThere(found) ? found : null;
  }, what);

test("an attempt is counted, timed by step and priced", async () => {
  const { url } = await world.forge.createRepository("acme", "counted", { "README.md": "# Before\n" });
  const { id } = await client.session.create({ prompt: "write a.txt: alpha", repositories: [url] });
  expect((await untilOver(client, id)).status).toBe("completed");
  // The event that ends a session is written before its worker has counted it.
  const found = await scrapeUntil(
    (one) => one.value("offstage_attempts_total", { outcome: "completed" }) === 1,
    "it ended",
  );
  for (const step of ["prepare", "agent", "commit", "push", "pullRequest"]) {
    expect(found.value("offstage_step_duration_seconds_count", { step, outcome: "completed" })).toBe(1);
  }
  expect(found.value("offstage_queue_wait_seconds_count")).toBe(1);
  expect(found.value("offstage_claim_to_start_seconds_count")).toBe(1);
  const model = { provider: "compatible", model: "scripted" };
  expect(found.value("offstage_model_requests_total", { ...model, outcome: "answered" })).toBe(2);
  const used = (await client.session.events(id, { limit: 1_000 })).events.filter(
    (event) => event.type === "model.usage",
  );
  const tokens = used.reduce((sum, { data }) => sum + data.inputTokens, 0);
  expect(found.value("offstage_model_tokens_total", { ...model, kind: "input" })).toBe(tokens);
  const { spentUsd } = await client.session.get(id);
  expect(spentUsd).toBeGreaterThan(0);
  expect(found.value("offstage_model_cost_dollars_total", model)).toBeCloseTo(spentUsd, 4);
});

test("an attempt that fails is counted under its code, and a model's errors beside it", async () => {
  const missing = `${world.forge.url}/acme/none`;
  const { id } = await client.session.create({ prompt: "write x: y", repositories: [missing] });
  expect((await untilOver(client, id)).failure?.code).toBe("repository_not_found");
  const refused = await client.session.create({ prompt: "fail 400" });
  expect((await untilOver(client, refused.id)).failure?.code).toBe("model_error");
  const found = await scrapeUntil(
    (one) => one.value("offstage_attempts_total", { outcome: "failed" }) === 2,
    "both ended",
  );
  expect(found.value("offstage_attempt_failures_total", { code: "repository_not_found" })).toBe(1);
  expect(found.value("offstage_attempt_failures_total", { code: "model_error" })).toBe(1);
  expect(found.value("offstage_step_duration_seconds_count", { step: "prepare", outcome: "failed" })).toBe(1);
  expect(found.value("offstage_model_requests_total", { outcome: "failed" })).toBeGreaterThan(0);
});

test("what runs, waits and is watched is there while it is, and gone after", async () => {
  await client.session.create({ prompt: "say later", queueRightAway: false });
  const { id } = await client.session.create({ prompt: "shell sleep 300" });
  const watching = new AbortController();
  const watched = await fetch(`${offstage.url}/session/${id}/events`, {
    headers: { Authorization: `Bearer ${adminKey}`, Accept: "text/event-stream" },
    signal: watching.signal,
  });
  expect(watched.status).toBe(200);
  const during = await scrapeUntil((one) => one.value("offstage_sessions", { state: "running" }) === 1, "it runs");
  expect(during.value("offstage_sessions", { state: "draft" })).toBe(1);
  expect(during.value("offstage_queue_depth", { queue: "sessions" })).toBe(0);
  expect(during.value("offstage_queue_oldest_wait_seconds", { queue: "sessions" })).toBe(0);
  expect(during.value("offstage_event_streams")).toBe(1);
  expect(during.value("offstage_workers")).toBe(1);
  expect(during.value("offstage_database_up")).toBe(1);
  const requests = during.value("offstage_http_request_duration_seconds_count", { operation: "listEvents" }) ?? 0;
  watching.abort();
  let looks = 0;
  await waitFor(async () => {
    looks += 1;
    const { events } = await client.session.events(id, { limit: 100 });
    return events.some(({ type }) => type === "agent.started");
  }, "its agent works");
  await client.session.cancel(id);
  await scrapeUntil(
    (one) => one.value("offstage_sessions", { state: "running" }) === 0 && one.value("offstage_event_streams") === 0,
    "it is over, and no client watches",
  );
  const after = await scrapeUntil(
    (one) => one.value("offstage_attempts_total", { outcome: "cancelled" }) === 1,
    "it ended",
  );
  // The duration of a watch is no response time.
  expect(after.value("offstage_http_request_duration_seconds_count", { operation: "listEvents" }) ?? 0).toBe(
    requests + looks,
  );
  expect(after.value("offstage_step_duration_seconds_count", { step: "agent", outcome: "stopped" })).toBe(1);
});

test("requests are timed by operation and status, and no label holds what a caller chose", async () => {
  const strange = `name-${crypto.randomUUID()}`;
  const { id } = await client.session.create({ prompt: "say hello", agent: `basic:${strange}` });
  await untilOver(client, id);
  await fetch(`${offstage.url}/${strange}`);
  await fetch(`${offstage.url}/session/${strange}?apiKey=${adminKey}`);
  await fetch(`${offstage.url}/session/list`);
  const found = await scrapeUntil(
    (one) => one.value("offstage_model_requests_total", { model: "other", outcome: "answered" }) === 1,
    "the model was asked",
  );
  const timed = "offstage_http_request_duration_seconds_count";
  expect(found.value(timed, { operation: "postPublic-apiSessionCreate", status: "200" })).toBeGreaterThan(1);
  expect(found.value(timed, { operation: "listSessions", status: "401" })).toBe(1);
  expect(found.value(timed, { operation: "getSession", status: "404" })).toBe(1);
  expect(found.value(timed, { operation: "other", status: "404" })).toBe(1);
  const values = found.samples.flatMap(({ labels }) => Object.values(labels));
  expect(values.filter((value) => value.includes(strange) || /[0-9a-f]{8}-[0-9a-f]{4}/u.test(value))).toEqual([]);
  const codes = found.samples
    .filter(({ name }) => name === "offstage_attempt_failures_total")
    .map(({ labels }) => labels["code"]);
  expect(codes.every((code) => (failureCodes as readonly (string | undefined)[]).includes(code))).toBe(true);
});

test("the pool and the process have metrics", async () => {
  const found = await scrape();
  const connections = ["idle", "used"].map((state) => found.value("offstage_database_connections", { state }) ?? 0);
  expect(connections[0]).toBeGreaterThan(0);
  expect(found.value("offstage_database_waiting_queries")).toBe(0);
  expect(found.value("process_resident_memory_bytes")).toBeGreaterThan(0);
  expect(found.value("nodejs_eventloop_lag_p99_seconds")).toBeGreaterThanOrEqual(0);
});

test("a worker takes up what a dead one left, and says how many", async () => {
  const { rows } = await offstage.database.pool.query<{ organization_id: string }>(
    "select organization_id from session limit 1",
  );
  await offstage.database.pool.query(
    `insert into session (id, organization_id, title, description, status, branch_name, worker, lease_until, started_at)
     values ($1, $2, 'Left', 'Left', 'running', 'left', 'dead', now() - interval '1 second', now())`,
    [crypto.randomUUID(), rows[0]?.organization_id],
  );
  await scrapeUntil((one) => one.value("offstage_sessions_recovered_total") === 1, "the lease that ran out is seen");
});

test("a lease that was lost is counted by the worker that lost it", async () => {
  const before = (await scrape()).value("offstage_leases_lost_total") ?? 0;
  const { id } = await client.session.create({ prompt: "shell sleep 300" });
  await waitFor(async () => (await client.session.get(id)).status === "running", "it runs");
  // As if another had claimed it.
  await offstage.database.pool.query("update session set attempt = attempt + 1 where id = $1", [id]);
  await scrapeUntil((one) => one.value("offstage_leases_lost_total") === before + 1, "the worker gives it up");
  await client.session.cancel(id);
});

test("a worker alone serves its metrics and its health on a port of their own", async () => {
  const [port = 0] = await freePorts(1);
  const data = join(world.data, "alone");
  await mkdir(data, { recursive: true });
  const shared = {
    OFFSTAGE_MASTER_KEY: Buffer.alloc(32, 7).toString("base64"),
    OFFSTAGE_PUBLIC_URL: "https://offstage.company.example",
    OFFSTAGE_METRICS_PORT: String(port),
  };
  const config = readConfig({ ...world.variables, ...settings, ...shared, OFFSTAGE_DATA: data });
  const worker = await startOffstage(config, createLogger("warn"), "worker");
  const url = `http://127.0.0.1:${port}`;
  try {
    const found = await scrape(url);
    expect(found.value("offstage_workers")).toBe(2);
    expect(found.value("process_resident_memory_bytes")).toBeGreaterThan(0);
    expect((await fetch(`${url}/healthz`)).status).toBe(200);
    expect((await fetch(`${url}/readyz`)).status).toBe(200);
    expect((await fetch(`${url}/session/list`)).status).toBe(404);
    for (const server of [url, offstage.url]) {
      for (const path of ["/healthz", "/readyz", "/metrics"]) {
        const refused = await fetch(server + path, { method: "POST" });
        expect([refused.status, refused.headers.get("allow")]).toEqual([405, "GET, HEAD"]);
      }
    }
    expect((await fetch(`${url}/metrics`, { headers: { "X-Forwarded-For": "203.0.113.7" } })).status).toBe(404);
  } finally {
    await worker.stop();
  }
  await expect(fetch(`${url}/healthz`)).rejects.toThrow("fetch failed");
});
