import { once } from "node:events";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";
import { Webhook } from "standardwebhooks";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import type { Client } from "../../src/client.ts";
import { readConfig } from "../../src/config/config.ts";
import { createForges } from "../../src/forges/forges.ts";
import { createLogger } from "../../src/observability.ts";
import type { Offstage } from "../../src/server/offstage.ts";
import { claimDeliveries } from "../../src/store/webhooks/deliveries.ts";
import { pollPullRequests } from "../../src/worker/background/pull-request-polling.ts";
import { callApi } from "../call.ts";
import { waitFor } from "../wait-for.ts";
import { createWorld, startInProcess, untilOver, type World } from "../world.ts";
import { script } from "./script.ts";

interface Delivery {
  readonly id: string;
  readonly headers: Record<string, string>;
  readonly body: string;
  readonly type: string;
  readonly data: Record<string, unknown>;
}

/** An address of a webhook, which answers what `answer` says. */
class Receiver {
  readonly deliveries: Delivery[] = [];
  answer: (response: ServerResponse, count: number) => void = (response) => response.end();
  /** Answers 101 with an open connection. */
  switchesProtocol = false;
  private readonly server: Server;

  constructor() {
    this.server = createServer((request, response) => void this.take(request, response));
    this.server.listen(0, "127.0.0.1");
  }

  get url(): string {
    return `http://127.0.0.1:${(this.server.address() as AddressInfo).port}/hook`;
  }

  types(): string[] {
    return this.deliveries.map(({ type }) => type);
  }

  async ready(): Promise<this> {
    if (!this.server.listening) await once(this.server, "listening");
    return this;
  }

  close(): void {
    this.server.close();
    this.server.closeAllConnections();
  }

  private async take(request: IncomingMessage, response: ServerResponse): Promise<void> {
    if (this.switchesProtocol) {
      request.socket.write("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: other\r\n\r\n");
      return;
    }
    const body = await text(request);
    const { type, data } = JSON.parse(body) as Pick<Delivery, "type" | "data">;
    const headers = request.headers as Record<string, string>;
    this.deliveries.push({ id: headers["webhook-id"] ?? "", headers, body, type, data });
    this.answer(response, this.deliveries.length);
  }
}

let world: World;
let offstage: Offstage;
let client: Client;
const receivers: Receiver[] = [];
const webhooks: string[] = [];

beforeAll(async () => {
  world = await createWorld(script);
  ({ offstage, client } = await startInProcess(world, {
    OFFSTAGE_DEFAULT_AGENT: "basic:scripted",
    OFFSTAGE_WEBHOOK_HOSTS: "127.0.0.1",
    OFFSTAGE_RATE_LIMIT_PER_MINUTE: "100000",
  }));
});

afterEach(async () => {
  for (const id of webhooks.splice(0)) await call(`/webhook/${id}/delete`, {});
  for (const receiver of receivers.splice(0)) receiver.close();
});

afterAll(async () => {
  await offstage?.stop();
  await world?.close();
});

// oxlint-disable-next-line typescript/no-explicit-any -- what a test expects of a body is the test's to say
const call = (path: string, body?: unknown): Promise<any> => callApi(offstage.url, path, body);

async function receive(events?: string[]): Promise<{ receiver: Receiver; id: string; secret: string }> {
  const receiver = await new Receiver().ready();
  receivers.push(receiver);
  const { id, secret } = await call("/webhook/create", { url: receiver.url, ...(events !== undefined && { events }) });
  webhooks.push(id);
  return { receiver, id, secret };
}

const deliveryOf = async (webhookId: string) => (await call(`/delivery/list?webhookId=${webhookId}`)).deliveries[0];
const due = (id: string, attempts: number): Promise<unknown> =>
  offstage.database.pool.query(
    "update webhook_delivery set next_attempt_at = now(), attempts = $2 where id = $1 and status = 'pending'",
    [id, attempts],
  );

