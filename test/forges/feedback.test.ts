import { randomUUID } from "node:crypto";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { parseRepositoryUrl, type RepositoryAddress } from "../../src/domain/repositories/repository.ts";
import type { Subject } from "../../src/domain/answers/answer.ts";
import type { Feedback, NewComment } from "../../src/forges/feedback/feedback.ts";
import type { Forge } from "../../src/forges/forge.ts";
import { createAzure } from "../../src/forges/azure/azure.ts";
import { createBitbucketDataCenter } from "../../src/forges/bitbucket-data-center/bitbucket-data-center.ts";
import { createBitbucket } from "../../src/forges/bitbucket/bitbucket.ts";
import { createGitea } from "../../src/forges/gitea/gitea.ts";
import { createGitHub } from "../../src/forges/github/github.ts";
import { createGitLab } from "../../src/forges/gitlab/gitlab.ts";
import { createPlainGit } from "../../src/forges/plain-git.ts";
import { guidOf } from "../forge/azure-places.ts";
import { asAzure } from "../forge/azure-url.ts";
import { mergedForChecks, tipOf } from "../forge/commits.ts";
import { idOf } from "../forge/feedback.ts";
import { startForge, type TestForge } from "../forge/server.ts";
import type { RepositoryFacts } from "../forge/state.ts";
import { hangTimeoutMs } from "../hang-timeout.ts";

let server: TestForge;
let count = 0;

beforeAll(async () => {
  server = await startForge();
});

afterEach(() => server.lag(0));

afterAll(() => server?.close());

const azure = (token = server.token): Forge =>
  createAzure({ kind: "azure", webUrl: server.url, apiUrl: server.url, token });
const github = (token = server.token): Forge =>
  createGitHub({ kind: "github", webUrl: server.url, apiUrl: server.apiUrl, token });
const gitlab = (token = server.token): Forge =>
  createGitLab({ kind: "gitlab", webUrl: server.url, apiUrl: `${server.url}/api/v4`, token });
const gitea = (token = server.token): Forge =>
  createGitea({ kind: "gitea", webUrl: server.url, apiUrl: `${server.url}/api/v1`, token });
const bitbucket = (token = server.token): Forge =>
  createBitbucket({ kind: "bitbucket", webUrl: server.url, apiUrl: `${server.url}/2.0`, token });
const dataCenter = (token = server.token): Forge =>
  createBitbucketDataCenter({
    kind: "bitbucketDataCenter",
    webUrl: server.url,
    apiUrl: `${server.url}/rest/api/latest`,
    token,
  });
const adapters: readonly [string, (token?: string) => Forge][] = [
  ["Azure DevOps", azure],
  ["GitHub", github],
  ["GitLab", gitlab],
  ["Gitea", gitea],
  ["Bitbucket", bitbucket],
  ["Data Center", dataCenter],
];

const pull: Subject = { kind: "pullRequest", number: 1 };
const issue: Subject = { kind: "issue", number: 40 };
const comment = (text: string): NewComment => ({ key: randomUUID(), text, since: new Date() });

/** A repository of its own with one pull request, issue 40 and a thread. */
async function setting(create: (token?: string) => Forge, facts: RepositoryFacts = {}) {
  const name = `feedback-${(count += 1)}`;
  const { url } = await server.createRepository("acme", name, { "a.txt": "a\n" });
  await server.commit("acme", name, "work", { "b.txt": "b\n" });
  server.describe("acme", name, { issues: [40], threads: ["77"], ...facts });
  const signal = AbortSignal.timeout(hangTimeoutMs);
  const forge = create();
  const address = parseRepositoryUrl(forge.kind === "azure" ? asAzure(url) : url) as RepositoryAddress;
  await forge.openPullRequest(address, { head: "work", target: "main", title: "Work", body: "" }, signal);
  const said = () => server.feedback("acme", name);
  return { address, signal, feedback: forge.feedback as Feedback, said, bare: server.pathOf("acme", name) };
}

