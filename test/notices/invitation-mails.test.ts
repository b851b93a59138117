import { randomBytes } from "node:crypto";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import type { Service } from "../../src/lifecycle/service.ts";
import { createLogger } from "../../src/observability.ts";
import { claimInvitationMails } from "../../src/store/people/invitation-mails.ts";
import { inviteAgain, inviteUser, type Invitation } from "../../src/store/people/invitations.ts";
import { redeemLoginLink } from "../../src/store/people/logins.ts";
import { listUsers, updateUser } from "../../src/store/people/users.ts";
import { environmentKeyring } from "../../src/store/secrets/keyring.ts";
import { rotateMasterKey } from "../../src/store/secrets/rotation.ts";
import { createVault } from "../../src/store/secrets/vault.ts";
import { createNotices } from "../../src/worker/background/notices.ts";
import { createTestDatabase, type TestDatabase } from "../database.ts";
import { addOrganization } from "../store/fixtures.ts";
import { startMailServer, type MailServer, type ReceivedMail } from "./receivers.ts";

const masterKey = randomBytes(32).toString("base64");
const vault = createVault(environmentKeyring(masterKey));
let testDatabase: TestDatabase;
let organizationId: string;
let mail: MailServer;
const services: Service[] = [];

beforeAll(async () => {
  testDatabase = await createTestDatabase();
  mail = await startMailServer({ startTls: false });
});
afterEach(async () => {
  for (const service of services.splice(0)) await service.stop();
  mail.mails.length = 0;
  mail.refusals.length = 0;
  await testDatabase.database.pool.query("delete from login_link");
});
afterAll(async () => {
  await mail?.close();
  await testDatabase?.close();
});

async function work(overrides: Partial<Parameters<typeof createNotices>[0]> = {}): Promise<void> {
  const service = createNotices({
    database: testDatabase.database,
    vault,
    logger: createLogger("silent"),
    publicUrl: () => "https://offstage.example",
    mail: {
      host: "127.0.0.1",
      port: mail.port,
      tls: "none",
      user: null,
      password: null,
      from: "Offstage <offstage@company.example>",
    },
    pushKeys: () => Promise.reject(new Error("nothing is pushed")),
    unsubscribeUrl: () => Promise.reject(new Error("no notice is sent")),
    privateHosts: [],
    ...overrides,
  });
  services.push(service);
  await service.start();
}

/** Invites a person to a new organization. */
async function invite(email: string | null = "ada@company.example", language: "en" | "de" = "en"): Promise<Invitation> {
  organizationId = await addOrganization(testDatabase.database);
  return inviteUser(
    testDatabase.database,
    organizationId,
    { name: "Ada Löve", email, role: "member" },
    { vault, language },
  );
}

const stateOf = async (): Promise<unknown> =>
  (await listUsers(testDatabase.database, organizationId, { limit: 10 })).items[0]?.invitationMail;
/** As if the time until the next attempt had passed. */
const hurry = (): Promise<unknown> =>
  testDatabase.database.pool.query("update invitation_mail set next_attempt_at = now()");
const signIn = (token: string): Promise<string | null> =>
  redeemLoginLink(testDatabase.database, token, { days: 1, address: null, userAgent: null });

/** A mail as it is read: both parts are in quoted-printable. */
function textOf(got: ReceivedMail | undefined): string {
  const bytes = (got?.raw ?? "")
    .replaceAll("=\r\n", "")
    .replaceAll(/=([0-9A-F]{2})/gu, (_, digits: string) => String.fromCodePoint(Number.parseInt(digits, 16)));
  return Buffer.from(bytes, "latin1").toString();
}

const tokenIn = (got: ReceivedMail | undefined): string =>
  /https:\/\/offstage\.example\/sign-in\?invited=true#([\w-]{43})/u.exec(textOf(got))?.[1] ?? "";