test("a session's way to its pull request is delivered, each step once, signed by Standard Webhooks", async () => {
  const { receiver, secret } = await receive();
  const { url } = await world.forge.createRepository("acme", "told", { "README.md": "# Before\n" });
  const session = await client.session.create({ prompt: "write a.txt: alpha", repositories: [url] });
  await untilOver(client, session.id);
  const steps = ["session.queued", "session.running", "pullRequest.opened", "session.completed"];
  await waitFor(() => receiver.deliveries.length >= steps.length, "all is delivered");
  expect(receiver.types().toSorted()).toEqual(steps.toSorted());
  const verifier = new Webhook(secret);
  for (const { body, headers } of receiver.deliveries) expect(() => verifier.verify(body, headers)).not.toThrow();
  const tampered = receiver.deliveries[0]?.body.replace("session", "Session") ?? "";
  expect(() => verifier.verify(tampered, receiver.deliveries[0]?.headers ?? {})).toThrow(/no matching signature/iu);
  expect(new Set(receiver.deliveries.map(({ id }) => id)).size).toBe(steps.length);
  const completed = receiver.deliveries.find(({ type }) => type === "session.completed");
  expect(completed?.data).toMatchObject({
    id: session.id,
    status: "completed",
    title: "write a.txt: alpha",
    sessionHtmlUrl: session.htmlUrl,
  });
  const opened = receiver.deliveries.find(({ type }) => type === "pullRequest.opened");
  expect(opened?.data).toMatchObject({ sessionId: session.id, number: 1, state: "open" });
});

test("a trigger's job and its session are delivered, and no event that was not chosen", async () => {
  const { receiver } = await receive(["job.pending", "job.running", "job.completed", "session.completed"]);
  await call("/automation/create", { name: "Told", macro: "told", instructions: "say {{ event.word }}" });
  const job = await call("/automation/told/trigger", { word: "hello" });
  await waitFor(() => receiver.deliveries.length >= 4, "all is delivered");
  expect(receiver.types().toSorted()).toEqual(["job.completed", "job.pending", "job.running", "session.completed"]);
  const completed = receiver.deliveries.find(({ type }) => type === "job.completed");
  expect(completed?.data).toMatchObject({ id: job.id, status: "completed" });
  expect(receiver.deliveries.find(({ type }) => type === "session.completed")?.data).toMatchObject({
    jobId: job.id,
    id: completed?.data["sessionId"],
  });
});

test("a delivery to an address that fails is repeated under the same id, and the log says how it went", async () => {
  const { receiver, id } = await receive();
  receiver.answer = (response, count) => {
    if (count === 1) response.writeHead(500).end("try later");
    else if (count === 2) response.writeHead(302, { location: "http://127.0.0.1:1/" }).end();
    else response.end();
  };
  const { id: delivery } = await call(`/webhook/${id}/test`, {});
  for (const attempts of [1, 2]) {
    await waitFor(async () => (await call(`/delivery/${delivery}`)).log.length === attempts, "it was tried");
    expect(await call(`/delivery/${delivery}`)).toMatchObject({ status: "pending", attempts });
    await due(delivery, attempts);
  }
  await waitFor(async () => (await call(`/delivery/${delivery}`)).status === "delivered", "it is delivered");
  const { log } = await call(`/delivery/${delivery}`);
  expect(log.map(({ status, error }: { status: number; error: string | null }) => [status, error])).toEqual([
    [500, "try later"],
    [302, "it answered 302"],
    [200, null],
  ]);
  expect(new Set(receiver.deliveries.map(({ id: webhookId, body }) => webhookId + body)).size).toBe(1);
});

test("a delivery that was tried for a day is dead, and sent again on request", async () => {
  const { receiver, id } = await receive();
  receiver.answer = (response) => response.writeHead(503).end();
  const { id: delivery } = await call(`/webhook/${id}/test`, {});
  await waitFor(async () => (await call(`/delivery/${delivery}`)).log.length === 1, "it was tried");
  await expect(call(`/delivery/${delivery}/resend`, {})).rejects.toThrow(/is still pending/u);
  await due(delivery, 11);
  await waitFor(async () => (await call(`/delivery/${delivery}`)).status === "dead", "it is given up");
  expect((await call("/delivery/list?status=dead")).deliveries.map(({ id: dead }: { id: string }) => dead)).toContain(
    delivery,
  );
  receiver.answer = (response) => response.end();
  expect(await call(`/delivery/${delivery}/resend`, {})).toMatchObject({ status: "pending", attempts: 0 });
  await waitFor(async () => (await call(`/delivery/${delivery}`)).status === "delivered", "it is delivered");
});

