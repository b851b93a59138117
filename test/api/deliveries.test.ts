import { createHmac, randomUUID } from "node:crypto";
import type { WebhookDefinition } from "@octokit/webhooks-examples";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { sources } from "../../src/inbound/sources/sources.ts";
import { sampleDelivery, type SourceSample } from "../../src/inbound/sources/source.ts";
import { forgeEventNames } from "../../src/domain/automations/forge-event.ts";
import { sourceEventNames, sourceNames } from "../../src/domain/automations/source-event.ts";
import { mostRunsOfSubject } from "../../src/domain/automations/trigger.ts";
import type { InboundDelivery } from "../../src/inbound/delivery.ts";
import type { DeliveringForge } from "../../src/inbound/forges/readers.ts";
import { createLogger } from "../../src/observability.ts";
import { environmentKeyring } from "../../src/store/secrets/keyring.ts";
import { createConnection } from "../../src/store/secrets/forge-connections.ts";
import { createVault } from "../../src/store/secrets/vault.ts";
import { delivered, secret as hookSecretOfSamples, type Sample } from "../inbound/deliveries.ts";
import { azureSamples } from "../inbound/samples/azure.ts";
import { bitbucketDataCenterSamples, bitbucketSamples } from "../inbound/samples/bitbucket.ts";
import { giteaSamples } from "../inbound/samples/gitea.ts";
import { example } from "../inbound/samples/github.ts";
import { gitlabSamples } from "../inbound/samples/gitlab.ts";
import { signDelivery } from "../inbound/sign-delivery.ts";
import { createTestApp, type TestApp } from "./app.ts";
import { decideAllEvents } from "../worker/decide-all.ts";

let api: TestApp;
const vault = createVault(environmentKeyring(Buffer.alloc(32, 7).toString("base64")));
const secret = "the secret of the sender";

beforeAll(async () => {
  api = await createTestApp({ vault });
});
afterAll(() => api.close());

/** A sample as it is sent now: Linear signs the time in its body. */
function freshDelivery(sample: SourceSample): InboundDelivery {
  const { payload } = sample;
  const isTimed = "webhookTimestamp" in payload;
  return sampleDelivery({ ...sample, payload: { ...payload, ...(isTimed && { webhookTimestamp: Date.now() }) } });
}

async function send(path: string, { headers, body }: InboundDelivery) {
  const given = Object.fromEntries(Object.entries(headers).filter(([, value]) => value !== undefined)) as Record<
    string,
    string
  >;
  const answer = await api.app.inject({ method: "POST", url: path, headers: given, payload: body });
  const isJson = String(answer.headers["content-type"]).startsWith("application/json");
  return { status: answer.statusCode, body: isJson ? answer.json() : answer.body };
}

async function addAutomation(trigger: object): Promise<{ automationId: string; path: string }> {
  const macro = `m-${randomUUID().slice(0, 13)}`;
  const { status, body } = await api.post("/automation/create", {
    name: macro,
    macro,
    instructions: "Work on {{ event.name }}",
    triggers: [trigger],
  });
  expect([status, body.error]).toEqual([200, undefined]);
  return { automationId: body.id, path: `/hook/${body.triggers[1].id}` };
}
const entry = async (id: string) => (await api.get(`/ledger/${id}`)).body;

describe.each(sourceNames)("%s", (source) => {
  test("starts a run for each of its samples once, however often it is delivered, and none for what is not signed", async () => {
    const { automationId, path } = await addAutomation({ type: "source", source, secret });
    const fresh = sources[source].samples.map((sample) => freshDelivery(sample));
    const outcomes = new Map<string, number>();
    for (const delivery of fresh) {
      const unsigned = await send(path, delivery);
      expect([unsigned.status, unsigned.body.error]).toEqual([401, expect.stringContaining("signature") as string]);
      for (let again = 0; again < 3; again += 1) {
        const { status, body } = await send(path, signDelivery(source, delivery, secret, Date.now()));
        expect([status, body.error]).toEqual([202, undefined]);
        outcomes.set(body.outcome, (outcomes.get(body.outcome) ?? 0) + 1);
      }
    }
    const { runs } = (await api.get(`/automation/${automationId}/runs?limit=100`)).body;
    expect(runs.length).toBeGreaterThan(0);
    expect(outcomes.get("accepted")).toBeGreaterThan(0);
    expect(outcomes.get("duplicate")).toBeGreaterThanOrEqual(2);
    const [run] = runs;
    const whole = await entry(run.id);
    expect(whole.payload).toMatchObject({ name: expect.any(String) as string, payload: expect.any(Object) as object });
  });
});

