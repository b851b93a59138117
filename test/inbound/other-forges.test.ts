import { describe, expect, test } from "vitest";
import type { ForgeEvent } from "../../src/domain/automations/forge-event.ts";
import { inRepositoryOf } from "../../src/inbound/forges/azure-work-items.ts";
import { readerOf } from "../../src/inbound/forges/readers.ts";
import { delivered, type Sample } from "./deliveries.ts";
import { azureSamples } from "./samples/azure.ts";
import { bitbucketDataCenterSamples, bitbucketSamples } from "./samples/bitbucket.ts";
import { giteaSamples } from "./samples/gitea.ts";
import { gitlabSamples } from "./samples/gitlab.ts";

type Json = Record<string, unknown>;

/** Puts changes into a value, into nested objects too. */
function merged(value: unknown, changes: Json): unknown {
  const entries = Object.entries(changes).map(([name, change]) => {
    const isNested = typeof change === "object" && change !== null && !Array.isArray(change);
    return [name, isNested ? merged((value as Json)[name] ?? {}, change as Json) : change];
  });
  return { ...(value as Json), ...Object.fromEntries(entries) };
}

function tellerOf(samples: readonly Sample[]) {
  return (title: string, changes: Json = {}) => {
    const sample = samples.find((each) => each.title === title);
    if (sample === undefined) throw new Error(`No sample ${title}`);
    const payload = merged(sample.payload, changes) as Json;
    const { events, deliveryId } = readerOf(sample.forge).read(delivered({ ...sample, payload }));
    return events.map(({ event, ...happening }) => ({ ...happening, deliveryId, event: event as ForgeEvent }));
  };
}
const keys = (happening: readonly { contentKey: string | null }[]): (string | null)[] =>
  happening.map(({ contentKey }) => contentKey);

test.each([
  [
    "GitLab",
    gitlabSamples,
    "merge request: merged",
    (sha: string) => ({ object_attributes: { merge_commit_sha: sha } }),
  ],
  ["Gitea", giteaSamples, "pull request: merged", (sha: string) => ({ pull_request: { merge_commit_sha: sha } })],
  [
    "Bitbucket Cloud",
    bitbucketSamples,
    "pullrequest:fulfilled",
    (sha: string) => ({ pullrequest: { merge_commit: { hash: sha } } }),
  ],
  [
    "Bitbucket Data Center",
    bitbucketDataCenterSamples,
    "pr:merged",
    (sha: string) => ({ pullRequest: { properties: { mergeCommit: { id: sha } } } }),
  ],
  [
    "Azure DevOps",
    azureSamples,
    "git.pullrequest.merged",
    (sha: string) => ({ resource: { lastMergeCommit: { commitId: sha } } }),
  ],
])("%s: a merged pull request names the commit that it became", (_, samples, title, changes) => {
  const [happening] = tellerOf(samples)(title, changes("764413d85e29"));
  expect(happening).toMatchObject({ name: "pullRequest.merged", event: { pullRequest: { mergeSha: "764413d85e29" } } });
});

