import { randomBytes } from "node:crypto";
import tls from "node:tls";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { createPushKeys, type PushKeys } from "../../src/channels/push.ts";
import type { NoticeSettings } from "../../src/domain/notices/notice.ts";
import { createAuthority } from "../../src/gateway/egress/certificates.ts";
import type { Service } from "../../src/lifecycle/service.ts";
import { createLogger } from "../../src/observability.ts";
import { addTestDeliveries } from "../../src/store/notices/deliveries.ts";
import { updatePreferences } from "../../src/store/notices/preferences.ts";
import { createSubscription } from "../../src/store/notices/subscriptions.ts";
import { readUnsubscribeToken, unsubscribeToken } from "../../src/store/notices/unsubscribe.ts";
import { inviteUser } from "../../src/store/people/invitations.ts";
import { eraseUser, updateUser } from "../../src/store/people/users.ts";
import { finishSession } from "../../src/store/queue/claims.ts";
import { completeMessage, nextMessage } from "../../src/store/queue/progress.ts";
import { environmentKeyring } from "../../src/store/secrets/keyring.ts";
import { createVault } from "../../src/store/secrets/vault.ts";
import { createNotices } from "../../src/worker/background/notices.ts";
import { createTestDatabase, type TestDatabase } from "../database.ts";
import { addOrganization, addPerson, addSession, claim } from "../store/fixtures.ts";
import { startMailServer, startPushReceiver, type MailServer, type PushReceiver } from "./receivers.ts";

const vault = createVault(environmentKeyring(randomBytes(32).toString("base64")));
const authority = createAuthority("The mail's");
let testDatabase: TestDatabase;
let keys: PushKeys;
let mail: MailServer;
const services: Service[] = [];
const receivers: PushReceiver[] = [];

beforeAll(async () => {
  testDatabase = await createTestDatabase();
  keys = await createPushKeys();
  tls.setDefaultCACertificates([...tls.getCACertificates(), authority.certificate]);
  mail = await startMailServer({ login: "offstage:a password", ...authority.serverFor("localhost") });
});

afterEach(async () => {
  for (const service of services.splice(0)) await service.stop();
  for (const receiver of receivers.splice(0)) await receiver.close();
  mail.mails.length = 0;
  mail.refusals.length = 0;
  await testDatabase.database.pool.query("delete from notice_delivery");
});

afterAll(async () => {
  await mail?.close();
  await testDatabase?.close();
});

interface Notified {
  readonly userId: string;
  readonly organizationId: string;
}

async function person(organizationId: string, name: string, email: string | null = null): Promise<Notified> {
  const { userId } = await addPerson(testDatabase.database, organizationId, {
    name: `${name} ${randomBytes(3).toString("hex")}`,
  });
  await testDatabase.database.pool.query("update user_account set email = $2 where id = $1", [userId, email]);
  return { userId, organizationId };
}

/** A browser of a person's. */
async function browser(of: Notified): Promise<PushReceiver> {
  const receiver = await startPushReceiver(() => keys.publicKey, authority.serverFor("127.0.0.1"));
  receivers.push(receiver);
  const input = { ...receiver.subscription, id: crypto.randomUUID(), userAgent: "test" };
  await createSubscription(testDatabase.database, vault, of, input);
  return receiver;
}

const choose = (of: Notified, settings: NoticeSettings): Promise<void> =>
  updatePreferences(
    testDatabase.database,
    of,
    Object.entries(settings).map(([kind, channels]) => ({ kind: kind as keyof NoticeSettings, channels })),
  );

/** A session, with or without a person, that ends. */
async function end(
  organizationId: string,
  askedBy: string | null,
  status: "completed" | "failed",
  prompt = "Work",
): Promise<string> {
  const { database } = testDatabase;
  const { id } = await addSession(database, organizationId, { prompt, requestedBy: askedBy, priority: 1 });
  await database.pool.query("update session set queued_at = '2000-01-01' where id = $1", [id]);
  const held = await claim(database);
  if (held?.sessionId !== id) throw new Error("another session was claimed");
  const message = await nextMessage(database, held);
  await completeMessage(database, held, message?.id ?? "", { answer: "Done.", isKept: true });
  const failure =
    status === "failed"
      ? ({ code: "internal", reason: "It <b>broke</b>.\nBadly.", retryable: true, remedy: "Retry." } as const)
      : null;
  await finishSession(database, held, { status, summary: "Done.", failure });
  return id;
}