test("a trigger of a source starts runs for the events that it lists alone", async () => {
  const [sample] = sources.linear.samples;
  if (sample === undefined) throw new Error("Linear has no sample");
  const delivery = signDelivery("linear", freshDelivery(sample), secret, Date.now());
  const names = sources.linear.reader.read(delivery).events.map(({ name }) => name);
  const listed = await addAutomation({ type: "source", source: "linear", secret, events: [names.at(-1)] });
  expect((await send(listed.path, delivery)).body.outcome).toBe("accepted");
  const unlisted = sourceEventNames.linear.find((name) => !names.includes(name));
  const other = await addAutomation({ type: "source", source: "linear", secret, events: [unlisted] });
  const { body } = await send(other.path, delivery);
  expect(body.outcome).toBe("filtered");
  expect((await entry(body.ledgerId)).reason).toContain("does not list");
});

test("a run whose own change of an issue is the next event comes to rest, however many come at once, and other issues go on", async () => {
  const { automationId, path } = await addAutomation({
    type: "source",
    source: "linear",
    secret,
    events: ["issue.statusChanged"],
  });
  const sample = sources.linear.samples.find(({ event }) => event === "issue.statusChanged");
  if (sample === undefined) throw new Error("Linear has no sample of a changed status");
  let moves = 0;
  /** The issue is moved again, by whom nobody would take for a bot. */
  const move = async (issueId: string) => {
    moves += 1;
    const { data, ...payload } = sample.payload as { readonly data: object };
    const updatedAt = new Date(Date.UTC(2026, 7, 20) + moves).toISOString();
    const delivery = freshDelivery({
      ...sample,
      headers: { ...sample.headers, "linear-delivery": randomUUID() },
      payload: { ...payload, data: { ...data, id: issueId, updatedAt } },
    });
    return (await send(path, signDelivery("linear", delivery, secret, Date.now()))).body;
  };
  const looping = randomUUID();
  const outcomes: string[] = [];
  let last = "";
  for (let round = 0; round < 6; round += 1)
    for (const { outcome, ledgerId } of await Promise.all(Array.from({ length: 10 }, () => move(looping)))) {
      outcomes.push(outcome);
      if (outcome === "filtered") last = ledgerId;
    }
  expect(outcomes.filter((outcome) => outcome === "accepted")).toHaveLength(mostRunsOfSubject);
  expect(outcomes.filter((outcome) => outcome === "filtered")).toHaveLength(60 - mostRunsOfSubject);
  expect(await entry(last)).toMatchObject({
    outcome: "filtered",
    automationId,
    reason: "its automation has started 50 runs about the same issue, incident or thread, as many as it may",
  });
  expect((await move(randomUUID())).outcome).toBe("accepted");
  // A person may have it run all the same.
  expect((await api.post(`/ledger/${last}/replay`, {})).status).toBe(200);
});

test("an event that a source does not have is refused with its name", async () => {
  const { status, body } = await api.post("/automation/create", {
    name: "x",
    macro: `m-${randomUUID().slice(0, 13)}`,
    instructions: "x",
    triggers: [{ type: "source", source: "sentry", events: ["issue.eaten"] }],
  });
  expect([status, body.error]).toEqual([400, expect.stringMatching(/triggers\.0\.events.*issue\.eaten/u) as string]);
});

test("Slack's question whether the address is right is answered with its challenge", async () => {
  const { path } = await addAutomation({ type: "source", source: "slack", secret });
  const body = Buffer.from(JSON.stringify({ type: "url_verification", challenge: "3eZbrw1a", token: "x" }));
  const delivery = { headers: { "content-type": "application/json" }, body };
  expect((await send(path, delivery)).status).toBe(401);
  expect(await send(path, signDelivery("slack", delivery, secret, Date.now()))).toMatchObject({
    status: 200,
    body: expect.stringContaining("3eZbrw1a") as string,
  });
});