test("an address that says it is gone gets nothing more, until it is switched on again", async () => {
  const { receiver, id } = await receive(["session.completed"]);
  receiver.answer = (response) => response.writeHead(410).end();
  await call(`/webhook/${id}/test`, {});
  await waitFor(async () => !(await call(`/webhook/${id}`)).enabled, "it is switched off");
  expect(await call(`/webhook/${id}`)).toMatchObject({ disabledReason: "its address answered 410 Gone" });
  const delivery = await deliveryOf(id);
  expect(delivery).toMatchObject({ status: "dead" });
  // Else it would wait for ever.
  await expect(call(`/webhook/${id}/test`, {})).rejects.toThrow(/is disabled.*enable it first/u);
  await expect(call(`/delivery/${delivery.id}/resend`, {})).rejects.toThrow(/is disabled.*enable it first/u);
  receiver.answer = (response) => response.end();
  const unheard = await client.session.create({ prompt: "say unheard" });
  await untilOver(client, unheard.id);
  expect(await call(`/webhook/${id}/update`, { enabled: true })).toMatchObject({ enabled: true, disabledReason: null });
  const heard = await client.session.create({ prompt: "say heard" });
  await waitFor(() => receiver.types().includes("session.completed"), "it is delivered again");
  expect(receiver.deliveries.filter(({ type }) => type === "session.completed").map(({ data }) => data["id"])).toEqual([
    heard.id,
  ]);
});

test("an address that switches to another protocol is taken for one that failed, and holds nothing up", async () => {
  const { receiver, id } = await receive();
  receiver.switchesProtocol = true;
  const { id: delivery } = await call(`/webhook/${id}/test`, {});
  await waitFor(async () => (await call(`/delivery/${delivery}`)).log.length === 1, "it was tried");
  expect((await call(`/delivery/${delivery}`)).log[0]).toMatchObject({ status: null });
});

test("a webhook that is being deleted breaks none of its deliveries", async () => {
  const { id } = await receive();
  const removing = await offstage.database.pool.connect();
  await removing.query("begin");
  await removing.query("delete from webhook where id = $1", [id]);
  const created = client.session.create({ prompt: "say nothing" });
  await waitFor(async () => {
    const { rows } = await offstage.database.pool.query(
      "select 1 from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()",
    );
    return rows.length > 0;
  }, "the creation waits for the deletion");
  await removing.query("commit");
  removing.release();
  webhooks.splice(webhooks.indexOf(id), 1);
  expect((await untilOver(client, (await created).id)).status).toBe("completed");
});

test("a delivery of a relay that died is sent by another", async () => {
  const { receiver, id } = await receive();
  await offstage.database.pool.query(
    `insert into webhook_delivery (id, organization_id, webhook_id, type, data, next_attempt_at)
     select gen_random_uuid(), organization_id, id, 'webhook.test', '{}', now() + interval '1 hour' from webhook where id = $1`,
    [id],
  );
  const { id: delivery } = await deliveryOf(id);
  await offstage.database.transaction(async (transaction) => {
    await transaction.query("update webhook_delivery set next_attempt_at = now() where id = $1", [delivery]);
    const [taken] = await claimDeliveries(
      { ...offstage.database, pool: transaction as never },
      {
        limit: 10,
        leaseMs: 1,
        busy: [],
      },
    );
    expect(taken?.id).toBe(delivery);
  });
  await waitFor(async () => (await call(`/delivery/${delivery}`)).status === "delivered", "it is delivered");
  expect(receiver.deliveries.map(({ id: webhookId }) => webhookId)).toEqual([delivery]);
});

test("a private address that the operator did not name is not asked", async () => {
  const { id } = await call("/webhook/create", { url: "http://localhost:9/hook" });
  webhooks.push(id);
  const { id: delivery } = await call(`/webhook/${id}/test`, {});
  await waitFor(async () => (await call(`/delivery/${delivery}`)).log.length === 1, "it was tried");
  expect((await call(`/delivery/${delivery}`)).log[0]).toMatchObject({
    status: null,
    error: expect.stringContaining("localhost is in a private network") as string,
  });
});