describe.each(adapters)("on %s", (kind, create) => {
  it("the parents of the merge that a pull request's checks are of are read, if they are of such", async () => {
    const { address, signal, feedback, bare } = await setting(create);
    const [main = "", work = ""] = ["main", "work"].map((branch) => tipOf(bare, branch) ?? "");
    const merged = mergedForChecks(bare, work, main);
    const isChecked = kind === "Azure DevOps" || kind === "GitLab";
    expect(await feedback.parentsOf?.(address, merged, signal)).toEqual(isChecked ? [main, work] : undefined);
    expect(await feedback.parentsOf?.(address, "f".repeat(40), signal)).toEqual(isChecked ? [] : undefined);
  });

  // Data Center has no issues.
  it.each(kind === "Data Center" ? [pull] : [pull, issue])(
    "a comment on $kind is posted once, however often it is asked for",
    async (subject) => {
      const { address, signal, feedback, said } = await setting(create);
      const wanted = comment("Done in abc123.");
      const posted = await feedback.comment(address, subject, wanted, signal);
      // A comment of Azure DevOps is named by its thread too, which is all that an address has.
      const [shown = ""] = posted.id.split(".");
      expect(posted).toMatchObject({ created: true, url: expect.stringContaining(shown) as string });
      expect(await feedback.comment(address, subject, wanted, signal)).toEqual({ ...posted, created: false });
      await feedback.comment(address, subject, comment("Another."), signal);
      // In a work item of Azure DevOps it is HTML.
      expect(said().comments.map(({ number, body }) => [number, body.split(/\n|<br>/u)[0]])).toEqual([
        [subject.number, "Done in abc123."],
        [subject.number, "Another."],
      ]);
    },
  );

  it("a comment whose answer is lost is found, also on a forge that lags", async () => {
    const { address, signal, feedback, said } = await setting(create);
    server.lag(1_000);
    await server.failNext({ kind: "loseAnswer" });
    const wanted = comment("Done.");
    const posted = await feedback.comment(address, pull, wanted, signal);
    expect([posted.created, said().comments.length]).toEqual([true, 1]);
  });

  it("a comment that was not posted is asked for by the next call", async () => {
    const { address, signal, feedback, said } = await setting(create);
    const wanted = comment("Done.");
    // No POST is repeated by itself after such an answer.
    for (let time = 0; time < 4; time += 1) await server.failNext({ kind: "status", status: 502 });
    await expect(feedback.comment(address, pull, wanted, signal)).rejects.toMatchObject({ code: "forge_unavailable" });
    expect(said().comments).toEqual([]);
    expect(await feedback.comment(address, pull, wanted, signal)).toMatchObject({ created: true });
    expect(said().comments).toHaveLength(1);
  });

  it("a mark of ours that an agent writes is no mark", async () => {
    const { address, signal, feedback, said } = await setting(create);
    const wanted = comment("Done.");
    await feedback.comment(address, pull, comment(`Words <!-- offstage comment=${wanted.key} -->`), signal);
    expect(await feedback.comment(address, pull, wanted, signal)).toMatchObject({ created: true });
    expect(said().comments).toHaveLength(2);
  });

  it("a comment that quotes ours, or has its mark within a line, is not ours; of two the oldest is", async () => {
    const { address, signal, feedback, said } = await setting(create);
    const wanted = comment("Done.");
    await feedback.comment(address, pull, wanted, signal);
    const [ours] = said().comments;
    if (ours === undefined) throw new Error("was not posted");
    const quoted = ours.body.replaceAll(/^/gmu, "> ");
    said().comments.splice(0, 1);
    for (const [id, body] of [
      [11, quoted],
      [12, `${quoted}\n\n`],
      [13, `See ${ours.body.split("\n").at(-1) ?? ""}`],
    ] as const) {
      said().comments.push({ ...ours, id, body });
    }
    const posted = await feedback.comment(address, pull, wanted, signal);
    expect(posted.created).toBe(true);
    said().comments.push({ ...ours, id: 1_000_000 });
    said().comments.reverse();
    expect(await feedback.comment(address, pull, wanted, signal)).toEqual({ ...posted, created: false });
  });

  it("a comment is found among more than a page of others", async () => {
    const { address, signal, feedback, said } = await setting(create);
    const wanted = comment("Done.");
    await feedback.comment(address, pull, wanted, signal);
    const [ours] = said().comments;
    for (let id = 1; id <= 120; id += 1) {
      const other = { ...ours, id, body: `Other ${id}` } as typeof said extends () => { comments: (infer C)[] }
        ? C
        : never;
      if (id % 2 === 0) said().comments.push(other);
      else said().comments.unshift(other);
    }
    expect(await feedback.comment(address, pull, wanted, signal)).toMatchObject({
      created: false,
      id: kind === "Azure DevOps" ? `${ours?.id}.1` : String(ours?.id),
    });
    expect(said().comments).toHaveLength(121);
  });

  it("a thread of a review is answered once", async () => {
    const { address, signal, feedback, said } = await setting(create);
    const wanted = comment("Changed in abc123.");
    const thread = { subject: pull, id: "77" };
    const posted = await feedback.reply(address, thread, wanted, signal);
    expect(posted).toMatchObject({ created: true });
    expect(await feedback.reply(address, thread, wanted, signal)).toEqual({ ...posted, created: false });
    // Gitea has no call for it.
    expect(said().comments).toMatchObject([{ number: 1, thread: kind === "Gitea" ? null : "77" }]);
  });

  // On Gitea it is a comment on the pull request in any case.
  it.skipIf(kind === "Gitea")(
    "an answer to a thread that is gone is refused for good, so that it can be said elsewhere",
    async () => {
      const { address, signal, feedback, said } = await setting(create);
      const reply = feedback.reply(address, { subject: pull, id: "404" }, comment("Done in abc."), signal);
      await expect(reply).rejects.toMatchObject({ retryable: false });
      await expect(reply).rejects.not.toMatchObject({ code: "repository_access_denied" });
      expect(said().comments).toEqual([]);
    },
  );

  it("a thread of a review is resolved, and stays so", async () => {
    const { address, signal, feedback, said } = await setting(create);
    const thread = { subject: pull, id: "77" };
    expect(await feedback.resolve(address, thread, signal)).toBe(true);
    expect(await feedback.resolve(address, thread, signal)).toBe(true);
    expect([...said().resolved]).toEqual(["77"]);
    const gone = feedback.resolve(address, { subject: pull, id: "78" }, signal);
    await expect(gone).rejects.toMatchObject({ retryable: false });
    const denied = (create("wrong").feedback as Feedback).resolve(address, thread, signal);
    await expect(denied).rejects.toMatchObject({ code: "repository_access_denied" });
  });

  it("a comment on what is not there is refused in the forge's words", async () => {
    const { address, signal, feedback } = await setting(create);
    const refused = feedback.comment(address, { kind: "issue", number: 9 }, comment("x"), signal);
    await expect(refused).rejects.toMatchObject({ code: "repository_not_found" });
    const denied = create("wrong").feedback as Feedback;
    await expect(denied.comment(address, pull, comment("x"), signal)).rejects.toMatchObject({
      code: "repository_access_denied",
    });
  });

  it("what a comment is on is read where deliveries don't say it: the lines, and the change to them", async () => {
    const { address, signal, feedback, said } = await setting(create);
    const lines = { path: "b.txt", line: 1, hunk: "" };
    const now = new Date().toISOString();
    said().comments.push({ id: 77, number: 1, body: "Hm.", thread: "77", createdAt: now, shownFrom: 0, lines });
    const on = { number: 1, threadId: "77", path: "b.txt", line: 1 };
    const place = (hunk: string) => ({ path: "b.txt", line: 1, hunk });
    const known = {
      "Azure DevOps": place("@@ -1,1 +1,1 @@\n b"),
      Bitbucket: place("@@ -0,0 +1 @@\n+b"),
      "Data Center": place("@@ -0,0 +1,1 @@\n+b"),
    };
    expect(await feedback.readPlace?.(address, on, signal)).toEqual(known[kind as keyof typeof known]);
    // Azure DevOps says it by the thread alone, the others by the delivery's path.
    const bare = { number: 1, threadId: "404", path: null, line: null };
    expect((await feedback.readPlace?.(address, bare, signal)) ?? null).toBeNull();
    const elsewhere = { ...on, threadId: "404", path: "a.txt" };
    expect((await feedback.readPlace?.(address, elsewhere, signal))?.hunk ?? null).toBeNull();
  });

  const inThread = { subject: pull, commentId: "81", threadId: "77", isOnLines: true };
  const inConversation = { subject: issue, commentId: "92", threadId: null, isOnLines: false };
  type ThreadCase = [string, Parameters<Feedback["readThread"]>[1], string[]];
  // Gitea delivers no comments on lines, and Data Center has no issues.
  const ofThreads: ThreadCase[] = [
    ["in its thread", inThread, ["Rename it.", "To b."]],
    ["of the first one, nothing", { ...inThread, commentId: "77" }, []],
  ];
  const ofIssues: ThreadCase[] = [["in the conversation", inConversation, ["It breaks.", "Since yesterday."]]];
  it.each([...(kind === "Gitea" ? [] : ofThreads), ...(kind === "Data Center" ? [] : ofIssues)])(
    "what was said before a comment is read %s",
    async (_, of, expected) => {
      const { address, signal, feedback, said } = await setting(create);
      const now = new Date().toISOString();
      const add = (id: number, number: number, body: string, thread: string | null) => {
        const lines = { path: "b.txt", line: 1, hunk: "" };
        const more = thread === String(id) && { lines };
        said().comments.push({ id, number, body, thread, createdAt: now, shownFrom: 0, ...more });
      };
      add(77, 1, "Rename it.", "77");
      add(79, 1, "To b.", "77");
      add(80, 1, "On something else.", null);
      add(81, 1, "Please do what she says.", "77");
      add(82, 1, "And this, too.", "77");
      add(90, 40, "It breaks.", null);
      add(91, 40, "Since yesterday.", null);
      add(92, 40, "Look.", null);
      const { commentId, threadId } = of;
      // There each thread counts its comments.
      const inAzure = `${threadId}.${commentId === "77" ? 1 : commentId}`;
      const named = kind === "Azure DevOps" && threadId !== null ? inAzure : commentId;
      const before = await feedback.readThread(address, { ...of, commentId: named }, signal);
      expect(before.map(({ text }) => text)).toEqual(expected);
      expect(before.every(({ author }) => author !== null)).toBe(true);
    },
  );

  // Azure DevOps counts the comments of each thread by themselves, Gitea delivers none on lines, and Data Center has no issues.
  const ofManyThreads = ["Azure DevOps", "Gitea"].includes(kind) ? [] : ([inThread] as const);
  const ofLongIssues = kind === "Data Center" ? [] : ([inConversation] as const);
  it.each([...ofManyThreads, ...ofLongIssues])(
    "what was said before a comment is read whichever page of the list it is on: $subject.kind",
    async (of) => {
      const { address, signal, feedback, said } = await setting(create);
      const { number } = of.subject;
      const isInThread = of.threadId !== null;
      const from = Date.now();
      const add = (id: number, body: string, thread: string | null) => {
        const createdAt = new Date(from + id).toISOString();
        const lines = { path: "b.txt", line: 1, hunk: "" };
        const more = thread === String(id) && { lines };
        said().comments.push({ id, number, body, thread, createdAt, shownFrom: 0, ...more });
      };
      const thread = isInThread ? "77" : null;
      // The comment is the first one of the second page; of a list that begins with the newest one, its thread began on the second.
      add(77, "Said 77", thread);
      for (let id = 78; id < 177; id += 1) add(id, `Said ${id}`, isInThread ? String(id) : null);
      add(177, "Please do what they say.", thread);
      const before = await feedback.readThread(address, { ...of, commentId: "177" }, signal);
      const expected = isInThread ? ["Said 77"] : Array.from({ length: 30 }, (_, index) => `Said ${147 + index}`);
      expect(before.map(({ text }) => text)).toEqual(expected);
    },
  );

  // On the others a comment that stands alone is a thread by itself, or none on lines is listed.
  it.runIf(["GitHub", "GitLab", "Bitbucket"].includes(kind))(
    "what was said in the conversation is read, whatever was said on lines since",
    async () => {
      const { address, signal, feedback, said } = await setting(create);
      const from = Date.now();
      const add = (id: number, body: string, lines: boolean) => {
        const createdAt = new Date(from + id).toISOString();
        const more = lines && { lines: { path: "b.txt", line: 1, hunk: "" } };
        const thread = lines ? String(id) : null;
        said().comments.push({ id, number: 1, body, thread, createdAt, shownFrom: 0, ...more });
      };
      add(77, "It breaks.", false);
      for (let id = 78; id < 188; id += 1) add(id, "On lines.", true);
      add(188, "Please mend it.", false);
      const asking = { subject: pull, commentId: "188", threadId: null, isOnLines: false };
      const before = await feedback.readThread(address, asking, signal);
      expect(before.map(({ text }) => text)).toEqual(["It breaks."]);
    },
  );

  it("a reaction that is there stays", async () => {
    const { address, signal, feedback, said } = await setting(create);
    const targets = [
      { subject: pull, commentId: null, isOnLines: false },
      { subject: pull, commentId: kind === "Azure DevOps" ? "77.1" : "77", isOnLines: true },
      { subject: issue, commentId: "78", isOnLines: false },
    ];
    const done: boolean[] = [];
    for (const target of [...targets, ...targets]) done.push(await feedback.react(address, target, "eyes", signal));
    const [toPull, toLines, toIssue] = {
      "Azure DevOps": [false, true, true],
      Bitbucket: [false, false, false],
      "Data Center": [false, true, false],
    }[kind] ?? [true, true, true];
    expect(done).toEqual([toPull, toLines, toIssue, toPull, toLines, toIssue]);
    await feedback.react(address, { subject: issue, commentId: null, isOnLines: false }, "+1", signal);
    expect([...said().reactions]).toEqual(
      {
        // It has none to a pull request or a work item.
        "Azure DevOps": ["threads/77/comments/1 like", "workItems/40/comments/78 like"],
        GitHub: ["issues/1 eyes", "pulls/comments/77 eyes", "issues/comments/78 eyes", "issues/40 +1"],
        GitLab: [
          "merge_requests/1 eyes",
          "merge_requests/1/notes/77 eyes",
          "issues/40/notes/78 eyes",
          "issues/40 thumbsup",
        ],
        Gitea: ["issues/1 eyes", "issues/comments/77 eyes", "issues/comments/78 eyes", "issues/40 +1"],
        // It has none.
        Bitbucket: [],
        // To comments on pull requests alone.
        "Data Center": ["pull-requests/1/comments/77 eyes"],
      }[kind],
    );
  });

  it.runIf(kind === "GitHub")("a review's own words get the reaction, by GraphQL", async () => {
    const { address, signal, feedback, said } = await setting(create, { reviews: ["8", "9"] });
    const to = (reviewId: string) => ({ subject: pull, commentId: null, isOnLines: false, reviewId });
    for (let time = 0; time < 2; time += 1) expect(await feedback.react(address, to("9"), "eyes", signal)).toBe(true);
    expect([...said().reactions]).toEqual(["pulls/1/reviews/9 eyes"]);
    await expect(feedback.react(address, to("10"), "eyes", signal)).rejects.toMatchObject({ retryable: false });
  });

  it("the last status of a name counts", async () => {
    const { address, signal, feedback, said } = await setting(create);
    const sha = "a".repeat(40);
    const status = { name: "offstage", description: "Working", url: "https://offstage.example/session/1" };
    await feedback.setStatus(address, sha, { ...status, state: "pending" }, signal);
    await feedback.setStatus(address, sha, { ...status, state: "pending" }, signal);
    const described = "x".repeat(1_000);
    await feedback.setStatus(address, sha, { ...status, state: "failure", description: described }, signal);
    const shown = [...said().statuses.values()];
    expect(shown).toMatchObject([
      {
        sha,
        name: "offstage",
        state:
          { "Azure DevOps": "failed", GitLab: "failed", Bitbucket: "FAILED", "Data Center": "FAILED" }[kind] ??
          "failure",
      },
    ]);
    const most = { "Azure DevOps": 255, GitHub: 140, GitLab: 255, Gitea: 1_000, Bitbucket: 255, "Data Center": 255 }[
      kind
    ];
    expect(shown[0]).toMatchObject({ description: described.slice(0, most), url: status.url });
  });

  it.skipIf(kind === "Data Center")(
    "the end of a job's log is read from the beginning of a line, and a log that is gone is none",
    async () => {
      const line = "\u001b[31mError:\u001b[0m it does not hold ✗\r\n";
      const logs = { "5": `${"x".repeat(500_000)}\n${line.repeat(3)}`, "6": "short\n" };
      const { address, signal, feedback } = await setting(create, { logs });
      const logEnd = "Error: it does not hold ✗\n";
      const [bytes, longest] = [Buffer.byteLength(line), 100_000];
      expect(await feedback.readLogEnd(address, "5", 2 * bytes + 3, signal)).toBe(logEnd.repeat(2));
      expect(await feedback.readLogEnd(address, "5", bytes + 3, signal)).toBe(logEnd);
      expect(await feedback.readLogEnd(address, "6", longest, signal)).toBe("short\n");
      expect(await feedback.readLogEnd(address, "7", longest, signal)).toBeNull();
      const denied = (create("wrong").feedback as Feedback).readLogEnd(address, "6", longest, signal);
      await expect(denied).rejects.toMatchObject({ code: "repository_access_denied" });
    },
  );

  it("only people with write access may write, by the forge's id of them", async () => {
    const people = { ada: "admin", bo: "write", cy: "read", di: "none" } as const;
    const { address, signal, feedback } = await setting(create, { people });
    const idIn = (login: string) => (kind === "Azure DevOps" ? guidOf(`person ${login}`) : String(idOf(login)));
    const mayWrite = (login: string, id = idIn(login)) => feedback.mayWrite(address, { id, login }, signal);
    expect(await Promise.all(Object.keys(people).map((login) => mayWrite(login)))).toEqual([true, true, false, false]);
    expect(await mayWrite("nobody")).toBe(false);
    // Another account has the name by now.
    expect(await mayWrite("ada", idIn("stranger"))).toBe(false);
  });
});