test("a sender of CloudEvents gets the consent of the address, and may put its token into the address", async () => {
  const { path } = await addAutomation({ type: "source", source: "cloudEvents", secret });
  const asked = await api.app.inject({
    method: "OPTIONS",
    url: path,
    headers: { "webhook-request-origin": "events.example.com" },
  });
  expect([asked.statusCode, asked.headers["webhook-allowed-origin"]]).toEqual([204, "events.example.com"]);
  const [sample] = sources.cloudEvents.samples;
  if (sample === undefined) throw new Error("there is no sample");
  const delivery = freshDelivery(sample);
  expect((await send(`${path}?access_token=${encodeURIComponent(secret)}`, delivery)).status).toBe(202);
  expect((await send(`${path}?access_token=wrong`, delivery)).status).toBe(401);
});

test("what is not rightly signed is logged with its status, and without its body", async () => {
  const lines: string[] = [];
  const logger = createLogger("trace", (line) => {
    lines.push(line);
    return "";
  });
  const logging = await api.another({ logger });
  const connectionId = randomUUID();
  await createConnection(api.database, vault, api.organizationId, {
    id: connectionId,
    kind: "gitea",
    name: "Gitea",
    webUrl: "https://git.example.com",
    apiUrl: "https://git.example.com/api/v1",
    credential: { type: "configured" },
    check: { account: null, problems: [] },
    hookSecret: secret,
  });
  const verify = { type: "hmac", header: "X-Signature" };
  const { path: ofWebhook } = await addAutomation({ type: "webhook", verify, secret });
  const { path: ofSource } = await addAutomation({ type: "source", source: "sentry", secret });
  const word = randomUUID();
  const payload = JSON.stringify({ word });
  const ofForge = `/hook/forge/${connectionId}`;
  for (const path of [ofWebhook, ofSource, ofForge]) {
    lines.length = 0;
    const signatures = ["x-signature", "sentry-hook-signature", "x-gitea-signature"];
    const wrong = Object.fromEntries(signatures.map((name) => [name, "0".repeat(64)]));
    const headers = { "content-type": "application/json", "x-gitea-event": "push", ...wrong };
    const { statusCode } = await logging.inject({ method: "POST", url: path, headers, payload });
    expect(statusCode).toBe(401);
    // It is written once the answer is.
    await expect.poll(() => lines.filter((line) => line.includes('"status":401'))).toHaveLength(1);
    // Anyone who knows the address of a trigger may send to it.
    expect(lines.join("")).toContain(path === ofForge ? ofForge : "/hook/[redacted]");
    expect(lines.filter((line) => line.includes(word))).toEqual([]);
  }
  // The positive control: a logger that is given a body writes it, and the search finds it.
  logger.info({ body: JSON.parse(payload) as unknown }, "request");
  expect(lines.filter((line) => line.includes(word))).toHaveLength(1);
});

test("another title of a pull request on Bitbucket Cloud starts nothing, also if nothing listened to its opening", async () => {
  const connectionId = randomUUID();
  await createConnection(api.database, vault, api.organizationId, {
    id: connectionId,
    kind: "bitbucket",
    name: "Bitbucket",
    webUrl: "https://bitbucket.org",
    apiUrl: "https://api.bitbucket.org/2.0",
    credential: { type: "configured" },
    check: { account: null, problems: [] },
    hookSecret: secret,
  });
  const shared = { type: "forge", connectionId, repositories: ["bitbucket.org/*"] };
  const { automationId } = await addAutomation({ ...shared, events: ["pullRequest.updated"] });
  const tell = async (event: string, change: object) => {
    const sample = bitbucketSamples.find(({ title }) => title === event);
    const pullrequest = { ...(sample?.payload["pullrequest"] as object), reviewers: [], ...change };
    const headers = { "content-type": "application/json", "x-event-key": event };
    const payload = { ...sample?.payload, pullrequest };
    const delivery = delivered({ forge: "bitbucket", headers, payload }, secret, randomUUID());
    const { body } = await send(`/hook/forge/${connectionId}`, delivery);
    await decideAllEvents(api);
    return [body.outcome, (await api.get(`/automation/${automationId}/runs`)).body.runs.length];
  };
  expect(await tell("pullrequest:created", {})).toEqual(["filtered", 0]);
  expect(await tell("pullrequest:updated", { title: "Mend the login" })).toEqual(["duplicate", 0]);
  // The positive control: a new commit, which its next title is no news of either.
  const source = { branch: { name: "fix-login" }, commit: { hash: "0123456789ab" } };
  expect(await tell("pullrequest:updated", { source })).toEqual(["accepted", 1]);
  expect(await tell("pullrequest:updated", { source, title: "Mend it" })).toEqual(["duplicate", 1]);
  // A later trigger of openings still gets the opening, as of another pull request.
  const opened = await addAutomation({ ...shared, events: ["pullRequest.opened"] });
  expect((await tell("pullrequest:created", { id: 1_234 }))[0]).toBe("accepted");
  expect((await api.get(`/automation/${opened.automationId}/runs`)).body.runs).toHaveLength(1);
});

