import { afterAll, beforeAll, expect, test } from "vitest";
import { sampleDelivery } from "../../src/inbound/sources/source.ts";
import { sources } from "../../src/inbound/sources/sources.ts";
import type { Offstage } from "../../src/server/offstage.ts";
import { callApi } from "../call.ts";
import { signDelivery } from "../inbound/sign-delivery.ts";
import { startLinear, type LinearService } from "../replies/linear-service.ts";
import { startSlack, type SlackService } from "../replies/slack-service.ts";
import { waitFor } from "../wait-for.ts";
import { createWorld, startInProcess, type World } from "../world.ts";
import { script } from "./script.ts";

/** Answers that go back to Slack and Linear, from the signed event to the message in the thread. */
let world: World;
let offstage: Offstage;
let slack: SlackService;
let linear: LinearService;
const secret = "the secret of the sender";

beforeAll(async () => {
  [slack, linear] = await Promise.all([startSlack(), startLinear()]);
  world = await createWorld(script);
  ({ offstage } = await startInProcess(world, {
    OFFSTAGE_DEFAULT_AGENT: "basic:scripted",
    OFFSTAGE_SLACK_API_URL: slack.apiUrl,
    OFFSTAGE_LINEAR_API_URL: linear.apiUrl,
  }));
});
afterAll(async () => {
  await offstage?.stop();
  await Promise.all([world?.close(), slack?.close(), linear?.close()]);
});

// oxlint-disable-next-line typescript/no-explicit-any -- what a test expects of a body is the test's to say
const call = (path: string, body?: unknown): Promise<any> => callApi(offstage.url, path, body);

async function addAutomation(source: "slack" | "linear", replyToken: string, instructions: string): Promise<string> {
  const macro = `m-${crypto.randomUUID().slice(0, 8)}`;
  const { url } = await world.forge.createRepository("acme", macro, { "README.md": "# Before\n" });
  const { id } = await call("/repository/create", { url });
  const { triggers } = await call("/automation/create", {
    name: macro,
    macro,
    instructions,
    codeRepoIds: [id],
    triggers: [{ type: "source", source, secret, replyToken }],
  });
  expect(JSON.stringify(triggers)).not.toContain(replyToken);
  expect(triggers[1]).toMatchObject({ hasReplyToken: true });
  return triggers[1].url;
}

let sent = 0;
/** Delivers an event of Slack as Slack does. */
async function say(url: string, text: string, event: object = {}): Promise<{ outcome?: string; ledgerId?: string }> {
  const [sample] = sources.slack.samples;
  if (sample === undefined) throw new Error("there is no sample");
  sent += 1;
  const payload = {
    ...sample.payload,
    event_id: `Ev${sent}`,
    event: {
      ...(sample.payload["event"] as object),
      type: "app_mention",
      channel: slack.target.channel,
      ts: `150.${String(sent).padStart(6, "0")}`,
      event_ts: `150.${String(sent).padStart(6, "0")}`,
      thread_ts: slack.target.threadId,
      text,
      ...event,
    },
  };
  return deliver("slack", url, { ...sample, payload });
}

async function deliver(source: "slack" | "linear", url: string, sample: Parameters<typeof sampleDelivery>[0]) {
  const { headers, body } = signDelivery(source, sampleDelivery(sample), secret, Date.now());
  const answer = await fetch(url, { method: "POST", headers: headers as Record<string, string>, body });
  expect(answer.ok).toBe(true);
  return (await answer.json()) as { outcome?: string; ledgerId?: string };
}

const words = () => slack.thread.slice(1).map(({ text }) => text);
const untilSaid = (count: number) => waitFor(async () => slack.thread.length > count, `${count} messages`);

test("a mention in Slack gets a link to the session and the result with the pull request, once; our own words start nothing", async () => {
  const order = "write fix.txt: fixed, then shell sleep 3, then say <!channel> done";
  const url = await addAutomation("slack", slack.token, order);
  slack.faults.push({ kind: "lost" });
  const { ledgerId } = await say(url, "please fix it");
  await untilSaid(2);
  const { sessionId } = await call(`/ledger/${ledgerId}`);
  const [begun, ended] = words();
  expect(begun).toBe(`Offstage is working on it.\n\n<${offstage.url}/sessions/${sessionId}>`);
  expect(ended).toContain("Offstage is done.");
  expect(ended).toContain("&lt;!channel&gt;");
  expect(ended).not.toContain("<!channel");
  const session = await call(`/session/${sessionId}`);
  expect(ended).toContain(`<${session.pullRequests[0].url}>`);
  // What we wrote comes back as an event of the app itself.
  const own = await say(url, begun ?? "", {
    type: "message",
    bot_id: "B0OFFSTAGE",
    app_id: sources.slack.samples[0]?.payload["api_app_id"],
    subtype: "bot_message",
  });
  expect(own.outcome).not.toBe("accepted");
  const { answers } = await call(`/session/${sessionId}/answer/list`);
  expect(answers).toMatchObject([
    { kind: "service", status: "sent", service: "slack" },
    { kind: "service", status: "sent" },
  ]);
});

test("a channel without the app leaves the reason on the session, and the run goes on", async () => {
  const url = await addAutomation("slack", slack.token, "{{ event.message.text }}");
  const { ledgerId } = await say(url, "say hello", { channel: "C-without-us" });
  await waitFor(async () => {
    const { sessionId } = await call(`/ledger/${ledgerId}`);
    if (sessionId === null) return false;
    const { answers } = await call(`/session/${sessionId}/answer/list`);
    return answers.some(
      ({ status, problem }: { status: string; problem: string }) =>
        status === "refused" && problem.includes("invite the app to the channel"),
    );
  }, "it is refused");
  const { sessionId } = await call(`/ledger/${ledgerId}`);
  await call(`/session/${sessionId}/cancel`, {});
  await waitFor(async () => (await call(`/session/${sessionId}`)).status === "cancelled", "it is cancelled");
});

test("an issue of Linear gets the link and the result as comments, and agents' words as they are", async () => {
  const url = await addAutomation("linear", linear.token, "say ![](https://evil.example/x)");
  const [sample] = sources.linear.samples;
  if (sample === undefined) throw new Error("there is no sample");
  const data = { ...(sample.payload["data"] as object), id: linear.target.issueId };
  await deliver("linear", url, { ...sample, payload: { ...sample.payload, data, webhookTimestamp: Date.now() } });
  const last = () => linear.comments.at(-1)?.body ?? "";
  await waitFor(() => last().startsWith("Offstage is done."), "the result");
  expect(last()).toMatch(/^```text$[^]*!\[\]\(https:\/\/evil\.example\/x\)[^]*^```$/mu);
  expect(linear.comments.length).toBeLessThanOrEqual(2);
});
