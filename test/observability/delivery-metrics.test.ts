import { once } from "node:events";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { Offstage } from "../../src/server/offstage.ts";
import { callApi } from "../call.ts";
import { script } from "../end-to-end/script.ts";
import { waitFor } from "../wait-for.ts";
import { createWorld, startInProcess, type World } from "../world.ts";
import { readScrape, type Scrape } from "./scrape.ts";

/** Metrics of the outbox, after real attempts at a real address. */
let world: World;
let offstage: Offstage;
let receiver: Server;
let status = 200;

beforeAll(async () => {
  receiver = createServer((_request, response) => response.writeHead(status).end()).listen(0, "127.0.0.1");
  await once(receiver, "listening");
  world = await createWorld(script);
  ({ offstage } = await startInProcess(world, { OFFSTAGE_WEBHOOK_HOSTS: "127.0.0.1" }));
});

afterAll(async () => {
  await offstage?.stop();
  await world?.close();
  receiver.close();
});

// oxlint-disable-next-line typescript/no-explicit-any -- what a test expects of a body is the test's to say
const call = (path: string, body?: unknown): Promise<any> => callApi(offstage.url, path, body);
const scrape = async (): Promise<Scrape> => readScrape(await (await fetch(`${offstage.url}/metrics`)).text());
const attempts = (found: Scrape, outcome: string) =>
  found.value("offstage_delivery_attempt_duration_seconds_count", { outcome });
const createWebhook = async (url: string): Promise<string> =>
  ((await call("/webhook/create", { url, events: ["pullRequest.opened"] })) as { id: string }).id;
const here = (): string => `http://127.0.0.1:${(receiver.address() as AddressInfo).port}/hook`;

async function scrapeUntil(isThere: (found: Scrape) => boolean, what: string): Promise<void> {
  await waitFor(async () => isThere(await scrape()), what);
}

test("attempts are counted by how they ended, and what is tried again waits for later", async () => {
  const id = await createWebhook(here());
  await call(`/webhook/${id}/test`, {});
  await scrapeUntil((found) => attempts(found, "delivered") === 1, "it is delivered");
  status = 500;
  await call(`/webhook/${id}/test`, {});
  await scrapeUntil((found) => attempts(found, "refused") === 1, "it is refused");
  const unnamed = await createWebhook("http://localhost:9/");
  await call(`/webhook/${unnamed}/test`, {});
  await scrapeUntil((found) => attempts(found, "unanswered") === 1, "nothing answers");
  // Both are between two attempts, or being tried again by now.
  await scrapeUntil(
    (found) =>
      (found.value("offstage_deliveries", { state: "later" }) ?? 0) +
        (found.value("offstage_deliveries", { state: "due" }) ?? 0) ===
      2,
    "both are counted",
  );
  expect((await scrape()).value("offstage_deliveries_dead_total")).toBe(0);
  await call(`/webhook/${id}/delete`, {});
  await call(`/webhook/${unnamed}/delete`, {});
});

test("what is given up is counted: after the last attempt, and all that waits for an address that is gone", async () => {
  status = 503;
  const id = await createWebhook(here());
  const { id: last } = await call(`/webhook/${id}/test`, {});
  await waitFor(async () => (await call(`/delivery/${last}`)).log.length > 0, "it was tried");
  await offstage.database.pool.query(
    "update webhook_delivery set next_attempt_at = now(), attempts = 11 where id = $1",
    [last],
  );
  await scrapeUntil((found) => found.value("offstage_deliveries_dead_total") === 1, "it is given up");
  await offstage.database.pool.query(
    `insert into webhook_delivery (id, organization_id, webhook_id, type, data, next_attempt_at)
     select gen_random_uuid(), organization_id, id, 'webhook.test', '{}', now() + interval '1 hour' from webhook where id = $1`,
    [id],
  );
  status = 410;
  await call(`/webhook/${id}/test`, {});
  await scrapeUntil((found) => found.value("offstage_deliveries_dead_total") === 3, "both are given up");
});