/** What a forge delivers of a push to a pull request's branch, or of a change of its text. */
const pushed = {
  gitea: (sha: string, at: string) =>
    ofSample(giteaSamples, "pull request: new commits", (payload) => {
      Object.assign(payload["pull_request"] as object, { updated_at: at, head: { ref: "fix-login", sha } });
    }),
  azure: (sha: string, at: string) =>
    ofSample(azureSamples, /updated the source branch of pull request 1/u, (payload) => {
      Object.assign(payload, { createdDate: at, id: randomUUID() });
      Object.assign(payload["resource"] as object, { lastMergeSourceCommit: { commitId: sha } });
    }),
  bitbucket: (sha: string, at: string) =>
    ofSample(bitbucketSamples, "pullrequest:updated", (payload) => {
      const source = { branch: { name: "fix-login" }, commit: { hash: sha } };
      Object.assign(payload["pullrequest"] as object, { updated_on: at, source });
    }),
} as const;

/** A sample that is changed, as it is delivered. */
function ofSample(
  samples: readonly Sample[],
  title: string | RegExp,
  change: (payload: Record<string, unknown>) => void,
): InboundDelivery {
  const found = samples.find((each) => (typeof title === "string" ? each.title === title : title.test(each.title)));
  if (found === undefined) throw new Error(`there is no sample ${title}`);
  const payload = structuredClone(found.payload) as Record<string, unknown>;
  change(payload);
  const headers = { "content-type": "application/json", ...found.headers };
  return delivered({ ...found, headers, payload }, undefined, randomUUID());
}

test.each([
  ["gitea", "https://gitea.example", giteaSamples, "pull request: opened"],
  ["azure", "https://dev.azure.com/fabrikam", azureSamples, "git.pullrequest.created"],
  ["bitbucket", "https://bitbucket.org/team", bitbucketSamples, "pullrequest:created"],
] as const)(
  "a branch that goes back to a commit is delivered by %s each time, once",
  async (kind, webUrl, samples, opened) => {
    const id = randomUUID();
    await createConnection(api.database, vault, api.organizationId, {
      id,
      kind,
      name: kind,
      webUrl,
      apiUrl: webUrl,
      credential: { type: "configured" },
      check: { account: null, problems: [] },
      hookSecret: hookSecretOfSamples,
    });
    await addAutomation({ type: "forge", connectionId: id, events: ["pullRequest.updated"] });
    const deliver = async (delivery: InboundDelivery) => {
      const { body } = await send(`/hook/forge/${id}`, delivery);
      return body.outcome as string;
    };
    const time = (minutes: number): string => `2026-11-21T10:${String(minutes).padStart(2, "0")}:00Z`;
    const [a, b] = ["a".repeat(12), "b".repeat(12)];
    await deliver(ofSample(samples, opened, () => undefined));
    const all = [a, b, a, b, a].map((sha, index) => pushed[kind](sha, time(10 * index)));
    const outcomes: string[] = [];
    for (const delivery of all) outcomes.push(await deliver(delivery));
    expect(outcomes).toEqual(["accepted", "accepted", "accepted", "accepted", "accepted"]);
    // Sent again, and by another webhook.
    for (const delivery of all) expect(await deliver(delivery)).toBe("duplicate");
    expect(await deliver(pushed[kind](b, time(30)))).toBe("duplicate");
    // Bitbucket delivers other changes by the same event, and some late.
    if (kind !== "bitbucket") return;
    expect(await deliver(pushed[kind](a, time(45)))).toBe("duplicate");
    expect(await deliver(pushed[kind](b, time(32)))).toBe("duplicate");
    expect(await deliver(pushed[kind](b, time(50)))).toBe("accepted");
  },
);