test("takes the link to the person in their language, once, and nothing keeps it after that", async () => {
  const invitation = await invite("ada@company.example", "de");
  expect(invitation.mailedTo).toBe("ada@company.example");
  expect(invitation.user.invitationMail).toEqual({ status: "pending", problem: null });
  const { rows } = await testDatabase.database.pool.query(
    "select row_to_json(mail)::text as row from invitation_mail mail",
  );
  expect(JSON.stringify(rows)).not.toContain(invitation.token);
  await Promise.all([work(), work(), work()]);
  await expect.poll(stateOf).toEqual({ status: "sent", problem: null });
  const [got] = mail.mails;
  expect(mail.mails).toHaveLength(1);
  expect(got).toMatchObject({ from: "offstage@company.example", to: ["ada@company.example"] });
  expect(got?.headers.get("subject")).toBe("Du bist zu Offstage eingeladen");
  expect(got?.headers.get("list-unsubscribe")).toBeUndefined();
  expect(textOf(got)).toContain("Du kannst Offstage unter offstage.example benutzen");
  expect(textOf(got)).toContain('<html lang="de">');
  expect(tokenIn(got)).toBe(invitation.token);
  const kept = await testDatabase.database.pool.query("select sealed, master_key from invitation_mail");
  expect(kept.rows).toEqual([{ sealed: null, master_key: null }]);
  expect(await signIn(tokenIn(got))).not.toBeNull();
  expect(await signIn(tokenIn(got))).toBeNull();
});

test("is tried again with the same id if the server says later, or the worker died while it sent", async () => {
  const { token } = await invite();
  mail.refusals.push({ code: 451, words: "Try again later" });
  await work();
  await expect.poll(stateOf).toMatchObject({ status: "pending", problem: expect.stringContaining("Try again later") });
  await services.pop()?.stop();
  await hurry();
  // A worker that takes it, and dies.
  const [taken] = await claimInvitationMails(testDatabase.database, { limit: 1, leaseMs: 60_000 });
  expect(await claimInvitationMails(testDatabase.database, { limit: 1, leaseMs: 60_000 })).toEqual([]);
  await hurry();
  await work();
  await expect.poll(stateOf).toEqual({ status: "sent", problem: null });
  expect(mail.mails.map((got) => [tokenIn(got), got.headers.get("message-id")])).toEqual([
    [token, `<${taken?.id ?? ""}@offstage>`],
  ]);
});

test("is given up if the server refuses it, and what the server says of it has no link", async () => {
  const { token } = await invite();
  mail.refusals.push({ code: 550, words: `Spam: https://offstage.example/sign-in?invited=true#${token}` });
  await work();
  await expect.poll(stateOf).toMatchObject({ status: "dead", problem: expect.stringContaining("Spam: https://") });
  const { rows } = await testDatabase.database.pool.query(
    "select row_to_json(mail)::text as row from invitation_mail mail",
  );
  expect(JSON.stringify(rows)).not.toContain(token);
  expect(await signIn(token)).not.toBeNull();
});

test("goes with its link: another one is mailed in its place, and none to who may not sign in", async () => {
  const first = await invite();
  const { database } = testDatabase;
  const again = await inviteAgain(database, organizationId, first.user.id, { vault, language: "en" });
  await work();
  await expect.poll(stateOf).toEqual({ status: "sent", problem: null });
  expect(mail.mails.map(tokenIn)).toEqual([again.token]);
  await inviteAgain(database, organizationId, first.user.id, { vault, language: "en" });
  await expect.poll(() => mail.mails.length).toBe(2);
  await services.pop()?.stop();
  await inviteAgain(database, organizationId, first.user.id, { vault, language: "en" });
  await updateUser(database, organizationId, first.user.id, { disabled: true });
  expect((await database.pool.query("select from invitation_mail")).rowCount).toBe(0);
});

test("is not sent once the link was used", async () => {
  const { token } = await invite();
  expect(await signIn(token)).not.toBeNull();
  expect(await claimInvitationMails(testDatabase.database, { limit: 1, leaseMs: 1 })).toEqual([]);
});

test.each([
  ["without an address", null, { vault, language: "en" } as const],
  ["without a mail server", "ada@company.example", null],
])("is none %s", async (_, email, mailing) => {
  organizationId = await addOrganization(testDatabase.database);
  const person = { name: "Ada", email, role: "member" } as const;
  const { mailedTo, user } = await inviteUser(testDatabase.database, organizationId, person, mailing);
  expect([mailedTo, user.invitationMail]).toEqual([null, null]);
});

test("is sealed anew when the master key is rotated, and sent", async () => {
  const { token } = await invite();
  const both = createVault(environmentKeyring(`${randomBytes(32).toString("base64")},${masterKey}`));
  expect(await rotateMasterKey(testDatabase.database, both)).toBe(1);
  await work({ vault: both });
  await expect.poll(stateOf).toEqual({ status: "sent", problem: null });
  expect(mail.mails.map(tokenIn)).toEqual([token]);
});
