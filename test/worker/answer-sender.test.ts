import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import type { Database } from "../../src/database/database.ts";
import { createMask } from "../../src/domain/masking/mask.ts";
import { createForge, forgesOf } from "../../src/forges/forges.ts";
import type { ForgeSettings } from "../../src/forges/forge.ts";
import type { OwnForges } from "../../src/forges/connections/organization-forges.ts";
import { createMetrics } from "../../src/metrics/metrics.ts";
import { createLogger } from "../../src/observability.ts";
import { createReplies } from "../../src/replies/replies.ts";
import { answersChannel, isOwnComment, queueAnswer, type NewAnswer } from "../../src/store/answers/answers.ts";
import { claimAnswers, pruneAnswers, recordFailed } from "../../src/store/answers/sending.ts";
import { createRepository } from "../../src/store/repositories/repositories.ts";
import { createAnswerSender, type AnswerSenderOptions } from "../../src/worker/answers/answer-sender.ts";
import { createTestDatabase, type TestDatabase } from "../database.ts";
import { startForge, type TestForge } from "../forge/server.ts";
import { startSlack, type SlackService } from "../replies/slack-service.ts";
import { addOrganization, atOnce } from "../store/fixtures.ts";

let testDatabase: TestDatabase;
let database: Database;
let forge: TestForge;
let slack: SlackService;
let organizationId: string;
let repositoryId: string;
let name: string;
let count = 0;
const stops: (() => Promise<void>)[] = [];

beforeAll(async () => {
  testDatabase = await createTestDatabase();
  ({ database } = testDatabase);
  [forge, slack] = await Promise.all([startForge(), startSlack()]);
});
beforeEach(async () => {
  organizationId = await addOrganization(database);
  name = `answers-${(count += 1)}`;
  const { url } = await forge.createRepository("acme", name, { "a.txt": "a\n" });
  forge.describe("acme", name, { issues: [7, 8], threads: ["77"] });
  await database.pool.query("update answer set status = 'dead' where status = 'pending'");
  repositoryId = await connect(url);
  slack.thread.splice(1);
});
afterEach(async () => {
  await Promise.all(stops.splice(0).map((stop) => stop()));
  forge.lag(0);
});
afterAll(async () => {
  await Promise.all([forge.close(), slack.close()]);
  await testDatabase.close();
});