it("Data Center says by the thread what an answer is on, and an answer to an answer, whose delivery names that one alone", async () => {
  const { address, signal, feedback, said } = await setting(dataCenter);
  const shared = { number: 1, createdAt: new Date().toISOString(), shownFrom: 0 };
  const lines = { path: "b.txt", line: 1, hunk: "" };
  said().comments.push(
    { ...shared, id: 77, body: "Hm.", thread: "77", lines },
    { ...shared, id: 79, body: "Yes.", thread: "77" },
    { ...shared, id: 80, body: "All.", thread: null },
  );
  const placeOf = (threadId: string) =>
    feedback.readPlace?.(address, { number: 1, threadId, path: null, line: null }, signal);
  const place = { path: "b.txt", line: 1, hunk: "@@ -0,0 +1,1 @@\n+b" };
  expect(await placeOf("77")).toEqual(place);
  expect(await placeOf("79")).toEqual(place);
  expect(await placeOf("80")).toBeNull();
});

it("Azure DevOps tells by the unique name alone who may write, as deliveries of work items name people", async () => {
  const people = { ada: "write", "ada.b": "write", bo: "read" } as const;
  const { address, signal, feedback } = await setting(azure, { people });
  const mayWrite = (login: string) => feedback.mayWrite(address, { id: "", login }, signal);
  expect(await mayWrite("ada@example.com")).toBe(true);
  expect(await mayWrite("ADA.B@example.com")).toBe(true);
  expect(await mayWrite("bo@example.com")).toBe(false);
  // An account that a search finds by a part of a name, or by the displayed name, does not count.
  expect(await mayWrite("ada")).toBe(false);
  expect(await mayWrite("ada@example.co")).toBe(false);
});

