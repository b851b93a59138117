import { describe, expect, test } from "vitest";
import type { ForgeEvent } from "../../src/domain/automations/forge-event.ts";
import { readerOf } from "../../src/inbound/forges/readers.ts";
import { delivered } from "./deliveries.ts";
import { example } from "./samples/github.ts";

type Json = Record<string, unknown>;

/** What an example tells, with changes to parts of it. */
function tell(key: string, changes: Readonly<Record<string, object | string | boolean | number>> = {}) {
  const { payload, ...sample } = example(key);
  const changed = Object.entries(changes).map(([name, change]) => [
    name,
    typeof change === "object" && !Array.isArray(change) ? { ...(payload[name] as Json), ...change } : change,
  ]);
  const { events } = readerOf("github").read(
    delivered({ ...sample, payload: { ...payload, ...Object.fromEntries(changed) } }),
  );
  return events.map(({ name, contentKey, subject, event }) => ({
    name,
    contentKey,
    subject,
    event: event as ForgeEvent,
  }));
}
const keyOf = (...given: Parameters<typeof tell>): string => {
  const [event] = tell(...given);
  if (event?.contentKey == null) throw new Error(`${given[0]} tells nothing that can be recognised`);
  return event.contentKey;
};

test("an issue is delivered with its fields", () => {
  const [happening] = tell("issues.labeled", { issue: { body: null } });
  expect(happening).toMatchObject({
    name: "issue.labeled",
    subject: "https://github.com/Codertocat/Hello-World/issues/1",
    event: {
      forge: "github",
      repository: {
        url: "https://github.com/Codertocat/Hello-World",
        fullName: "Codertocat/Hello-World",
        defaultBranch: "master",
      },
      actor: { id: "21031067", login: "Codertocat", isBot: false },
      issue: { number: 1, title: "Spelling error in the README file", body: "", state: "open", labels: ["bug"] },
      label: "bug",
    },
  });
});

test("a comment on a pull request's conversation is one on the pull request, without its branch", () => {
  const url = "https://github.com/Codertocat/Hello-World/pull/2";
  const [happening] = tell("issue_comment.created", {
    issue: {
      number: 2,
      html_url: url,
      state: "closed",
      pull_request: { html_url: url, merged_at: "2026-01-01T00:00:00Z" },
    },
  });
  expect(happening).toMatchObject({
    name: "pullRequest.commented",
    subject: url,
    event: { pullRequest: { number: 2, url, state: "merged", head: null, target: null }, comment: { path: null } },
  });
  expect(tell("pull_request.opened")[0]?.subject).toBe(url);
});

test("a comment on a line has file, line, hunk and thread, and an answer has the thread of the first one", () => {
  const [happening] = tell("pull_request_review_comment.created", { comment: { line: 1 } });
  const { comment } = happening?.event ?? {};
  expect(comment).toMatchObject({ path: "README.md", line: 1, threadId: comment?.id });
  expect(comment?.hunk).toMatch(/^@@ -1 \+1 @@/u);
  const [answer] = tell("pull_request_review_comment.created", { comment: { id: 5, in_reply_to_id: 284_312_630 } });
  expect(answer?.event.comment).toMatchObject({ id: "5", threadId: "284312630" });
});

test("a comment on several lines has the first and the last of them, of the commit that has them", () => {
  const on = (comment: object) => tell("pull_request_review_comment.created", { comment })[0]?.event.comment;
  const first = { start_line: 3, line: 9, original_start_line: 13, original_line: 19 };
  expect(on(first)).toMatchObject({ firstLine: 3, line: 9 });
  expect(on({ ...first, start_line: null, line: null })).toMatchObject({ firstLine: 13, line: 19 });
  expect(on({ ...first, start_line: null })).not.toHaveProperty("firstLine");
});

test("the end of a long hunk is kept, and long texts are cut between characters", () => {
  const hunk = `@@ -1 +1 @@\n${"+x\n".repeat(10_000)}+here`;
  const [happening] = tell("pull_request_review_comment.created", {
    comment: { diff_hunk: hunk, body: `${"x".repeat(65_535)}😀` },
  });
  expect(happening?.event.comment?.hunk).toHaveLength(10_000);
  expect(happening?.event.comment?.hunk?.endsWith("+here")).toBe(true);
  expect(happening?.event.comment?.body).toBe("x".repeat(65_535));
});

describe("a review", () => {
  test("that only holds comments on lines is no event: these are", () => {
    expect(tell("pull_request_review.submitted", { review: { state: "commented", body: null } })).toEqual([]);
  });
  test.each([
    ["approved", null, "approved"],
    ["changes_requested", null, "changesRequested"],
    ["APPROVED", "fine", "approved"],
    ["commented", "What of null?", "commented"],
  ])("%s with %j is an event", (state, body, read) => {
    const [event] = tell("pull_request_review.submitted", { review: { state, body } });
    expect(event).toMatchObject({
      name: "pullRequest.reviewSubmitted",
      event: { review: { state: read, body: body ?? "" } },
    });
  });
});