async function connect(url: string, organization = organizationId): Promise<string> {
  const key = url.replace(/^\w+:\/\//u, "");
  const repository = { url, key, name: key, branch: null, description: null };
  return (await createRepository(database, organization, repository)).id;
}

const secret = "server-secret-4711-abcdef";

/** A worker that sends answers, as the server wires it. */
async function start(changes: Partial<AnswerSenderOptions> = {}, more: readonly ForgeSettings[] = []) {
  const settings: ForgeSettings[] = [
    { kind: "github", webUrl: forge.url, apiUrl: forge.apiUrl, token: forge.token },
    ...more,
  ];
  const forges: OwnForges = {
    ...forgesOf(settings.map((each) => ({ settings: each, forge: createForge(each) }))),
    secrets: () => [secret],
  };
  const metrics = createMetrics();
  const sender = createAnswerSender({
    database,
    logger: createLogger("silent"),
    metrics,
    mask: createMask([]),
    forgesOf: () => Promise.resolve(forges),
    replies: createReplies({ slack: slack.apiUrl, linear: "http://127.0.0.1:9/" }),
    replyToken: () => Promise.resolve(slack.token),
    ...changes,
  });
  await sender.start();
  stops.push(() => sender.stop());
  return { sender, metrics };
}

const issue = { kind: "issue", number: 7 } as const;
async function queue(changes: Partial<NewAnswer> = {}) {
  const key = crypto.randomUUID();
  const action = { kind: "comment", subject: issue } as const;
  await queueAnswer(database.pool, {
    organizationId,
    sessionId: null,
    repositoryId,
    key,
    action,
    text: "Done.",
    ...changes,
  });
  database.notify(answersChannel, "");
  return changes.key ?? key;
}

interface Row {
  readonly status: string;
  readonly attempts: number;
  readonly external_id: string | null;
  readonly id_scope: string | null;
  readonly url: string | null;
  readonly problem: string | null;
  readonly waitMs: number;
}
async function read(key: string): Promise<Row> {
  const { rows } = await database.pool.query<Row>(
    `select *, (extract(epoch from next_attempt_at - now()) * 1000)::float8 as "waitMs" from answer where key = $1`,
    [key],
  );
  return rows[0] as Row;
}
const until = (key: string, status: string) => expect.poll(async () => (await read(key)).status).toBe(status);
/** Until an attempt failed, and another is to come. */
const untilDelayed = (key: string) => expect.poll(async () => (await read(key)).problem).not.toBeNull();
const makeDue = (key: string) => database.pool.query("update answer set next_attempt_at = now() where key = $1", [key]);
const said = () => forge.feedback("acme", name);
const inSlack = { kind: "service", triggerId: crypto.randomUUID() } as const;
const toSlack = (text = "Done.") => queue({ repositoryId: null, text, action: { ...inSlack, target: slack.target } });

async function openPullRequest(): Promise<void> {
  await forge.commit("acme", name, "work", { "b.txt": "b\n" });
  await fetch(`${forge.apiUrl}/repos/acme/${name}/pulls`, {
    method: "POST",
    headers: { Authorization: `Bearer ${forge.token}` },
    body: JSON.stringify({ head: "work", base: "main", title: "Work", body: "" }),
  });
}

test("a comment, a reply, a reaction and a status arrive, and comments are known as ours", async () => {
  const { metrics } = await start();
  const pull = { kind: "pullRequest", number: 1 } as const;
  await openPullRequest();
  const began = performance.now();
  const target = { subject: issue, commentId: null, isOnLines: false };
  const reaction = await queue({ action: { kind: "reaction", target, reaction: "eyes" }, text: "" });
  await until(reaction, "sent");
  expect(performance.now() - began).toBeLessThan(5_000);
  const comment = await queue();
  const reply = await queue({ action: { kind: "reply", thread: { subject: pull, id: "77" } }, text: "Fixed." });
  const sha = "a".repeat(40);
  const shown = { state: "success", name: "offstage", description: "Done", url: "https://offstage.example" } as const;
  const status = await queue({ action: { kind: "status", sha, ...shown }, text: "" });
  for (const key of [comment, reply, status]) await until(key, "sent");
  expect(
    said()
      .comments.map(({ body }) => body.split("\n")[0])
      .toSorted((a, b) => String(a).localeCompare(String(b))),
  ).toEqual(["Done.", "Fixed."]);
  expect(said().reactions.size).toBe(1);
  expect([await read(comment), await read(reply)]).toMatchObject([
    { id_scope: "conversation", url: expect.stringContaining("http") as string },
    { id_scope: "lines" },
  ]);
  const { external_id: commentId } = await read(comment);
  const seen = { organizationId, repositoryId, body: "edited by a person" };
  expect(await isOwnComment(database.pool, { ...seen, commentId: commentId ?? "" })).toBe(true);
  expect((await metrics.scrape()).text).toContain(
    'offstage_answer_attempt_duration_seconds_count{kind="comment",outcome="sent"} 1',
  );
});

test("where a forge has no reactions, a short comment in the thread is the sign, once, and one for several", async () => {
  await openPullRequest();
  const subject = { kind: "pullRequest", number: 1 } as const;
  const bitbucket = { kind: "bitbucket", webUrl: forge.url, apiUrl: `${forge.url}/2.0`, token: forge.token } as const;
  const forges: OwnForges = {
    ...forgesOf([{ settings: bitbucket, forge: createForge(bitbucket) }]),
    secrets: () => [secret],
  };
  await start({ forgesOf: () => Promise.resolve(forges) });
  const seen = (commentId: string | null, isMinor: boolean) =>
    queue({
      action: { kind: "reaction", target: { subject, commentId, isOnLines: false }, reaction: "eyes", isMinor },
      text: "",
    });
  const [one, other, minor] = [await seen("77", false), await seen(null, false), await seen("77", true)];
  for (const key of [one, other, minor]) await until(key, "sent");
  const shown = () => said().comments.map(({ body, thread }) => [thread, body.split("\n")[0]]);
  expect(new Set(shown())).toEqual(
    new Set([
      [null, "Seen."],
      ["77", "Seen."],
    ]),
  );
  expect(shown()).toHaveLength(2);
  // As if its worker had died before it could record that; and it is known as ours.
  await database.pool.query("update answer set status = 'pending', next_attempt_at = now() where key = $1", [one]);
  database.notify(answersChannel, "");
  await until(one, "sent");
  expect(shown()).toHaveLength(2);
  const { external_id: commentId } = await read(one);
  const asSeen = { organizationId, repositoryId, body: "Seen.", commentId: commentId ?? "" };
  expect(await isOwnComment(database.pool, asSeen)).toBe(true);
});

test("two workers never send one twice", async () => {
  await start();
  await start();
  const keys = await atOnce(12, (index) => queue({ text: `Answer ${index}.` }));
  const inThread = await atOnce(6, (index) => toSlack(`Answer ${index}.`));
  for (const key of [...keys, ...inThread]) await until(key, "sent");
  expect(said().comments).toHaveLength(12);
  expect(new Set(said().comments.map(({ body }) => body.split("\n")[0])).size).toBe(12);
  expect(slack.thread).toHaveLength(7);
});

test("what is said in one place keeps its order, and a state of a commit is never overwritten by an older one", async () => {
  const keys: string[] = [];
  for (let index = 0; index < 4; index += 1) keys.push(await queue({ text: `Answer ${index}.` }));
  // The first is delayed: those after it wait, another place does not.
  await database.pool.query("update answer set next_attempt_at = now() + interval '1 hour' where key = $1", [keys[0]]);
  const elsewhere = await queue({
    action: { kind: "comment", subject: { kind: "issue", number: 8 } },
    text: "Elsewhere.",
  });
  await start();
  await until(elsewhere, "sent");
  expect(said().comments).toHaveLength(1);
  await makeDue(keys[0] ?? "");
  for (const key of keys) await until(key, "sent");
  expect(
    said()
      .comments.slice(1)
      .map(({ body }) => body.split("\n")[0]),
  ).toEqual(keys.map((_, index) => `Answer ${index}.`));
});

test("an answer whose thread is gone is a comment that says so, once, unless not everybody may read it", async () => {
  await openPullRequest();
  const subject = { kind: "pullRequest", number: 1 } as const;
  const otherwise = "To a comment on `a.txt, line 3` that is not there any more:";
  const replies = (id: string, words?: string | null) =>
    queue({
      action: { kind: "reply", thread: { subject, id }, ...(words !== undefined && { otherwise: words }) },
      text: "Done in abc.",
    });
  const [there, gone, confidential, ofBefore] = [
    await replies("77", otherwise),
    await replies("404", otherwise),
    await replies("405", null),
    await replies("406"),
  ];
  await start();
  await until(there, "sent");
  await until(gone, "sent");
  await until(confidential, "refused");
  await until(ofBefore, "refused");
  const shown = () => said().comments.map(({ body, thread }) => [thread, body.split("\n<!--")[0]]);
  expect(shown()).toEqual(
    expect.arrayContaining([
      ["77", "Done in abc."],
      [null, `${otherwise}\n\nDone in abc.`],
    ]),
  );
  expect(shown()).toHaveLength(2);
  expect(await read(gone)).toMatchObject({ id_scope: "conversation" });
  // As if its worker had died before it could record that.
  await database.pool.query("update answer set status = 'pending', next_attempt_at = now() where key = $1", [gone]);
  database.notify(answersChannel, "");
  await until(gone, "sent");
  expect(shown()).toHaveLength(2);
});

test("a thread is resolved once its reply is there, and stays open if that was refused", async () => {
  await openPullRequest();
  const subject = { kind: "pullRequest", number: 1 } as const;
  const inThread = async (id: string) => {
    const thread = { subject, id };
    const reply = await queue({ action: { kind: "reply", thread }, text: "Done in abc." });
    const resolution = await queue({ action: { kind: "resolution", thread, after: reply }, text: "" });
    return { reply, resolution };
  };
  const good = await inThread("77");
  const bad = await inThread("404");
  await database.pool.query("update answer set next_attempt_at = now() + interval '1 hour' where key = $1", [
    good.reply,
  ]);
  await start();
  await until(bad.reply, "refused");
  await until(bad.resolution, "refused");
  expect((await read(bad.resolution)).problem).toContain("stays open, since it was not answered");
  expect(await read(good.resolution)).toMatchObject({ status: "pending", attempts: 0 });
  expect([...said().resolved]).toEqual([]);
  await makeDue(good.reply);
  await until(good.resolution, "sent");
  expect([said().comments.length, [...said().resolved]]).toEqual([1, ["77"]]);
  expect(await read(good.resolution)).toMatchObject({ external_id: null, url: null });
});

test("a pull request gets its labels and reviewers, and unknown ones are reported in the forge's words", async () => {
  await openPullRequest();
  forge.describe("acme", name, { people: { ada: "write" } });
  await start();
  const subject = { kind: "pullRequest", number: 1 } as const;
  const labels = await queue({ action: { kind: "settings", subject, field: "labels", names: ["bug"] }, text: "" });
  const names = ["nobody", "ada"];
  const reviewers = await queue({ action: { kind: "settings", subject, field: "reviewers", names }, text: "" });
  await until(labels, "sent");
  await until(reviewers, "refused");
  expect((await read(reviewers)).problem).toContain("did not take reviewers: nobody (Reviews may only be requested");
  expect(await forge.pullRequests("acme", name)).toMatchObject([{ labels: ["bug"], reviewers: ["ada"] }]);
});

test("a reaction goes out before what was queued in the minute before it, and after what has waited for longer", async () => {
  const late = await queue();
  await queue({ action: { kind: "comment", subject: { kind: "issue", number: 8 } } });
  const target = { subject: issue, commentId: "1", isOnLines: false };
  await queue({ action: { kind: "reaction", target, reaction: "eyes" }, text: "" });
  await database.pool.query("update answer set next_attempt_at = now() - interval '2 minutes' where key = $1", [late]);
  const kinds: string[] = [];
  const limits = {
    limit: 1,
    leaseMs: 60_000,
    underWay: [],
    mostOfHost: 8,
    mostOfOrganization: 8,
    mostOfLane: 8,
    resting: [],
  };
  for (let time = 0; time < 3; time += 1)
    kinds.push(...(await claimAnswers(database, limits)).map(({ action }) => JSON.stringify(action)));
  expect(kinds.map((kind) => /"kind":"(\w+)"/u.exec(kind)?.[1])).toEqual(["comment", "reaction", "comment"]);
  expect(kinds[0]).toContain("7");
});

test("answers to one host of an organization, as many as may be sent at once, hold up none to its others", async () => {
  await queue();
  await queue({ action: { kind: "comment", subject: { kind: "issue", number: 8 } } });
  const limits = { limit: 9, leaseMs: 60_000, mostOfHost: 8, mostOfOrganization: 8, mostOfLane: 1, resting: [] };
  const [slow] = await claimAnswers(database, { ...limits, underWay: [] });
  if (slow === undefined) throw new Error("nothing was claimed");
  expect(await claimAnswers(database, { ...limits, underWay: [slow] })).toEqual([]);
  await toSlack("It goes on.");
  expect(await claimAnswers(database, { ...limits, underWay: [slow] })).toMatchObject([{ text: "It goes on." }]);
  expect(await claimAnswers(database, { ...limits, mostOfLane: 2, underWay: [slow] })).toHaveLength(1);
});

test("a forge that can't resolve threads leaves them open, which is told", async () => {
  await openPullRequest();
  forge.describe("acme", name, { threads: ["77"], resolvesNothing: true });
  await start({
    forgesOf: () => {
      const settings = { kind: "gitea", webUrl: forge.url, apiUrl: `${forge.url}/api/v1`, token: forge.token } as const;
      return Promise.resolve({ ...forgesOf([{ settings, forge: createForge(settings) }]), secrets: () => [] });
    },
  });
  const thread = { subject: { kind: "pullRequest", number: 1 }, id: "77" } as const;
  const reply = await queue({ action: { kind: "reply", thread } });
  const resolution = await queue({ action: { kind: "resolution", thread, after: reply }, text: "" });
  await until(resolution, "refused");
  expect((await read(resolution)).problem).toContain("this forge has no call that resolves it");
});

describe("a worker that is killed", () => {
  /** What a worker claims that never ends its attempt. */
  const claimAndDie = () =>
    claimAnswers(database, {
      limit: 1,
      leaseMs: 60_000,
      underWay: [],
      mostOfHost: 8,
      mostOfOrganization: 4,
      mostOfLane: 4,
      resting: [],
    });
  test("between sending and recording has sent once", async () => {
    const key = await queue();
    const [claimed] = await claimAndDie();
    expect(claimed).toMatchObject({ attempts: 1 });
    const { sender } = await start({ database: withoutRecording() });
    await makeDue(key);
    await expect.poll(() => said().comments.length).toBe(1);
    await sender.stop();
    expect(await read(key)).toMatchObject({ status: "pending", external_id: null });
    // Before anything is recorded it is known by its mark.
    const [{ id, body } = { id: 0, body: "" }] = said().comments;
    expect(await isOwnComment(database.pool, { organizationId, repositoryId, commentId: String(id), body })).toBe(true);
    await makeDue(key);
    await start();
    await until(key, "sent");
    expect(said().comments).toHaveLength(1);
    expect(await read(key)).toMatchObject({ external_id: String(id) });
  });
  test("between sending and recording has written into the thread once", async () => {
    const key = await toSlack();
    const { sender } = await start({ database: withoutRecording() });
    await expect.poll(() => slack.thread.length).toBe(2);
    await sender.stop();
    await makeDue(key);
    await start();
    await until(key, "sent");
    expect(slack.thread).toHaveLength(2);
    expect(await read(key)).toMatchObject({ attempts: 2, external_id: slack.thread[1]?.ts });
  });
  test("leaves it to others only when its lease is over, and then can record nothing", async () => {
    const key = await queue();
    const [dead] = await claimAndDie();
    expect(await claimAndDie()).toEqual([]);
    await makeDue(key);
    await start();
    await until(key, "sent");
    if (dead === undefined) throw new Error("nothing was claimed");
    expect(await recordFailed(database, dead, "late", "refused")).toBe(false);
    expect(await read(key)).toMatchObject({ status: "sent", problem: null });
  });

  /** A database in which nothing can be recorded of an attempt that was made: as if the process were killed just then. */
  function withoutRecording(): Database {
    const pool = new Proxy(database.pool, {
      get: (target, property) =>
        property === "query"
          ? (query: unknown, values?: unknown[]) =>
              typeof query === "string" && query.startsWith("update answer")
                ? Promise.reject(new Error("killed"))
                : target.query(query as string, values as string[])
          : (Reflect.get(target, property) as unknown),
    });
    return { ...database, pool };
  }
});

describe("what fails", () => {
  test("for good is refused with the reason, and not tried again", async () => {
    await start();
    const missing = await queue({ action: { kind: "comment", subject: { kind: "issue", number: 99 } } });
    const channel = await queue({
      repositoryId: null,
      action: { ...inSlack, target: { ...slack.target, channel: "C-deleted" } },
    });
    for (const key of [missing, channel]) await until(key, "refused");
    expect(await read(missing)).toMatchObject({ attempts: 1, problem: expect.stringContaining("no such") as string });
    expect(await read(channel)).toMatchObject({ problem: expect.stringContaining("channel_not_found") as string });
  });
  test("for a token that was revoked or taken away is refused", async () => {
    await start({ replyToken: () => Promise.resolve("xoxb-revoked") });
    const revoked = await toSlack();
    await until(revoked, "refused");
    expect((await read(revoked)).problem).toContain("invalid_auth");
    await Promise.all(stops.splice(0).map((stop) => stop()));
    await start({ replyToken: () => Promise.resolve(null) });
    const removed = await toSlack();
    await until(removed, "refused");
    expect((await read(removed)).problem).toContain("has no token of slack any more");
  });
  test("for a repository that was disconnected, or is plain git, is refused", async () => {
    const plain = await connect("https://plain.example/acme/app");
    await database.pool.query("update repository set deleted_at = now() where id = $1", [repositoryId]);
    await start();
    const [gone, git] = [await queue(), await queue({ repositoryId: plain })];
    for (const key of [gone, git]) await until(key, "refused");
    expect((await read(gone)).problem).toContain("no longer connected");
    expect((await read(git)).problem).toContain("plain git");
  });
  test("for now waits as long as the service asks, with all that it would get", async () => {
    slack.faults.push({ kind: "answer", status: 429, headers: { "retry-after": "40" }, body: "" });
    const { metrics } = await start();
    const limited = await toSlack("first");
    await untilDelayed(limited);
    expect(await read(limited)).toMatchObject({ status: "pending", attempts: 1 });
    expect((await read(limited)).waitMs).toBeGreaterThan(30_000);
    const calls = slack.calls.length;
    const other = await queue({
      repositoryId: null,
      action: { ...inSlack, target: { ...slack.target, threadId: "another" } },
    });
    const comment = await queue();
    await until(comment, "sent");
    expect(await read(other)).toMatchObject({ status: "pending", attempts: 0 });
    expect(slack.calls).toHaveLength(calls);
    expect((await metrics.scrape()).text).toContain(
      'offstage_answer_attempt_duration_seconds_count{kind="service",outcome="delayed"} 1',
    );
    await Promise.all(stops.splice(0).map((stop) => stop()));
    await makeDue(limited);
    await start();
    await until(limited, "sent");
    expect(slack.thread).toHaveLength(2);
  });
  test("each time is given up after the last attempt", async () => {
    slack.faults.push({ kind: "answer", status: 503, body: "" });
    const key = await toSlack();
    await database.pool.query("update answer set attempts = 17 where key = $1", [key]);
    // An attempt before may have arrived: it is looked for, which fails.
    await start();
    await until(key, "dead");
    expect((await read(key)).problem).toContain("it answered 503");
  });
});

test("a forge that never answers holds up no other, nor the other organizations on it", async () => {
  let taken = 0;
  const hanging: Server = createServer(() => void (taken += 1));
  await new Promise<void>((resolve) => hanging.listen(0, "127.0.0.1", resolve));
  const url = `http://127.0.0.1:${(hanging.address() as AddressInfo).port}`;
  try {
    const dead = await connect(`${url}/acme/app`);
    await atOnce(40, (number) =>
      queue({ repositoryId: dead, action: { kind: "comment", subject: { kind: "issue", number } } }),
    );
    const { sender } = await start({}, [{ kind: "gitea", webUrl: url, apiUrl: `${url}/api/v1` }]);
    await expect.poll(() => taken).toBe(16);
    const other = await addOrganization(database);
    const theirs = await connect(`${forge.url}/acme/${name}`, other);
    const key = crypto.randomUUID();
    const action = { kind: "comment", subject: issue } as const;
    await queueAnswer(database.pool, {
      organizationId: other,
      sessionId: null,
      repositoryId: theirs,
      key,
      action,
      text: "Theirs.",
    });
    database.notify(answersChannel, "");
    await until(key, "sent");
    expect(taken).toBe(16);
    const began = performance.now();
    await sender.stop();
    expect(performance.now() - began).toBeLessThan(10_000);
    // What was under way is put back, to be looked for first.
    const { rows } = await database.pool.query<{ count: number }>(
      "select count(*)::integer as count from answer where problem = 'its worker stopped' and status = 'pending'",
    );
    expect(rows).toEqual([{ count: 16 }]);
  } finally {
    hanging.closeAllConnections();
    await new Promise((resolve) => hanging.close(resolve));
  }
});

test("an attempt that takes too long is looked for before it is made again", async () => {
  slack.faults.push({ kind: "hang" });
  await start({ timeLimitMs: 300 });
  const key = await toSlack();
  await untilDelayed(key);
  expect(await read(key)).toMatchObject({ status: "pending", problem: "it took too long" });
  expect((await read(key)).waitMs).toBeGreaterThan(10_000);
});

test("a secret of the server or of the organization's forges is in no answer", async () => {
  await start();
  const key = await queue({ text: `The token is ${secret}.` });
  await until(key, "sent");
  expect(said().comments[0]?.body).toContain("The token is [secret].");
});

test("nothing is sent of an organization that is being erased", async () => {
  const key = await queue();
  await database.pool.query("insert into erasure (organization_id) values ($1)", [organizationId]);
  const other = await addOrganization(database);
  const theirs = crypto.randomUUID();
  await queueAnswer(database.pool, {
    organizationId: other,
    sessionId: null,
    repositoryId: null,
    key: theirs,
    action: { ...inSlack, target: slack.target },
    text: "Theirs.",
  });
  await start();
  await until(theirs, "sent");
  expect(await read(key)).toMatchObject({ status: "pending", attempts: 0 });
});

test("ended answers are kept for the time that is set, and for thirty days at least", async () => {
  const [old, young, waiting] = [await queue(), await queue(), await queue()];
  const age = (key: string, status: string, days: number) =>
    database.pool.query("update answer set status = $2, updated_at = now() - $3 * interval '1 day' where key = $1", [
      key,
      status,
      days,
    ]);
  await age(old, "sent", 31);
  await age(young, "sent", 29);
  await age(waiting, "pending", 90);
  await pruneAnswers(database, 1, new AbortController().signal);
  expect([await read(old), (await read(young)).status, (await read(waiting)).status]).toEqual([
    undefined,
    "sent",
    "pending",
  ]);
});