test("an approval on GitLab that is taken back and given again at one commit is delivered each time, once", async () => {
  const id = randomUUID();
  const webUrl = "https://gitlab.example";
  await createConnection(api.database, vault, api.organizationId, {
    id,
    kind: "gitlab",
    name: "GitLab",
    webUrl,
    apiUrl: webUrl,
    credential: { type: "configured" },
    check: { account: null, problems: [] },
    hookSecret: hookSecretOfSamples,
  });
  await addAutomation({ type: "forge", connectionId: id, events: ["pullRequest.reviewSubmitted"] });
  const deliver = async (title: string, at: string): Promise<string> => {
    const delivery = ofSample(gitlabSamples, `merge request: ${title}`, (payload) => {
      Object.assign(payload["object_attributes"] as object, { updated_at: `2026-11-21 10:${at} UTC` });
    });
    return (await send(`/hook/forge/${id}`, delivery)).body.outcome;
  };
  const all = [
    ["approved by one", "00:00"],
    ["approved by all", "00:01"],
    ["approval taken back", "10:00"],
    ["approved by one", "20:00"],
    ["approved by all", "20:01"],
  ] as const;
  const outcomes: string[] = [];
  for (const [title, at] of all) outcomes.push(await deliver(title, at));
  expect(outcomes).toEqual(["accepted", "duplicate", "filtered", "accepted", "duplicate"]);
  for (const [title, at] of all.slice(3)) expect(await deliver(title, at)).toBe("duplicate");
});

type Move = (before: string, after: string, at: string) => InboundDelivery;
const githubExample = (key: string): Sample => ({ ...example(key), names: [] });
const movedOnServer = (title: string, change: (payload: Record<string, unknown>) => void): InboundDelivery =>
  ofSample(bitbucketDataCenterSamples, title, change);

/** How forges tell that a branch, or that of a pull request, was moved from one commit to another. */
const moves: Readonly<Record<string, readonly [DeliveringForge, string, Move]>> = {
  "GitHub's push": [
    "github",
    "push",
    (before, after, at) =>
      ofSample([githubExample("push")], /push/u, (payload) => {
        Object.assign(payload, { ref: "refs/heads/main", before, after });
        Object.assign(payload["repository"] as object, { pushed_at: Date.parse(at) / 1_000 });
      }),
  ],
  "GitHub's pull request": [
    "github",
    "pullRequest.updated",
    (before, after, at) =>
      ofSample([githubExample("pull_request.synchronize")], /synchronize/u, (payload) => {
        Object.assign(payload, { before, after });
        Object.assign(payload["pull_request"] as object, { updated_at: at });
      }),
  ],
  "Gitea's push": [
    "gitea",
    "push",
    (before, after, at) =>
      ofSample(giteaSamples, "a push", (payload) => {
        Object.assign(payload, { before, after });
        Object.assign(payload["repository"] as object, { updated_at: at });
      }),
  ],
  "Azure's push": [
    "azure",
    "push",
    (oldObjectId, newObjectId, date) =>
      ofSample(azureSamples, "git.push", (payload) => {
        const refUpdates = [{ name: "refs/heads/main", oldObjectId, newObjectId }];
        Object.assign(payload, { id: randomUUID() });
        Object.assign(payload["resource"] as object, { refUpdates, date });
      }),
  ],
  "Bitbucket Data Center's push": [
    "bitbucketDataCenter",
    "push",
    (fromHash, toHash, date) =>
      movedOnServer("repo:refs_changed", (payload) => {
        const [change] = payload["changes"] as readonly object[];
        Object.assign(payload, { changes: [{ ...change, fromHash, toHash }], date: date.replace("Z", "+0000") });
      }),
  ],
  "Bitbucket Data Center's pull request": [
    "bitbucketDataCenter",
    "pullRequest.updated",
    (previousFromHash, latestCommit, date) =>
      movedOnServer("pr:from_ref_updated", (payload) => {
        Object.assign(payload, { previousFromHash, date: date.replace("Z", "+0000") });
        Object.assign((payload["pullRequest"] as { readonly fromRef: object }).fromRef, { latestCommit });
      }),
  ],
  "GitLab's merge request": [
    "gitlab",
    "pullRequest.updated",
    (oldrev, id, at) =>
      ofSample(gitlabSamples, "merge request: new commits", (payload) => {
        const updatedAt = at.replace("T", " ").replace("Z", " UTC");
        Object.assign(payload["object_attributes"] as object, { oldrev, last_commit: { id }, updated_at: updatedAt });
      }),
  ],
};