it.each([
  ["Azure DevOps", azure],
  ["GitLab", gitlab],
  ["Gitea", gitea],
  ["Bitbucket", bitbucket],
] as const)("%s may not tell the token what people may do", async (kind, create) => {
  const { address, signal, feedback } = await setting(create, { people: { ada: "admin" }, tellsRights: false });
  const id = kind === "Azure DevOps" ? guidOf("person ada") : String(idOf("ada"));
  expect(await feedback.mayWrite(address, { id, login: "ada" }, signal)).toBeNull();
});

it.each([
  ["Gitea", gitea],
  ["Data Center", dataCenter],
] as const)("%s may be too old to resolve a thread", async (_, create) => {
  const { address, signal, feedback, said } = await setting(create, { resolvesNothing: true });
  expect(await feedback.resolve(address, { subject: pull, id: "77" }, signal)).toBe(false);
  expect([...said().resolved]).toEqual([]);
});

it("GitHub's thread is found on a further page, and what GraphQL refuses with 200 is refused", async () => {
  const threads = Array.from({ length: 130 }, (_, index) => String(1_000 + index));
  const { address, signal, feedback, said } = await setting(github, { threads });
  await feedback.resolve(address, { subject: pull, id: "1120" }, signal);
  expect([...said().resolved]).toEqual(["1120"]);
  const elsewhere = feedback.resolve(address, { subject: { kind: "pullRequest", number: 9 }, id: "1120" }, signal);
  await expect(elsewhere).rejects.toThrow("Could not resolve to a PullRequest with the number of 9.");
  const denied = await setting(github, { resolvesNothing: true });
  const refused = denied.feedback.resolve(denied.address, { subject: pull, id: "77" }, signal);
  await expect(refused).rejects.toMatchObject({
    code: "repository_access_denied",
    message: expect.stringContaining("Resource not accessible by personal access token") as string,
  });
});