test("who was asked for a review may be a team", () => {
  const [happening] = tell("pull_request.review_requested", {
    requested_reviewer: "",
    requested_team: { id: 9, slug: "platform" },
  });
  expect(happening?.event.assignee).toEqual({ id: "team 9", login: "platform", isBot: false });
});

test("a closed pull request was merged or not", () => {
  const merged = { merged: true, merge_commit_sha: "ab12" };
  expect(tell("pull_request.closed", { pull_request: merged })[0]).toMatchObject({
    name: "pullRequest.merged",
    event: { pullRequest: { state: "merged", mergeSha: "ab12" } },
  });
  // Of what is not merged, it is a merge that GitHub made to try it.
  const [tried] = tell("pull_request.closed", { pull_request: { ...merged, merged: false } });
  expect(tried?.event.pullRequest).not.toHaveProperty("mergeSha");
  expect(tell("pull_request.closed")[0]).toMatchObject({
    name: "pullRequest.closed",
    event: { pullRequest: { state: "closed" } },
  });
});

test.each([
  ["pull_request.opened", "opened"],
  ["pull_request.reopened", "reopened"],
  ["pull_request.ready_for_review", "readyForReview"],
  ["issues.opened", "opened"],
  ["issues.reopened", "reopened"],
])("%s says how it came to be open", (key, transition) => {
  expect(tell(key)[0]?.event.transition).toBe(transition);
});

test("apps and bots are known as such, and a deleted user is no one", () => {
  const bot = { id: 49_699_333, login: "dependabot[bot]", type: "Bot" };
  expect(tell("issues.opened", { sender: bot })[0]?.event.actor).toEqual({
    id: "49699333",
    login: "dependabot[bot]",
    isBot: true,
  });
  expect(tell("issues.opened", { issue: { user: null } })[0]?.event.issue?.author).toBeNull();
});

describe("a push", () => {
  test("to a branch says what became of it", () => {
    const zeros = "0".repeat(40);
    const made = { ref: "refs/heads/a/b", before: zeros, after: "a".repeat(40), created: true, deleted: false };
    expect(tell("push", made)[0]).toMatchObject({
      subject: "https://github.com/Codertocat/Hello-World#refs/heads/a/b",
      event: { push: { branch: "a/b", before: null, after: "a".repeat(40), created: true, deleted: false } },
    });
    const gone = { ref: "refs/heads/a/b", before: "a".repeat(40), after: zeros, created: false, deleted: true };
    expect(tell("push", gone)[0]?.event.push).toMatchObject({ after: null, deleted: true });
  });
  test("of a tag tells nothing", () => {
    expect(tell("push", { ref: "refs/tags/heads/x" })).toEqual([]);
  });
  test("of many commits has the newest", () => {
    const commits = Array.from({ length: 2_000 }, (_, index) => ({
      id: `${index}`,
      message: "x",
      author: { name: "A" },
    }));
    const [happening] = tell("push", { ref: "refs/heads/main", commits });
    expect(happening?.event.push?.commits).toHaveLength(100);
    expect(happening?.event.push?.commits.at(-1)?.sha).toBe("1999");
  });
});