test.each(Object.entries(moves))("%s to and fro counts each time, once", async (_, [kind, event, move]) => {
  const id = randomUUID();
  await createConnection(api.database, vault, api.organizationId, {
    id,
    kind,
    name: kind,
    webUrl: `https://${id}.example`,
    apiUrl: `https://${id}.example`,
    credential: { type: "configured" },
    check: { account: null, problems: [] },
    hookSecret: hookSecretOfSamples,
  });
  await addAutomation({ type: "forge", connectionId: id, events: [event] });
  const deliver = async (delivery: InboundDelivery) =>
    (await send(`/hook/forge/${id}`, delivery)).body.outcome as string;
  const [a, b] = ["a".repeat(40), "b".repeat(40)];
  const time = (minutes: number): string => `2026-11-21T10:${minutes}:00Z`;
  const all = [10, 11, 12, 13, 14, 15].map((minutes) =>
    minutes % 2 === 0 ? move(a, b, time(minutes)) : move(b, a, time(minutes)),
  );
  for (const delivery of all) expect(await deliver(delivery)).toBe("accepted");
  // Sent again, and by another webhook.
  for (const delivery of all) expect(await deliver(delivery)).toBe("duplicate");
  for (const minutes of [10, 12, 14]) expect(await deliver(move(a, b, time(minutes)))).toBe("duplicate");
  expect(await deliver(move(a, b, time(16)))).toBe("accepted");
});