it("a limit that GitHub's GraphQL returns with 200 is waited for, or reported as passing", async () => {
  const { address, signal, feedback, said } = await setting(github);
  await server.failNext({ kind: "primaryLimit", resetInSeconds: 1 });
  expect(await feedback.resolve(address, { subject: pull, id: "77" }, signal)).toBe(true);
  expect([...said().resolved]).toEqual(["77"]);
  await server.failNext({ kind: "primaryLimit", resetInSeconds: 3_000 });
  const limited = feedback.resolve(address, { subject: pull, id: "77" }, signal);
  await expect(limited).rejects.toMatchObject({
    code: "forge_unavailable",
    retryable: true,
    message: expect.stringContaining("API rate limit exceeded") as string,
  });
});

it("a project of GitLab that does not exist makes no one a stranger", async () => {
  const { address, signal, feedback } = await setting(gitlab);
  const gone = { ...address, path: "acme/not-there" };
  await expect(feedback.mayWrite(gone, { id: "1", login: "ada" }, signal)).rejects.toMatchObject({
    code: "repository_not_found",
  });
});

it("what an agent answers makes GitLab do nothing", async () => {
  const { address, signal, feedback, said } = await setting(gitlab);
  const before = server.quickActions().length;
  await feedback.comment(address, pull, comment("Done.\n/merge"), signal);
  await feedback.reply(address, { subject: pull, id: "77" }, comment("/approve"), signal);
  expect(server.quickActions().slice(before)).toEqual([]);
  expect(said().comments.map(({ body }) => body.split("\n").slice(0, -1))).toEqual([
    ["Done.", "\\/merge"],
    ["\\/approve"],
  ]);
  await fetch(`${server.url}/api/v4/projects/${encodeURIComponent(address.path)}/merge_requests/1/notes`, {
    method: "POST",
    headers: { Authorization: `Bearer ${server.token}` },
    body: JSON.stringify({ body: "Done.\n/merge" }),
  });
  expect(server.quickActions().slice(before)).toEqual(["/merge"]);
});