describe("GitLab", () => {
  const tell = tellerOf(gitlabSamples);

  test("a comment on several lines has the first of them", () => {
    const on = (start: object) =>
      tell("note: on a line", { object_attributes: { position: { line_range: { start } } } })[0]?.event.comment;
    expect(on({ type: "new", old_line: null, new_line: 3 })).toMatchObject({ firstLine: 3, line: 7 });
    expect(on({ type: "new", old_line: null, new_line: 7 })).not.toHaveProperty("firstLine");
  });

  test("a comment has the address of its merge request's own events, and its thread", () => {
    const [happening] = tell("note: on a line");
    const url = "https://gitlab.example/mike/diaspora/-/merge_requests/1";
    expect(happening).toMatchObject({
      subject: url,
      event: {
        pullRequest: { url, head: { branch: "fix-login", repositoryUrl: "https://gitlab.example/mike/diaspora" } },
        comment: { id: "1244", path: "a.ts", line: 7, threadId: "8ba2ba4f0b3f8a1c" },
      },
    });
    expect(tell("merge request: new commits")[0]?.subject).toBe(url);
  });
  test("an approval that is the last one asked for is one event, although GitLab delivers it twice", () => {
    expect(keys(tell("merge request: approved by all"))).toEqual(keys(tell("merge request: approved by one")));
    expect(keys(tell("merge request: approved by one", { user: { id: 5 } }))).not.toEqual(
      keys(tell("merge request: approved by one")),
    );
  });
  test("a review that asks for changes is the reviewer's", () => {
    const [happening] = tell("merge request: changes asked for");
    expect(happening?.event.review).toMatchObject({ state: "changesRequested", author: { login: "rita" } });
  });
  test("texts that only some readers may see are confidential: an issue, a comment on one, an internal comment", () => {
    const onIssue = "note: on an issue, before 16.11";
    const isConfidential = (title: string, changes: Json = {}) => tell(title, changes)[0]?.event.confidential;
    expect(isConfidential("issue: labelled")).toBe(false);
    expect(isConfidential("issue: labelled", { object_attributes: { confidential: true } })).toBe(true);
    expect(isConfidential("issue: labelled", { event_type: "confidential_issue" })).toBe(true);
    expect(isConfidential(onIssue)).toBe(false);
    expect(isConfidential(onIssue, { event_type: "confidential_note" })).toBe(true);
    expect(isConfidential(onIssue, { issue: { confidential: true } })).toBe(true);
    expect(isConfidential("note: on a line", { object_attributes: { internal: true } })).toBe(true);
  });
  test("a fork's branch is not taken for ours", () => {
    const fork = { merge_request: { source_project_id: 16, source_branch: "main" } };
    const [happening] = tell("pipeline: of a merge request", fork);
    expect(happening?.event.checks).toMatchObject({ branch: null, pullRequests: [1] });
  });
  test("a label that was there is no new one", () => {
    expect(tell("issue: labelled").map(({ event }) => event.label)).toEqual(["agent"]);
    const later = { object_attributes: { updated_at: "2026-11-20 11:00:00 UTC" } };
    expect(keys(tell("issue: labelled", later))).not.toEqual(keys(tell("issue: labelled")));
  });
  test("a pipeline without a name is called by the jobs that failed, and not by those that may", () => {
    const failed = (name: string, isAllowed: boolean) => ({ name, status: "failed", allow_failure: isAllowed });
    const [happening] = tell("pipeline: failed", {
      object_attributes: { name: null },
      builds: [failed("lint", true), failed("test", false)],
    });
    expect(happening?.event.checks?.name).toBe("test");
  });
  test("a pipeline whose jobs were run again ends again", () => {
    const again = { object_attributes: { finished_at: "2026-11-20 11:00:00 UTC" } };
    expect(keys(tell("pipeline: failed", again))).not.toEqual(keys(tell("pipeline: failed")));
    expect(tell("pipeline: of a merge request")[0]).toMatchObject({
      subject: "https://gitlab.example/mike/diaspora/-/merge_requests/1",
      event: { checks: { branch: "fix-login", pullRequests: [1] } },
    });
  });
  test.each([
    ["project_15_bot_a1b2c3", true],
    ["group_7_bot", true],
    ["service_account_group_7_abc", true],
    ["alert-bot", true],
    ["GitLabDuo", true],
    ["project_bot_owner", false],
    ["abbot", false],
    ["jsmith", false],
  ])("the user %s is a bot: %s", (username, isBot) => {
    expect(tell("issue: opened", { user: { username } })[0]?.event.actor).toMatchObject({ login: username, isBot });
  });
  test("a version that names only the request tells several deliveries of one request apart, and repetitions not", () => {
    const { read } = readerOf("gitlab");
    const headers = { "x-gitlab-event-uuid": "13792a34-cac6-4fda-95a8-c58e00a3954e" };
    const id = (body: string): string | null => read({ headers, body: Buffer.from(body) }).deliveryId;
    expect(id('{"a":1}')).toBe(id('{"a":1}'));
    expect(id('{"a":1}')).not.toBe(id('{"a":2}'));
    expect(read({ headers: {}, body: Buffer.from("{}") }).deliveryId).toBeNull();
  });
  test("a push has no user, but a pusher", () => {
    expect(tell("a push")[0]?.event.actor).toEqual({ id: "4", login: "jsmith", isBot: false });
    expect(tell("a deleted branch")[0]?.event.push).toMatchObject({ deleted: true, after: null });
  });
});