describe("a connection of GitHub", () => {
  let path: string;
  let connectionId: string;
  const hookSecret = "whk_0123456789abcdef0123456789abcdef";

  beforeAll(async () => {
    connectionId = randomUUID();
    await createConnection(api.database, vault, api.organizationId, {
      id: connectionId,
      kind: "github",
      name: "GitHub",
      webUrl: "https://github.com",
      apiUrl: "https://api.github.com",
      credential: { type: "configured" },
      check: { account: null, problems: [] },
      hookSecret,
    });
    path = `/hook/forge/${connectionId}`;
  });

  function signed(event: string, payload: unknown, deliveryId: string = randomUUID()): InboundDelivery {
    const body = Buffer.from(JSON.stringify(payload));
    return {
      headers: {
        "content-type": "application/json",
        "x-github-event": event,
        "x-github-delivery": deliveryId,
        "x-hub-signature-256": `sha256=${createHmac("sha256", hookSecret).update(body).digest("hex")}`,
      },
      body,
    };
  }
  const decideAll = () => decideAllEvents(api);

  test("is called by its own word if it has one, and a delivery that is taken again is, too", async () => {
    const { pool } = api.database;
    const { default: examples } = (await import("@octokit/webhooks-examples", {
      with: { type: "json" },
    })) as unknown as {
      default: WebhookDefinition[];
    };
    const commented = examples.find(({ name }) => name === "issue_comment")?.examples[0];
    if (commented === undefined) throw new Error("there is no example of a comment");
    const { comment } = commented as unknown as { readonly comment: object };
    let id = 1;
    const said = async (text: string) => {
      const payload = { ...commented, action: "created", comment: { ...comment, id: (id += 1), body: text } };
      const { status, body } = await send(path, signed("issue_comment", payload));
      expect([status, body.error]).toEqual([202, undefined]);
      return body;
    };
    await pool.query("update trigger set enabled = false where type = 'forge'");
    expect((await said("@robot look")).outcome).toBe("filtered");
    const isCalled = async (mention: string | null) =>
      expect((await api.post(`/connection/${connectionId}/update`, { mention })).status).toBe(200);
    await isCalled("robot");
    expect((await said("@offstage look")).outcome).toBe("filtered");
    const { outcome, ledgerId } = await said("@robot look again");
    expect(outcome).toBe("accepted");
    await pool.query("update arrival set outcome = 'filtered' where id = $1", [ledgerId]);
    expect((await api.post(`/ledger/${ledgerId}/replay`, {})).body.outcome).toBe("accepted");
    await isCalled(null);
    await decideAll();
    await pool.query("update trigger set enabled = true where type = 'forge'");
  });

  test("takes every published example of a delivery, and starts a run of each listener for each event, once", async () => {
    const { default: examples } = (await import("@octokit/webhooks-examples", {
      with: { type: "json" },
    })) as unknown as {
      default: WebhookDefinition[];
    };
    const listener = await addAutomation({
      type: "forge",
      connectionId,
      events: [...forgeEventNames],
      // Those of the examples are not connected.
      repositories: ["github.com/*"],
    });
    const none = await addAutomation({ type: "forge", connectionId, events: ["issue.opened"], condition: "false" });
    const outcomes = new Map<string, number>();
    for (const { name, examples: payloads } of examples) {
      for (const payload of payloads.slice(0, 6)) {
        const delivery = signed(name, payload);
        for (const again of [delivery, delivery, signed(name, payload)]) {
          const { status, body } = await send(path, again);
          expect([name, status, body.error]).toEqual([name, 202, undefined]);
          outcomes.set(body.outcome, (outcomes.get(body.outcome) ?? 0) + 1);
        }
      }
    }
    await decideAll();
    const { runs } = (await api.get(`/automation/${listener.automationId}/runs?limit=100`)).body;
    const fired = await api.database.pool.query(
      "select 1 from arrival where outcome = 'fired' and connection_id = $1",
      [connectionId],
    );
    expect(runs.length).toBe(fired.rowCount);
    expect(runs.length).toBeGreaterThan(5);
    expect((await api.get(`/automation/${none.automationId}/runs`)).body.runs).toEqual([]);
    const { rows } = await api.database.pool.query("select 1 from arrival where outcome is null");
    expect(rows).toEqual([]);
  });

  test("starts no trigger of two connections twice for one happening, but triggers of its own", async () => {
    const otherId = randomUUID();
    await createConnection(api.database, vault, api.organizationId, {
      id: otherId,
      kind: "github",
      name: "GitHub, by its App",
      webUrl: "https://github.com/acme",
      apiUrl: "https://api.github.com",
      credential: { type: "configured" },
      check: { account: null, problems: [] },
      hookSecret,
    });
    const shared = { type: "forge", events: ["release.published"], repositories: ["github.com/*"] };
    const ofBoth = await addAutomation(shared);
    const ofOther = await addAutomation({ ...shared, connectionId: otherId });
    const user = { id: 1, login: "ann", type: "User" };
    const release = (id: number) => ({
      action: "published",
      release: {
        id,
        tag_name: `v${id}`,
        name: "",
        body: "",
        html_url: `https://github.com/acme/two/v${id}`,
        author: user,
      },
      repository: { id: 9, full_name: "acme/two", html_url: "https://github.com/acme/two", default_branch: "main" },
      sender: user,
    });
    const deliver = async (connection: string, id: number) => {
      const { body } = await send(`/hook/forge/${connection}`, signed("release", release(id)));
      expect(body.outcome).toBe("accepted");
      await decideAll();
      return body.ledgerId;
    };
    const runsOf = async ({ automationId }: { readonly automationId: string }) =>
      (await api.get(`/automation/${automationId}/runs`)).body.runs.length;
    await deliver(connectionId, 1);
    const again = await deliver(otherId, 1);
    expect([await runsOf(ofBoth), await runsOf(ofOther)]).toEqual([1, 1]);
    expect((await entry(again)).decisions).toContainEqual(
      expect.objectContaining({
        automationId: ofBoth.automationId,
        outcome: "filtered",
        reason: expect.stringContaining("of which another connection told") as string,
      }),
    );
    // The positive controls: another release, and a happening that is decided again.
    await deliver(otherId, 2);
    expect([await runsOf(ofBoth), await runsOf(ofOther)]).toEqual([2, 2]);
    await api.post(`/ledger/${again}/replay`, {});
    await decideAll();
    expect([await runsOf(ofBoth), await runsOf(ofOther)]).toEqual([3, 3]);
  });

  test("takes what is signed however much is sent without a right signature, and has a rate of its own for it", async () => {
    const limited = await api.another({ rateLimitPerMinute: 2, deliveriesPerMinute: 5 });
    const deliver = async (to: string, { headers, body }: InboundDelivery) => {
      const { statusCode, headers: answered } = await limited.inject({
        method: "POST",
        url: to,
        headers: headers as Record<string, string>,
        payload: body,
      });
      return statusCode === 429 ? `429 ${answered["retry-after"]}` : String(statusCode);
    };
    const all = async (count: number, to: string, make: () => InboundDelivery) => {
      const statuses: string[] = [];
      for (let index = 0; index < count; index += 1) statuses.push(await deliver(to, make()));
      return statuses;
    };
    const right = () => signed("ping", { zen: randomUUID(), hook_id: 1 });
    const forged = () => ({ ...right(), body: Buffer.from("{}") });
    const later = expect.stringMatching(/^429 \d+$/u) as string;
    expect(await all(4, path, forged)).toEqual(["401", "401", later, later]);
    expect(await all(6, path, right)).toEqual(["202", "202", "202", "202", "202", later]);

    const verify = { type: "hmac", header: "X-Signature" };
    const { path: ofWebhook } = await addAutomation({ type: "webhook", verify, secret });
    const body = Buffer.from("{}");
    const signature = createHmac("sha256", secret).update(body).digest("hex");
    const unsigned = () => ({ headers: { "content-type": "application/json" }, body });
    expect(await all(3, ofWebhook, unsigned)).toEqual(["401", "401", later]);
    const signedToo = () => ({ headers: { ...unsigned().headers, "x-signature": signature }, body });
    expect(await all(6, ofWebhook, signedToo)).toEqual(["202", "202", "202", "202", "202", later]);
    // Anyone who knows an address that asks for no signature may send to it.
    const { path: open } = await addAutomation({ type: "webhook", verify: { type: "none" } });
    expect(await all(3, open, unsigned)).toEqual(["202", "202", later]);
  });

  test("refuses what is not signed, and takes the old secret after a rotation", async () => {
    const delivery = signed("push", {});
    const headers = { ...delivery.headers, "x-hub-signature-256": `sha256=${"0".repeat(64)}` };
    expect((await send(path, { ...delivery, headers })).status).toBe(401);
    expect((await send(`/hook/forge/${randomUUID()}`, delivery)).status).toBe(404);
    await api.post(`/connection/${connectionId}/rotate-secret`, {});
    expect((await send(path, signed("ping", { zen: "x", hook_id: 1 }))).status).toBe(202);
  });

  test("is remembered to take deliveries, never to refuse one, and not once it is deleted", async () => {
    const { pool } = api.database;
    const right = () => signed("ping", { zen: randomUUID(), hook_id: 1 });
    const wrong = () => ({ ...right(), body: Buffer.from("{}") });
    const statusOf = async (delivery: InboundDelivery) => (await send(path, delivery)).status;
    const isDeleted = (at: string) =>
      pool.query(`update forge_connection set deleted_at = ${at} where id = $1`, [connectionId]);
    for (let again = 0; again < 3; again += 1) expect(await statusOf(right())).toBe(202);
    // Deleted without a notification to the caches, as no operation does.
    await isDeleted("now()");
    expect(await statusOf(right())).toBe(202);
    expect(await statusOf(wrong())).toBe(404);
    expect(await statusOf(right())).toBe(404);
    await isDeleted("null");
    for (let again = 0; again < 2; again += 1) expect(await statusOf(right())).toBe(202);
    await api.post(`/connection/${connectionId}/delete`, {});
    expect(await statusOf(right())).toBe(404);
  });
});
