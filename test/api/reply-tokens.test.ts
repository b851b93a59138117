import { afterAll, beforeAll, expect, test } from "vitest";
import { openReplyToken } from "../../src/store/automations/trigger-secrets.ts";
import { environmentKeyring } from "../../src/store/secrets/keyring.ts";
import { createVault } from "../../src/store/secrets/vault.ts";
import { createTestApp, type TestApp } from "./app.ts";

let api: TestApp;
const vault = createVault(environmentKeyring(Buffer.alloc(32, 7).toString("base64")));
const token = "xoxb-1234-5678-abcdef";

beforeAll(async () => {
  api = await createTestApp({ vault });
});
afterAll(() => api.close());

async function create(trigger: object) {
  const macro = `m-${crypto.randomUUID().slice(0, 13)}`;
  return api.post("/automation/create", { name: macro, macro, instructions: "Work", triggers: [trigger] });
}
const slack = { type: "source", source: "slack", secret: "the sender's secret" };
const opened = (triggerId: string) => openReplyToken(api.database, vault, api.organizationId, triggerId);

test("a token for answers is kept sealed, shown as set, and changed or removed only if it is named", async () => {
  const { body } = await create({ ...slack, replyToken: token });
  const [, trigger] = body.triggers;
  expect(JSON.stringify(body)).not.toContain(token);
  expect(trigger).toMatchObject({ hasReplyToken: true });
  expect(await opened(trigger.id)).toBe(token);
  const { rows } = await api.database.pool.query<{ row: string }>("select trigger::text as row from trigger");
  expect(rows.map(({ row }) => row).join("\n")).not.toContain("xoxb");

  const update = async (changes: object) => {
    const { url: _, secret: __, ...given } = trigger;
    const answer = await api.post(`/automation/${body.id}/update`, { triggers: [{ ...given, ...changes }] });
    expect([answer.status, answer.body.error]).toEqual([200, undefined]);
    return answer.body.triggers[1];
  };
  expect(await update({ events: ["mention"] })).toMatchObject({ hasReplyToken: true });
  expect(await opened(trigger.id)).toBe(token);
  await update({ secret: "another secret of the sender" });
  expect(await opened(trigger.id)).toBe(token);
  const { body: rotated } = await api.post(`/automation/${body.id}/trigger/${trigger.id}/rotate`, {});
  expect(rotated).toMatchObject({ hasReplyToken: true });
  expect(await opened(trigger.id)).toBe(token);
  await update({ replyToken: "xoxb-another" });
  expect(await opened(trigger.id)).toBe("xoxb-another");
  expect(await update({ replyToken: "" })).toMatchObject({ hasReplyToken: false });
  expect(await opened(trigger.id)).toBeNull();
  await update({ replyToken: token });
  await api.post(`/automation/${body.id}/update`, { triggers: [] });
  expect(await opened(trigger.id)).toBeNull();
});

test.each([
  ["slack", "xoxp-of-a-person", "must be a bot token of Slack, which begins with xoxb-"],
  ["slack", "xoxb-with space", "must be a bot token of Slack, which begins with xoxb-"],
  ["linear", "short", "must be an API key of Linear, which begins with lin_api_, or an OAuth token"],
  ["sentry", "xoxb-1", "must be absent: sentry takes no answers back"],
])("%s takes no token %s", async (source, replyToken, words) => {
  const { status, body } = await create({ ...slack, source, replyToken });
  expect([status, body.error]).toEqual([400, expect.stringContaining(words)]);
  expect(body.error).not.toContain(replyToken);
});

test("a trigger without a token says so, and the other organization's token is not used", async () => {
  const { body } = await create(slack);
  expect(body.triggers[1]).toMatchObject({ hasReplyToken: false });
  expect(await opened(body.triggers[1].id)).toBeNull();
  const { body: own } = await create({ ...slack, replyToken: token });
  expect(await openReplyToken(api.database, vault, crypto.randomUUID(), own.triggers[1].id)).toBeNull();
});