async function work(overrides: Partial<Parameters<typeof createNotices>[0]> = {}): Promise<void> {
  const service = createNotices({
    database: testDatabase.database,
    vault,
    logger: createLogger("silent"),
    publicUrl: () => "https://offstage.example",
    mail: {
      host: "localhost",
      port: mail.port,
      tls: "startTls",
      user: "offstage",
      password: "a password",
      from: "Offstage <offstage@company.example>",
    },
    pushKeys: () => Promise.resolve(keys),
    unsubscribeUrl: async (userId, kind) =>
      `https://offstage.example/u?token=${await unsubscribeToken(vault, userId, kind)}`,
    privateHosts: ["127.0.0.1"],
    ...overrides,
  });
  services.push(service);
  await service.start();
}

const deliveries = async (): Promise<{ status: string; attempts: number; problem: string | null; channel: string }[]> =>
  (
    await testDatabase.database.pool.query<{
      status: string;
      attempts: number;
      problem: string | null;
      channel: string;
    }>("select status, attempts, problem, channel from notice_delivery order by created_at, id")
  ).rows;

async function untilSettled(count: number): Promise<void> {
  await expect.poll(async () => (await deliveries()).filter(({ status }) => status !== "pending").length).toBe(count);
}

/** As if the time until the next attempt had passed. */
const hurry = (): Promise<unknown> =>
  testDatabase.database.pool.query("update notice_delivery set next_attempt_at = now()");

describe("a browser", () => {
  test("gets its person's notices, encrypted, once, and no other's", async () => {
    const organizationId = await addOrganization(testDatabase.database);
    const [ada, grace, boss] = await Promise.all(["Ada", "Grace", "Boss"].map((name) => person(organizationId, name)));
    if (ada === undefined || grace === undefined || boss === undefined) throw new Error("nobody");
    const [adas, graces, bosses] = [await browser(ada), await browser(grace), await browser(boss)];
    await choose(boss, { "session.completed": { push: "all" } });
    const foreign = await browser(await person(await addOrganization(testDatabase.database), "Foreign"));
    const id = await end(organizationId, ada.userId, "completed", "Fix the *login* page");
    const other = await end(organizationId, null, "completed");
    await work();
    await untilSettled(3);
    expect(adas.pushes.map(({ payload }) => payload)).toEqual([
      {
        id: expect.any(String) as string,
        title: "Completed: Fix the login page",
        text: "The session is completed.",
        url: `https://offstage.example/sessions/${id}`,
        tag: `session-${id}`,
      },
    ]);
    expect(adas.pushes[0]?.headers).toMatchObject({
      ttl: "86400",
      urgency: "normal",
      topic: expect.stringMatching(/^[\w-]{1,32}$/u) as string,
    });
    expect(bosses.pushes.map(({ payload }) => `${payload["url"]}`).toSorted()).toEqual(
      [id, other].map((each) => `https://offstage.example/sessions/${each}`).toSorted(),
    );
    expect([graces.requests, foreign.requests]).toEqual([0, 0]);
    expect((await deliveries()).every(({ status, attempts }) => status === "sent" && attempts === 1)).toBe(true);
  });

  test("is written to again after a pause if its push service does not answer, and forgotten if it is gone", async () => {
    const ada = await person(await addOrganization(testDatabase.database), "Ada");
    const [flaky, gone] = [await browser(ada), await browser(ada)];
    flaky.refusals.push({ status: 503, headers: { "retry-after": "600" } }, { status: 429 });
    gone.refusals.push({ status: 410 });
    await end(ada.organizationId, ada.userId, "failed");
    await work();
    await expect.poll(() => [flaky.requests, gone.requests]).toEqual([1, 1]);
    // The delivery goes with the subscription.
    await expect
      .poll(async () => (await deliveries()).map(({ status, problem }) => [status, problem]))
      .toEqual([["pending", "as told"]]);
    const { rows } = await testDatabase.database.pool.query<{ seconds: number; subscriptions: number }>(
      `select extract(epoch from next_attempt_at - updated_at)::float8 as seconds,
         (select count(*)::integer from push_subscription where user_id = $1) as subscriptions from notice_delivery`,
      [ada.userId],
    );
    expect([rows[0]?.seconds, rows[0]?.subscriptions]).toEqual([600, 1]);
    await hurry();
    await expect.poll(() => flaky.requests).toBe(2);
    await expect.poll(async () => (await deliveries())[0]?.problem).toBe("as told");
    await hurry();
    await untilSettled(1);
    expect(flaky.pushes.map(({ payload }) => payload["text"])).toEqual(["It <b>broke</b>. Badly."]);
    expect(await deliveries()).toMatchObject([{ status: "sent", attempts: 3, problem: null }]);
  });

  test("is not written to in a private network that the operator does not name", async () => {
    const ada = await person(await addOrganization(testDatabase.database), "Ada");
    const inside = await browser(ada);
    await end(ada.organizationId, ada.userId, "completed");
    await work({ privateHosts: [] });
    await expect.poll(async () => (await deliveries())[0]?.problem).toContain("is in a private network");
    expect(inside.requests).toBe(0);
    // With the host on the list the same delivery arrives.
    await services.pop()?.stop();
    await hurry();
    await work();
    await untilSettled(1);
    expect(inside.pushes).toHaveLength(1);
  });

  test("that another person subscribes is theirs from then on", async () => {
    const organizationId = await addOrganization(testDatabase.database);
    const [ada, grace] = [await person(organizationId, "Ada"), await person(organizationId, "Grace")];
    const shared = await browser(ada);
    const again = { ...shared.subscription, id: crypto.randomUUID(), userAgent: null };
    await createSubscription(testDatabase.database, vault, grace, again);
    await end(organizationId, ada.userId, "completed");
    const graces = await end(organizationId, grace.userId, "completed");
    await work();
    await untilSettled(1);
    expect(shared.pushes.map(({ payload }) => payload["tag"])).toEqual([`session-${graces}`]);
  });

  test("gets each of many notices once, although three workers tell them", async () => {
    const ada = await person(await addOrganization(testDatabase.database), "Ada");
    const adas = await browser(ada);
    for (let count = 0; count < 30; count += 1) await end(ada.organizationId, ada.userId, "completed");
    await Promise.all([work(), work(), work()]);
    await untilSettled(30);
    expect(adas.pushes).toHaveLength(30);
    expect(new Set(adas.pushes.map(({ payload }) => payload["id"])).size).toBe(30);
  });
});