describe("one failing run is one event", () => {
  const failed = { conclusion: "failure", run_attempt: 1, name: "CI" };
  test("a run of GitHub Actions by its workflow, not by its check suite", () => {
    const [happening, ...more] = tell("workflow_run.completed", { workflow_run: failed });
    expect(happening).toMatchObject({ name: "checks.failed", event: { checks: { kind: "workflow", name: "CI" } } });
    expect(more).toEqual([]);
    expect(
      tell("check_suite.completed", { check_suite: { conclusion: "failure", app: { slug: "github-actions" } } }),
    ).toEqual([]);
    expect(tell("check_run.completed")).toEqual([]);
    expect(tell("workflow_job.completed")).toEqual([]);
  });
  test("a fork's branch is not taken for ours", () => {
    const [happening] = tell("workflow_run.completed", {
      workflow_run: { ...failed, head_branch: "main", head_repository: { id: 1 } },
    });
    expect(happening?.event.checks?.branch).toBeNull();
    const here = { id: example("workflow_run.completed").payload["repository"]?.["id" as never] };
    const [own] = tell("workflow_run.completed", {
      workflow_run: { ...failed, head_branch: "main", head_repository: here },
    });
    expect(own?.event.checks?.branch).toBe("main");
  });
  test("nor is that of a fork that is gone", () => {
    const changes = { workflow_run: { ...failed, head_branch: "main", head_repository: null } };
    expect(tell("workflow_run.completed", changes)[0]?.event.checks?.branch).toBeNull();
  });
  test("another attempt is another one", () => {
    const first = keyOf("workflow_run.completed", { workflow_run: failed });
    expect(keyOf("workflow_run.completed", { workflow_run: { ...failed, updated_at: "2026-01-01T00:00:00Z" } })).toBe(
      first,
    );
    expect(keyOf("workflow_run.completed", { workflow_run: { ...failed, run_attempt: 2 } })).not.toBe(first);
  });
  test("an app's checks by their suite, about the pull request if there is one", () => {
    const [happening] = tell("check_suite.completed", { check_suite: { conclusion: "timed_out" } });
    expect(happening).toMatchObject({
      name: "checks.failed",
      subject: "https://github.com/Codertocat/Hello-World/pull/2",
      event: { checks: { kind: "check suite", branch: "changes", pullRequests: [2] } },
    });
  });
  test("pull requests of a fork's branch elsewhere are not taken for ours", () => {
    const elsewhere = [{ number: 9, base: { repo: { id: 1 } } }];
    const [happening] = tell("check_suite.completed", { check_suite: { pull_requests: elsewhere } });
    expect(happening).toMatchObject({
      subject: "https://github.com/Codertocat/Hello-World#refs/heads/changes",
      event: { checks: { pullRequests: [] } },
    });
  });
  test.each(["cancelled", "skipped", "neutral", "stale", "action_required", "constructor", null])(
    "%s is neither failed nor passed",
    (conclusion) => {
      expect(tell("check_suite.completed", { check_suite: { conclusion } })).toEqual([]);
      expect(tell("workflow_run.completed", { workflow_run: { conclusion } })).toEqual([]);
    },
  );
  test("a status that others set", () => {
    expect(tell("status", { state: "error" })[0]).toMatchObject({
      name: "checks.failed",
      event: { checks: { kind: "status" } },
    });
    expect(tell("status", { state: "pending" })).toEqual([]);
    expect(keyOf("status", { state: "error", id: 2 })).not.toBe(keyOf("status", { state: "error", id: 1 }));
  });

  test("a status counts for the branch that ends with its commit, and of several for the default branch", () => {
    const sha = "a".repeat(40);
    const branch = (name: string, at = "b".repeat(40)) => ({ name, commit: { sha: at } });
    const of = (...branches: object[]) => tell("status", { sha, branches })[0]?.event.checks?.branch;
    // GitHub's example: all three have the commit, and none ends with it.
    expect(tell("status")[0]?.event.checks?.branch).toBe("master");
    expect(of(branch("one"), branch("work", sha), branch("master"))).toBe("work");
    expect(of(branch("begun", sha), branch("master", sha))).toBe("master");
    expect(of(branch("one", sha), branch("other", sha))).toBeNull();
    expect(of(branch("one"))).toBe("one");
    expect(of()).toBeNull();
  });
});

describe("what is another happening has other content", () => {
  test.each<[string, Parameters<typeof tell>[1], Parameters<typeof tell>[1]]>([
    ["issue_comment.created", { comment: { id: 1, body: "again" } }, { comment: { id: 2, body: "again" } }],
    [
      "issues.labeled",
      { issue: { updated_at: "2026-01-01T00:00:00Z" } },
      { issue: { updated_at: "2026-01-01T00:01:00Z" } },
    ],
    ["issues.labeled", { label: { id: 1, name: "a" } }, { label: { id: 2, name: "b" } }],
    ["issues.opened", { issue: { id: 1 } }, { issue: { id: 2 } }],
    ["issues.opened", {}, { repository: { html_url: "https://github.example/Codertocat/Hello-World" } }],
    ["pull_request.synchronize", { before: "a", after: "b" }, { before: "b", after: "c" }],
    ["pull_request.closed", {}, { pull_request: { closed_at: "2026-01-01T00:00:00Z" } }],
    ["push", { ref: "refs/heads/a" }, { ref: "refs/heads/b" }],
    ["release.published", {}, { release: { id: 1 } }],
  ])("%s (%#)", (key, one, other) => {
    expect(keyOf(key, one)).not.toBe(keyOf(key, other));
  });
  test("a comment on a line and one of the conversation may have the same number", () => {
    const url = "https://github.com/Codertocat/Hello-World/pull/2";
    const conversation = keyOf("issue_comment.created", {
      comment: { id: 1 },
      issue: { pull_request: { html_url: url } },
    });
    expect(keyOf("pull_request_review_comment.created", { comment: { id: 1 } })).not.toBe(conversation);
  });
});

test("one happening that a repository's webhook, an organization's and an App's tell has the same content", () => {
  const plain = keyOf("issues.opened");
  expect(keyOf("issues.opened", { organization: { login: "Codertocat" }, installation: { id: 1 } })).toBe(plain);
});