it("the failed steps of a pipeline of Bitbucket are returned, each with its log", async () => {
  const { address, signal, feedback } = await setting(bitbucket, { logs: { "31": "it does not hold\n" } });
  const failedOf = (kind: string, id: string) => feedback.failedJobs?.(address, { kind, id, sha: "a" }, signal);
  const failed = await failedOf("status", "31");
  expect(failed).toEqual([{ id: expect.stringMatching(/^31\/\{[0-9a-f-]{36}\}$/u) as string, name: "step 2" }]);
  expect(await feedback.readLogEnd(address, failed?.[0]?.id ?? "", 100, signal)).toBe("it does not hold\n");
  // No pipeline of that number, and the key of another program's build.
  expect([await failedOf("status", "32"), await failedOf("status", "jenkins-7")]).toEqual([[], []]);
});

it("of a pipeline of GitLab no job is returned that may fail", async () => {
  const facts = { jobs: { "30": ["31", "32"] }, allowedJobs: ["31"] };
  const { address, signal, feedback } = await setting(gitlab, facts);
  const failed = await feedback.failedJobs?.(address, { kind: "pipeline", id: "30", sha: "a" }, signal);
  expect(failed).toEqual([expect.objectContaining({ id: "32" })]);
});

it.each([
  ["GitHub", github],
  ["Gitea", gitea],
] as const)("of a run of many jobs the one that failed is found, on %s", async (_, create) => {
  const facts = { logs: { "31": "it broke\n" }, jobs: { "30": ["31"] }, passedJobs: 230 };
  const { address, signal, feedback } = await setting(create, facts);
  const failed = await feedback.failedJobs?.(address, { kind: "workflow", id: "30", sha: "a" }, signal);
  expect(failed).toEqual([expect.objectContaining({ id: "31" })]);
});