describe("a mail", () => {
  const wanted = { "session.failed": { email: "mine" } } as const;

  test("is sent over TLS, as text and HTML, with a link that ends such mails, and loads nothing", async () => {
    const ada = await person(await addOrganization(testDatabase.database), "Ada", "ada@company.example");
    await choose(ada, wanted);
    const id = await end(
      ada.organizationId,
      ada.userId,
      "failed",
      "Fix <script>alert(1)</script>\u2028Bcc: eve@evil.example",
    );
    await work();
    await untilSettled(1);
    const [got] = mail.mails;
    expect(got).toMatchObject({
      from: "offstage@company.example",
      to: ["ada@company.example"],
      isSecure: true,
      user: "offstage",
    });
    const header = (name: string): string | undefined => got?.headers.get(name);
    expect(header("auto-submitted")).toBe("auto-generated");
    expect(header("list-unsubscribe-post")).toBe("List-Unsubscribe=One-Click");
    expect(header("bcc")).toBeUndefined();
    const token = /token=([^>]+)>/u.exec(header("list-unsubscribe") ?? "")?.[1] ?? "";
    expect(await readUnsubscribeToken(vault, token)).toEqual({ userId: ada.userId, kind: "session.failed" });
    expect(await readUnsubscribeToken(vault, token.replace("failed", "completed"))).toBeNull();
    const text = (got?.raw ?? "").replaceAll("=\r\n", "").replaceAll("=3D", "=");
    expect(text).toContain("Content-Type: text/plain");
    expect(text).toContain("Content-Type: text/html");
    expect(text).toContain(`https://offstage.example/sessions/${id}`);
    expect(text).toContain("It &lt;b&gt;broke&lt;/b&gt;. Badly.");
    expect(text.slice(text.indexOf("Content-Type: text/html"))).not.toMatch(/<script|<img|<link|src=|url\(/iu);
  });

  test("is tried again if the server says later, and given up if it says no", async () => {
    const ada = await person(await addOrganization(testDatabase.database), "Ada", "ada@company.example");
    await choose(ada, wanted);
    mail.refusals.push({ code: 451, words: "Try again later" });
    await end(ada.organizationId, ada.userId, "failed");
    await work();
    await expect.poll(async () => (await deliveries())[0]?.problem).toContain("Try again later");
    await hurry();
    await untilSettled(1);
    expect(mail.mails).toHaveLength(1);
    mail.refusals.push({ code: 550, words: "No such person" });
    await end(ada.organizationId, ada.userId, "failed");
    await untilSettled(2);
    expect((await deliveries())[1]).toMatchObject({
      status: "dead",
      problem: expect.stringContaining("No such person") as string,
    });
  });

  test("is not sent in the clear, nor to a server with an untrusted certificate", async () => {
    const open = await startMailServer({ startTls: false });
    const stranger = await startMailServer({ ...createAuthority("Eve's").serverFor("localhost") });
    const ada = await person(await addOrganization(testDatabase.database), "Ada", "ada@company.example");
    await choose(ada, wanted);
    const settings = {
      host: "localhost",
      tls: "startTls",
      user: null,
      password: null,
      from: "o@company.example",
    } as const;
    await end(ada.organizationId, ada.userId, "failed");
    await work({ mail: { ...settings, port: open.port } });
    await expect.poll(async () => (await deliveries())[0]?.problem).toMatch(/TLS/u);
    await services.pop()?.stop();
    await hurry();
    await work({ mail: { ...settings, port: stranger.port } });
    await expect.poll(async () => (await deliveries())[0]?.problem).toMatch(/certificate|self-signed|issuer/iu);
    expect([open.mails, stranger.mails]).toEqual([[], []]);
    await services.pop()?.stop();
    await hurry();
    // The operator may say that it need not be encrypted.
    await work({ mail: { ...settings, tls: "none", port: open.port } });
    await untilSettled(1);
    expect(open.mails).toHaveLength(1);
    await Promise.all([open.close(), stranger.close()]);
  });
});

test("what a mail server keeps waiting holds up neither invitations nor what goes to browsers", async () => {
  const ada = await person(await addOrganization(testDatabase.database), "Ada", "ada@company.example");
  const adas = await browser(ada);
  await choose(ada, { "session.failed": { email: "mine" } });
  const server = await startMailServer({ startTls: false });
  server.slow.add("ada@company.example");
  const { database } = testDatabase;
  for (let count = 0; count < 20; count += 1) await addTestDeliveries(database, ada, new Set(["email"]));
  const settings = { host: "127.0.0.1", port: server.port, tls: "none", user: null, password: null } as const;
  await work({ mail: { ...settings, from: "o@company.example" } });
  await expect.poll(() => server.waiting).toBe(2);
  await addTestDeliveries(database, ada, new Set(["push"]));
  const invited = { name: "Grace", email: "grace@company.example", role: "member" } as const;
  await inviteUser(database, ada.organizationId, invited, { vault, language: "en" });
  await expect
    .poll(() => [adas.pushes.length, server.mails.map(({ to }) => to)])
    .toEqual([1, [["grace@company.example"]]]);
  // The others wait where another worker can take them, not in this one, where their lease would run out.
  await expect
    .poll(async () => {
      const mails = (await deliveries()).filter(({ channel }) => channel === "email");
      return mails.reduce((sum, { attempts }) => sum + attempts, -server.waiting);
    })
    .toBe(0);
  await server.close();
});

test("a person who does not want it, has no channel, is disabled or was erased gets no notice, and nothing is kept for them", async () => {
  const organizationId = await addOrganization(testDatabase.database);
  await end(organizationId, null, "completed");
  const { pool } = testDatabase.database;
  const count = async (table: string): Promise<number> =>
    (
      await pool.query<{ count: number }>(
        `select count(*)::integer as count from ${table} where organization_id = $1`,
        [organizationId],
      )
    ).rows[0]?.count ?? -1;
  expect(await count("notice")).toBe(0);
  const [off, without, disabled, erased] = await Promise.all(
    ["Off", "Without", "Disabled", "Erased"].map((name) =>
      person(organizationId, name, name === "Without" ? null : `${name}@x.example`),
    ),
  );
  if (off === undefined || without === undefined || disabled === undefined || erased === undefined)
    throw new Error("nobody");
  await browser(off);
  await choose(off, { "session.completed": { push: "off" } });
  await choose(without, { "session.completed": { email: "all" } });
  await browser(disabled);
  await choose(disabled, { "session.completed": { push: "all", email: "all" } });
  await choose(erased, { "session.completed": { push: "all", email: "all" } });
  const erasedBrowser = await browser(erased);
  await addTestDeliveries(testDatabase.database, erased, new Set(["push", "email"]));
  await updateUser(testDatabase.database, organizationId, disabled.userId, { disabled: true });
  await eraseUser(testDatabase.database, organizationId, erased.userId);
  await end(organizationId, off.userId, "completed");
  expect(await count("notice")).toBe(1);
  await work();
  await expect.poll(() => count("notice")).toBe(0);
  expect(await deliveries()).toEqual([]);
  expect([erasedBrowser.requests, mail.mails.length]).toEqual([0, 0]);
  const left = await pool.query(
    "select from notice_preference where user_id = $1 union all select from push_subscription where user_id = $1",
    [erased.userId],
  );
  expect(left.rowCount).toBe(0);
});