test("the secret is shown once, and another signs after it was rotated", async () => {
  const { receiver, id, secret } = await receive();
  expect(secret).toMatch(/^whsec_[A-Za-z0-9+/]{43}=$/u);
  expect(JSON.stringify([await call(`/webhook/${id}`), await call("/webhook/list")])).not.toContain(secret);
  const { rows } = await offstage.database.pool.query("select sealed::text from webhook");
  expect(JSON.stringify(rows)).not.toContain(Buffer.from(secret).toString("hex"));
  const rotated = await call(`/webhook/${id}/rotate`, {});
  expect(rotated.secret).not.toBe(secret);
  await call(`/webhook/${id}/test`, {});
  const delivery = await waitFor(() => receiver.deliveries[0], "it is delivered");
  expect(() => new Webhook(secret).verify(delivery.body, delivery.headers)).toThrow(/no matching signature/iu);
  expect(() => new Webhook(rotated.secret).verify(delivery.body, delivery.headers)).not.toThrow();
});

test("a merged pull request is delivered, once, and shown on its session", async () => {
  const { receiver } = await receive(["pullRequest.merged"]);
  const { url } = await world.forge.createRepository("acme", "merged", { "README.md": "# Before\n" });
  const session = await client.session.create({ prompt: "write a.txt: alpha", repositories: [url] });
  await untilOver(client, session.id);
  const { forgeOf } = createForges(readConfig(world.variables).forges);
  const look = async (): Promise<void> => {
    await offstage.database.pool.query("update pull_request set checked_at = now() - interval '1 hour'");
    const { database } = offstage;
    await pollPullRequests(
      { database, logger: createLogger("silent"), forgeOf, minutes: 5 },
      new AbortController().signal,
    );
  };
  await look();
  expect((await client.session.get(session.id)).pullRequests).toMatchObject([{ state: "open" }]);
  world.forge.endPullRequest("acme", "merged", 1, "merged");
  await look();
  await look();
  expect((await client.session.get(session.id)).pullRequests).toMatchObject([{ state: "merged" }]);
  const delivery = await waitFor(() => receiver.deliveries[0], "it is delivered");
  expect(delivery.data).toMatchObject({ sessionId: session.id, number: 1, state: "merged" });
  const { events } = await client.session.events(session.id, { limit: 1_000 });
  expect(events.filter(({ type }) => type === "pullRequest.closed")).toHaveLength(1);
});

test("a pull request that replaces a merged one is delivered as well, and followed as long", async () => {
  const { receiver } = await receive(["pullRequest.opened"]);
  const { url } = await world.forge.createRepository("acme", "again", { "README.md": "# Before\n" });
  const session = await client.session.create({ prompt: "write a.txt: alpha", repositories: [url] });
  await untilOver(client, session.id);
  world.forge.endPullRequest("acme", "again", 1, "merged");
  await offstage.database.pool.query("update pull_request set created_at = now() - interval '1 year'");
  await client.session.message(session.id, { message: "write b.txt: beta" });
  await untilOver(client, session.id);
  await waitFor(() => receiver.deliveries.length >= 2, "both are delivered");
  expect(receiver.deliveries.map(({ data }) => data["number"])).toEqual([1, 2]);
  const { rows } = await offstage.database.pool.query(
    "select number from pull_request where session_id = $1 and created_at > now() - interval '1 day'",
    [session.id],
  );
  expect(rows).toEqual([{ number: 2 }]);
});

test.each([
  [{ url: "ftp://example.com/" }, /url must be an http:\/\/ or https:\/\/ address/u],
  [{ url: "https://user:password@example.com/" }, /url must not contain credentials/u],
  [{ url: "https://example.com/", events: ["session.exploded"] }, /events/u],
  [{}, /url is required/u],
])("refuses %j", async (body, sentence) => {
  await expect(call("/webhook/create", body)).rejects.toThrow(sentence);
});