it("of a run that Gitea delivers as a job's status its own jobs are read, and no other run's", async () => {
  const [sha, other] = ["a".repeat(40), "b".repeat(40)];
  const { address, signal, feedback } = await setting(gitea, {
    logs: { "31": "it broke\n" },
    jobs: { "30": ["31"], "7": ["8"] },
    runs: { "30": { sha, number: 7 }, "7": { sha: other, number: 30 } },
  });
  const failedOf = (id: string, of = sha) => feedback.failedJobs?.(address, { kind: "workflow", id, sha: of }, signal);
  expect(await failedOf("30")).toEqual([expect.objectContaining({ id: "31" })]);
  const path = new URL(address.cloneUrl).pathname.replace(/\.git$/u, "");
  // The number of an address is that of another run for the API.
  expect(await failedOf(`${path}/actions/runs/7`)).toEqual([expect.objectContaining({ id: "31" })]);
  expect(await failedOf(`${path}/actions/runs/7`, other)).toEqual([]);
  expect(await failedOf(`${path}/actions/runs/30`)).toEqual([]);
  expect(await failedOf(`${path}/actions/runs/3`)).toEqual([]);
});

it("a run of Gitea's is found on whichever page of its commit's runs it is", async () => {
  const sha = "a".repeat(40);
  const { address, signal, feedback } = await setting(gitea, {
    logs: { "35": "it broke\n" },
    jobs: { "34": ["35"] },
    runs: Object.fromEntries([30, 31, 32, 33, 34].map((id) => [String(id), { sha, number: id - 29 }])),
  });
  const path = new URL(address.cloneUrl).pathname.replace(/\.git$/u, "");
  server.limitPages(2);
  try {
    const asked = { kind: "workflow", id: `${path}/actions/runs/5`, sha } as const;
    expect(await feedback.failedJobs?.(address, asked, signal)).toEqual([expect.objectContaining({ id: "35" })]);
  } finally {
    server.limitPages(50);
  }
});

it("Bitbucket Data Center has no jobs with logs, and no issues", async () => {
  const { address, signal, feedback } = await setting(dataCenter, { logs: { "5": "a log\n" } });
  expect(await feedback.readLogEnd(address, "5", 100, signal)).toBeNull();
  await expect(feedback.comment(address, issue, comment("x"), signal)).rejects.toMatchObject({
    code: "repository_not_found",
    message: expect.stringContaining("no issues") as string,
  });
});

it("plain git has nowhere to answer", () => {
  expect(createPlainGit(null).feedback).toBeNull();
});