describe("Gitea and Forgejo", () => {
  const tell = tellerOf(giteaSamples);

  test("without saying which label is new, each one counts once for an issue", () => {
    const [bug, agent] = keys(tell("issue: labelled"));
    const later = { issue: { updated_at: "2026-11-20T11:00:00Z" } };
    expect(keys(tell("issue: labelled", later))).toEqual([bug, agent]);
    const said = tell("issue: labelled, and said which");
    expect(said[0]?.event.label).toBe("agent");
    expect(keys(tell("issue: labelled, and said which", later))).not.toEqual(keys(said));
  });
  test("a run that failed is one event, by its jobs' statuses and by itself", () => {
    const [run] = tell("a run failed");
    expect(run?.event.checks).toMatchObject({ name: "CI", branch: "fix-login" });
    expect(keys(tell("a job of a run failed"))).toEqual([run?.contentKey]);
    const second = { target_url: "/gituser/webhooks/actions/runs/12/jobs/3", id: 902, context: "other" };
    expect(keys(tell("a job of a run failed", second))).toEqual([run?.contentKey]);
    expect(keys(tell("a run failed", { workflow_run: { run_attempt: 2 } }))).not.toEqual([run?.contentKey]);
  });
  test("a job's status has the address of its run as the id, and not its own number, which may be another run's", () => {
    const path = "/gituser/webhooks/actions/runs/12";
    const ids = [tell("a job of a run failed"), tell("a job of a run failed", { target_url: `${path}/jobs/3` })];
    expect(ids.map(([happening]) => happening?.event.checks?.id)).toEqual([path, path]);
    expect(tell("a run failed")[0]?.event.checks).toMatchObject({ id: "500", url: `https://gitea.example${path}` });
  });
  test("a fork's branch is not taken for ours", () => {
    const [happening] = tell("a run failed", { workflow_run: { head_repository: { id: 141 } } });
    expect(happening?.event.checks?.branch).toBeNull();
    expect(happening?.subject).toMatch(/webhooks#[0-9a-f]{40}$/u);
  });
  test("a run of Forgejo names its repository, who set it off and its pull request", () => {
    expect(tell("a run of Forgejo on a pull request")[0]).toMatchObject({
      subject: "https://gitea.example/gituser/webhooks/pulls/4",
      event: { actor: { login: "gituser" }, checks: { name: "ci.yaml", branch: null, pullRequests: [4] } },
    });
  });
  test("the first success after a failure, which comes as a recovery too, is one event", () => {
    const [success] = keys(tell("a run of Forgejo on a pull request"));
    expect(keys(tell("a run of Forgejo on a pull request", { action: "recover" }))).toEqual([success]);
  });
  test("a deleted branch can't be recognised: nothing says what it was at", () => {
    expect(tell("a branch deleted")[0]).toMatchObject({ contentKey: null, event: { push: { deleted: true } } });
  });
  test("the server's own users are bots", () => {
    const sender = { id: -2, login: "gitea-actions" };
    expect(tell("a push", { sender })[0]?.event.actor).toMatchObject({ isBot: true });
    expect(tell("a push", { sender: { id: -1, login: "Ghost" } })[0]?.event.actor).toMatchObject({ isBot: false });
  });
  test("two reviews with the same words are two", () => {
    const later = { pull_request: { updated_at: "2026-11-20T11:00:00Z" } };
    expect(keys(tell("review: rejected", later))).not.toEqual(keys(tell("review: rejected")));
  });
});

describe("Bitbucket Cloud", () => {
  const tell = tellerOf(bitbucketSamples);

  test("a change of the text repeats the event of the opening or the last push", () => {
    const [opened] = keys(tell("pullrequest:created"));
    expect(keys(tell("pullrequest:updated", { pullrequest: { title: "Other" } }))[0]).toBe(opened);
    const pushed = { pullrequest: { source: { commit: { hash: "aaaaaaaaaaaa" } } } };
    expect(keys(tell("pullrequest:updated", pushed))[0]).not.toBe(opened);
    expect(keys(tell("pullrequest:updated", { pullrequest: { draft: true } }))[0]).not.toBe(opened);
  });
  test("a reviewer counts once for a pull request", () => {
    expect(keys(tell("pullrequest:updated"))[1]).toBe(keys(tell("pullrequest:created"))[1]);
  });
  test("a build is one, however often its status is set", () => {
    const again = { commit_status: { updated_on: "2026-11-21T10:00:00Z", description: "Failed" } };
    expect(keys(tell("repo:commit_status_created", again))).toEqual(keys(tell("repo:commit_status_created")));
    const next = { commit_status: { url: "https://ci.example/13" } };
    expect(keys(tell("repo:commit_status_created", next))).not.toEqual(keys(tell("repo:commit_status_created")));
  });
  test("apps are bots, and a comment has its place and thread", () => {
    const [happening] = tell("pullrequest:comment_created", { actor: { type: "app_user" } });
    expect(happening?.event).toMatchObject({
      actor: { isBot: true },
      comment: { path: "src/login.ts", line: 10, threadId: "16" },
    });
  });
});

describe("Bitbucket Data Center", () => {
  const tell = tellerOf(bitbucketDataCenterSamples);

  test("a pull request has its address although the delivery leaves it out", () => {
    const [happening] = tell("pr:opened");
    expect(happening).toMatchObject({
      subject: "https://bitbucket.example/projects/PROJ/repos/app/pull-requests/11",
      event: { repository: { url: "https://bitbucket.example/scm/PROJ/app", fullName: "PROJ/app" } },
    });
  });
  test("a server that does not say where it is gives paths", () => {
    const [happening] = tell("a push on a server that does not say where it is");
    expect(happening?.event.repository?.url).toBe("/projects/PROJ/repos/app");
  });
  test("accounts for programs are bots", () => {
    expect(tell("pr:merged", { actor: { type: "SERVICE" } })[0]?.event.actor?.isBot).toBe(true);
  });
  test("an approval given again is another one", () => {
    const later = { date: "2026-11-20T11:00:00+1000" };
    expect(keys(tell("pr:reviewer:approved", later))).not.toEqual(keys(tell("pr:reviewer:approved")));
  });
});

describe("Azure DevOps", () => {
  const tell = tellerOf(azureSamples);

  test("a pull request has the address of its page, and of its repository without a user's name", () => {
    const [happening] = tell("git.pullrequest.created");
    expect(happening).toMatchObject({
      deliveryId: "2ab4e3d3-b7a6-425e-92b1-5a9982c1269e",
      subject: "https://dev.azure.com/fabrikam/Fabrikam/_git/Fabrikam/pullrequest/1",
      event: {
        actor: { login: "fabrikamfiber4@hotmail.com" },
        repository: { url: "https://dev.azure.com/fabrikam/Fabrikam/_git/Fabrikam", defaultBranch: "main" },
        pullRequest: { head: { branch: "fix-login" }, target: "main", labels: ["agent"] },
      },
    });
  });
  test("a comment is known by its thread and its number in it", () => {
    const title = "ms.vss-code.git-pullrequest-comment-event";
    expect(tell(title)[0]?.event.comment).toMatchObject({ id: "5.2", threadId: "5" });
    const href = "https://dev.azure.com/fabrikam/_apis/git/repositories/x/pullRequests/1/threads/6";
    const elsewhere = { resource: { comment: { _links: { threads: { href } } } } };
    expect(keys(tell(title, elsewhere))).not.toEqual(keys(tell(title)));
  });
  test("a work item is about the repository of its project's name, and its people are known by their names alone", () => {
    const url = "https://dev.azure.com/fabrikam/Fabrikam/_git/Fabrikam";
    const [happening] = tell("workitem.commented");
    expect(happening?.event).toMatchObject({
      repository: { url, fullName: "Fabrikam/Fabrikam" },
      comment: { author: { id: "", login: "rita@example.com" }, body: "@offstage please mend this" },
    });
    expect(tell("a work item commented on by a person with an id")[0]?.event.comment?.author).toEqual({
      id: "2ea2d095-48f9-4cd6-9966-62f6f574096c",
      login: "rita@example.com",
      isBot: false,
    });
    expect(tell("workitem.updated")[0]?.event.repository?.url).toBe(url);
    const where = (resource: Json, more: Json = {}) =>
      tell("workitem.created", { resource, ...more })[0]?.event.repository;
    expect(
      where({ url: "https://dev.azure.com/fabrikam/be9b3917-87e6-42a4-a549-2bc06a7a878f/_apis/wit/workItems/5" })?.url,
    ).toBe(url);
    expect(where({ url: "https://fabrikam.visualstudio.com/DefaultCollection/_apis/wit/workItems/5" })?.url).toBe(
      "https://fabrikam.visualstudio.com/DefaultCollection/Fabrikam/_git/Fabrikam",
    );
    const collection = { baseUrl: "https://azure.example/tfs/Main/" };
    expect(where({ fields: { "System.TeamProject": "A shop" } }, { resourceContainers: { collection } })?.url).toBe(
      "https://azure.example/tfs/Main/A%20shop/_git/A%20shop",
    );
    expect(where({ fields: { "System.TeamProject": null } })).toBeNull();
  });
  test("a work item is about the repository that the connection names for its project", () => {
    const sample = azureSamples.find(({ title }) => title === "workitem.created") as Sample;
    const [happening] = readerOf("azure").read(delivered(sample)).events;
    const of = (map: Record<string, string> | null) =>
      happening === undefined ? null : (inRepositoryOf(happening, map).event as unknown as ForgeEvent).repository;
    expect(of({ fabrikam: "back end" })).toMatchObject({
      url: "https://dev.azure.com/fabrikam/Fabrikam/_git/back%20end",
      fullName: "Fabrikam/back end",
    });
    expect(of({ Other: "app" })?.fullName).toBe("Fabrikam/Fabrikam");
    expect(of(null)?.fullName).toBe("Fabrikam/Fabrikam");
  });
  test("a comment on a work item has its own id if the server names it", () => {
    expect(tell("workitem.commented")[0]?.event.comment).toMatchObject({ id: "4" });
    const named = { resource: { commentVersionRef: { commentId: 54_321, version: 1 } } };
    const [happening] = tell("workitem.commented", named);
    expect(happening?.event.comment).toMatchObject({ id: "54321" });
  });
  test("a vote is that of the reviewer whom the message names", () => {
    const [happening] = tell("Rita approved pull request 1 (Fix the login) in Fabrikam");
    expect(happening?.event).toMatchObject({ actor: { login: "rita@example.com" }, review: { state: "approved" } });
  });
  test("a pull request's build is of the commit that was merged to be built, as far as the delivery says it", () => {
    const ofMerge = { sourceBranch: "refs/pull/7/merge", sourceVersion: "b".repeat(40) };
    const shaOf = (resource: Json): string | undefined => tell("build.complete", { resource })[0]?.event.checks?.sha;
    expect(shaOf(ofMerge)).toBe("b".repeat(40));
    const triggerInfo = { "pr.number": "7", "pr.sourceSha": "a".repeat(40) };
    expect(shaOf({ ...ofMerge, triggerInfo })).toBe("a".repeat(40));
    const parameters = JSON.stringify({
      "system.pullRequest.pullRequestId": "7",
      "system.pullRequest.sourceCommitId": "c".repeat(40),
    });
    expect(shaOf({ ...ofMerge, triggerInfo: {}, parameters })).toBe("c".repeat(40));
    expect(shaOf({ ...ofMerge, triggerInfo: { "pr.sourceSha": 1 }, parameters: "{" })).toBe("b".repeat(40));
  });
  test("a build is about its branch, or its pull request", () => {
    const [happening] = tell("build.complete");
    const url = "https://dev.azure.com/fabrikam/Fabrikam/_git/Fabrikam";
    expect(happening).toMatchObject({ subject: `${url}#refs/heads/fix-login`, event: { checks: { name: "CI" } } });
    const [into] = tell("build.complete", { resource: { sourceBranch: "refs/pull/7/merge" } });
    expect(into).toMatchObject({
      subject: `${url}/pullrequest/7`,
      event: { checks: { branch: null, pullRequests: [7] } },
    });
  });
  test("each change of a work item is one event", () => {
    const happening = tell("a work item reopened, tagged and assigned at once");
    expect(happening[1]?.event.label).toBe("agent");
    expect(happening[2]?.event.assignee).toMatchObject({ login: "fabrikamfiber4@hotmail.com" });
    expect(happening[0]?.event.actor).toMatchObject({ login: "rita@example.com" });
  });
});
