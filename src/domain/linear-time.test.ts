import { readdirSync } from "node:fs";
import { basename, join } from "node:path";
import fc from "fast-check";
import { expect, test } from "vitest";
import { z } from "zod";
import { newConversation } from "./conversations/conversation.ts";
import type { readTranscript } from "./sessions/transcript.ts";
import { SessionError } from "./errors/errors.ts";
import { createMask, type Mask } from "./masking/mask.ts";
import type { createNeedleSearch } from "./masking/needle-search.ts";
import type { createSecretSearch } from "./masking/secret-search.ts";
import type { viewsOf } from "./masking/text-views.ts";

/**
 * Every function of this folder takes untrusted texts, on the event loop that all requests share: the time of each must
 * be at most proportional to the text's length. Each exported function is listed here, or the test fails.
 */
const shortLength = 10_000;
const longLength = 100_000;
/** Below it a time says nothing but what else the machine did, in ms. */
const noiseMs = 5;
const tries = 6;
/** Ten times is exact proportion; what a cache and a collection of garbage make of it comes on top. */
const tolerance = 2.5;

type Act = (text: string) => unknown;
type Exported = (...given: never[]) => unknown;
/** How a function is given a text; all exports of a file come in, so that nothing is named that is not there. */
type Call = (exported: Exported, text: string) => unknown;

const first: Call = (exported, text) => (exported as unknown as Act)(text);
const withArguments =
  (...before: readonly unknown[]): Call =>
  (exported, text) =>
    (exported as (...given: readonly unknown[]) => unknown)(...before.map((one) => (one === given ? text : one)));
/** Marks the text's position among the arguments. */
const given = Symbol("the text");

/** JSON of a text, with a number as long as that. */
const withLongNumber = (text: string): string =>
  JSON.stringify({ [text]: text, number: 1 }).replace(/1\}$/u, `${"9".repeat(text.length)}}`);

const host = { host: "example.com", below: true, port: null, anyProtocol: false };
const someSecrets = ["a-secret-of-the-server", "x".repeat(40), "[[[[[[[[", "line one\nline two\nline three"];

const writer = { id: "1", login: "ann", isBot: false };
const sessionRun = { id: "r", kind: "session", threads: [null], pushedSha: "a" };
const saying = {
  type: "said",
  key: "text",
  by: writer,
  commentId: null,
  isOnLines: false,
  threadId: null,
  path: null,
  line: null,
  hunk: null,
  group: null,
  asksForChanges: true,
  isMarked: false,
  state: "open",
  mark: null,
};
const talkFacts = {
  now: 1,
  newId: () => "id",
  subject: { kind: "pullRequest", number: 1 },
  isTaken: false,
  isOwn: false,
  mayWrite: true,
  isOwnCommit: false,
  isDismissed: false,
  isAskedAgain: false,
  waitingRuns: new Set(),
  endedLater: [],
  pullRequest: "open",
  session: { status: "completed", pushedSha: "a", begunShas: [], isOver: false },
  spentUsd: 0,
  isMacro: () => false,
  logs: new Map(),
  ends: new Map(),
  places: new Map(),
  threads: new Map(),
};
const talkLimits = {
  mention: "offstage",
  turns: 9,
  botTurns: 9,
  sessions: 9,
  checkRounds: 9,
  conflictRounds: 9,
  usd: 9,
  bots: ["a[bot]"],
  resolvesThreads: true,
  checksMs: 1,
  reviewMs: 1,
};
const failedCheck = (text: string): object => ({ kind: text, id: text, name: text, url: text });
const noteOf = (text: string): object => ({
  key: "k",
  group: "review:1",
  by: writer,
  threadId: null,
  commentId: "1",
  body: text,
  path: text,
  line: 1,
  hunk: text,
});
const eventOf = (name: string, text: string): object => {
  const about = { number: 1, title: text, body: text, author: writer, state: "open", head: { sha: "a" } };
  const said = { id: "1", body: text, author: writer, path: text, line: 1, hunk: text, threadId: text };
  const review = name.endsWith("Submitted") && { review: { ...said, id: null, state: "changesRequested" } };
  const comment = name.endsWith("commented") && { comment: said };
  return { name, actor: writer, transition: "opened", issue: about, pullRequest: about, ...review, ...comment };
};
const talkEvents = ["issue.opened", "issue.commented", "pullRequest.commented", "pullRequest.reviewSubmitted"];

/** By file and export. */
const calls: Readonly<Record<string, Call>> = {
  "agent.splitAgentName": first,
  "answer.idScopesOf": (exported, text) => withArguments("issue", { path: text, threadId: text })(exported, text),
  "answers.answerOf": (exported, text) => {
    const end = {
      pushedSha: "b",
      commitUrl: null,
      pullRequestUrl: null,
      summary: text,
      reason: text,
      sessionUrl: null,
    };
    for (const status of ["completed", "failed"]) withArguments(sessionRun, { ...end, status })(exported, text);
  },
  "answers.noSuchMacro": first,
  "azure-address.isOldAzureAddress": (exported, text) => {
    for (const url of [text, `https://${text}`, `https://${text}.visualstudio.com`]) first(exported, url);
  },
  "azure-address.azureServicesPath": (exported, text) => {
    for (const name of ["dev.azure.com", text, `${text}.visualstudio.com`, "ssh.dev.azure.com"])
      for (const path of [text, `a/_git/${text}`]) withArguments(name, path, name.startsWith("ssh"))(exported, text);
  },
  "azure-address.azureSegments": (exported, text) => {
    withArguments(text.split("/"))(exported, text);
    withArguments([...text.split("/"), "_git", text])(exported, text);
  },
  "azure-address.azurePath": (exported, text) => {
    const name = text.toWellFormed();
    withArguments({ collection: name, project: name, repository: name })(exported, text);
  },
  "automation.titleOfRun": (exported, text) => withArguments(text, text, text)(exported, text),
  "comment-mark.withCommentMark": withArguments(given, "key"),
  "comment-mark.hasCommentMark": withArguments(given, "key"),
  "comment-mark.commentMarkKey": (exported, text) => {
    for (const body of [text, `<!-- offstage comment=${text}`, `<p>offstage comment=${"a".repeat(36)}${text}`])
      first(exported, body);
  },
  "comment-mark.withoutForgedMarks": first,
  "comment-mark.oldestWithMark": (exported, text) => withArguments([{ id: 1, body: text }], "key")(exported, text),
  "connection.boundedProblems": (exported, text) => {
    const problem = { missing: text, why: text, remedy: text, essential: true };
    withArguments([problem])(exported, text);
  },
  "decide.decide": (exported, text) => {
    const check = { type: "checks", outcome: "failed", sha: "a", check: failedCheck(text) };
    withArguments(newConversation, check, talkFacts, talkLimits)(exported, text);
    withArguments(newConversation, { type: "pushed", sha: text, by: writer }, talkFacts, talkLimits)(exported, text);
  },
  "decide.happeningKey": (exported, text) => {
    withArguments({ type: "said", key: text }, null)(exported, text);
    withArguments({ type: "checks", sha: text }, null)(exported, text);
  },
  "egress.parseEgressRule": first,
  "egress.canonicalHost": first,
  "egress.egressRulesFor": withArguments([host], given, 443),
  "egress.widenEgress": (exported, text) =>
    withArguments({ open: false, rules: [] }, [text, text.slice(0, 300)])(exported, text),
  "finding.isAllowed": (exported, text) => {
    for (const path of ["**/*a*b", "*[*]*", "**/**/x"])
      withArguments([{ path, rule: "r" }], { path: text, rule: text, fingerprint: text })(exported, text);
  },
  "finding.matchesPath": (exported, text) => {
    for (const pattern of ["**/*a*b", "*[*]*", "**/**/x"]) withArguments(pattern, given)(exported, text);
  },
  "git-ref.isBranchName": first,
  "glob.matchesGlob": (exported, text) => {
    for (const pattern of ["*a*b*c", "*[*]*x", `${text.slice(0, 100)}*${text.slice(0, 100)}x`, "a*a*a*a*a*b"])
      withArguments(pattern, given)(exported, text);
    withArguments(given, "a name")(exported, text);
  },
  "happening.happeningOf": (exported, text) => {
    for (const name of talkEvents) withArguments(eventOf(name, text))(exported, text);
  },
  "steering-hint.steeringHintOf": (exported, text) => {
    for (const name of ["issue.opened", "pullRequest.commented"])
      withArguments(eventOf(name, text), "offstage")(exported, text);
  },
  "harmless.harmless": first,
  "harmless.quoted": (exported, text) => {
    first(exported, text);
    withArguments(given, text.length)(exported, text);
  },
  "listening.listsEvent": (exported, text) => {
    for (const type of ["forge", "source"]) withArguments({ type, events: ["a", text] }, `${text}b`)(exported, text);
  },
  "listening.listsRepository": (exported, text) => {
    const repositories = ["*.example.com/*a*b", "/*[*]*", "example.com/*"];
    withArguments({ type: "forge", repositories }, { host: "a.example.com", path: text })(exported, text);
  },
  "live-mask.createLiveMask": (exported, text) => {
    const mask = withArguments(createMask(someSecrets), () => ["another-secret"])(exported, text) as Mask;
    mask.text(text);
    mask.unfinished(text);
  },
  "markdown-parts.markdownParts": first,
  "mask.createMask": (_exported, text) => {
    const mask = createMask(someSecrets);
    mask.text(text);
    mask.unfinished(text);
    mask.event({ type: "agent.message", data: { part: text, text } });
  },
  "mention.findMention": (exported, text) => {
    withArguments(given, "offstage")(exported, text);
    withArguments(`@offstage !${text}`, "offstage")(exported, text);
  },
  "mention.instructionOf": first,
  "needle-search.createNeedleSearch": (exported, text) => {
    const needles = someSecrets.map((secret, owner) => ({ bytes: new TextEncoder().encode(secret), owner }));
    const search = withArguments(needles)(exported, text) as ReturnType<typeof createNeedleSearch>;
    search.find(new TextEncoder().encode(text), () => undefined);
  },
  "model.matchesModel": withArguments(["claude-*", "*a*a*a*b"], given),
  "new-session.newSession": (exported, text) => {
    const repositories = [{ id: "1", name: text }];
    withArguments({ prompt: text, description: text, repositories, sandboxed: true })(exported, text);
    withArguments({ prompt: "p", title: text, repositories, sandboxed: true })(exported, text);
  },
  "problem.problemOf": (exported, text) => {
    withArguments({ code: "custom", message: text, path: [] })(exported, text);
    withArguments({ code: "unrecognized_keys", message: "Unrecognized", keys: [text], path: [] })(exported, text);
  },
  "prompts.checksPrompt": (exported, text) =>
    withArguments(text, [{ ...failedCheck(text), logEnd: text }])(exported, text),
  "prompts.untrustedData": (exported, text) => withArguments(text, { [text]: [text] })(exported, text),
  "prompts.placeData": (exported, text) => withArguments({ path: text, line: 1, hunk: text })(exported, text),
  "prompts.reviewPrompt": (exported, text) =>
    withArguments({ by: { ...writer, login: text }, body: "", number: 1 }, [noteOf(text)])(exported, text),
  "prompts.sayingPrompt": (exported, text) =>
    withArguments({ by: { ...writer, login: text }, body: text, where: "here", around: { text } })(exported, text),
  "pull-request-mark.readMark": first,
  "pull-request-mark.withMark": withArguments(given, { sessionId: "s", sha: "c" }),
  "pull-request-section.markedSection": first,
  "pull-request-section.withSection": (exported, text) => {
    withArguments(`${text}<!-- offstage section -->${text}<!-- /offstage section -->`, "", 1_000)(exported, text);
    withArguments(text, text, 1_000)(exported, text);
  },
  "pull-request-text.pullRequestText": (exported, text) => {
    const commits = [{ subject: text }];
    const work = { title: text, finalMessage: text, section: text, headSha: "abc", commits };
    withArguments({ ...work, template: text })(exported, text);
    withArguments({ ...work, finalMessage: "", template: null })(exported, text);
  },
  "pull-request-text.withFurtherTurn": (exported, text) => {
    const work = { headSha: "abc", finalMessage: text, commits: [{ subject: text }] };
    withArguments(`${text}<!-- /offstage -->`, work)(exported, text);
    withArguments(text, { ...work, finalMessage: "" })(exported, text);
  },
  "recording.recordingName": first,
  "recording.recordedSession": first,
  "refused-repositories.failureOfRefused": (exported, text) => {
    const error = new SessionError({ code: "push_rejected", reason: text, retryable: false, remedy: text });
    withArguments([{ name: text, error }], text)(exported, text);
  },
  "refused-repositories.holdsFailure": (exported, text) => {
    const error = new SessionError({ code: "push_rejected", reason: text, retryable: false, remedy: text });
    withArguments(error, text)(exported, text);
  },
  "registry.registryAddress": (exported, text) =>
    first(exported, `https://registry.example/${encodeURIComponent(text.toWellFormed())}`),
  "registry.fileAddressesOf": (exported, text) => {
    for (const kind of ["pypi", "npm"]) withArguments(kind, `https://registry.example/${text}`)(exported, text);
  },
  "registry.registryFolder": (exported, text) =>
    first(exported, `https://registry.example/${encodeURIComponent(text.toWellFormed())}`),
  "sandbox-lost.sandboxLost": (exported, text) => withArguments({ why: text, passes: true }, text)(exported, text),
  "reply-target.replyTargetOf": (exported, text) => {
    withArguments({ replyTo: text })(exported, text);
    withArguments({ [text]: text })(exported, text);
  },
  "path-of-address.pathOfAddress": first,
  "repository-pattern.repositoryRefusal": (exported, text) =>
    withArguments(
      { patterns: ["*.example.com/*a*b"], usesServerForges: false },
      { host: "a.example.com", path: text, cloneUrl: `https:${text}`, local: false },
    )(exported, text),
  "repository-pattern.allowsRepository": (exported, text) => {
    const patterns = ["*.example.com/*a*b", "/*[*]*", "example.com/*"];
    for (const address of [
      { host: text, path: text },
      { host: "a.example.com", path: text },
      { host: null, path: text },
    ])
      withArguments(patterns, address)(exported, text);
  },
  "retry-after.boundedRetryAfterMs": first,
  "retry-after.retryAfterMs": first,
  "notes.withNote": (exported, text) => {
    const asked = { key: "k", body: text, path: text, line: 1, hunk: text, threadId: text, commentId: text };
    const by = { id: "1", login: text, isBot: false };
    withArguments([], { ...asked, isOnLines: true, isConfidential: false }, by, text, 0)(exported, text);
  },
  "rounds.checked": (exported, text) => {
    const checks = { sha: "a", since: 0, dueAt: 0, failed: [failedCheck(text), failedCheck(`${text}b`)] };
    for (const outcome of ["failed", "passed"]) {
      const check = { type: "checks", outcome, sha: "a", check: failedCheck(text) };
      withArguments({ ...newConversation, checks }, check, talkFacts, talkLimits)(exported, text);
    }
  },
  "rounds.startRound": (exported, text) => {
    const checks = { sha: "a", since: 0, dueAt: 0, failed: [failedCheck(text)] };
    const facts = { ...talkFacts, logs: new Map([[text, text]]) };
    withArguments({ ...newConversation, checks }, facts, talkLimits)(exported, text);
  },
  "sayings.needsRights": (exported, text) => {
    const by = { ...writer, login: text, isBot: true };
    withArguments({ ...saying, body: text, asksForChanges: false }, talkFacts, talkLimits)(exported, text);
    withArguments({ ...saying, by, body: text }, talkFacts, talkLimits)(exported, text);
  },
  "sayings.said": (exported, text) => {
    const said = {
      ...saying,
      body: text,
      path: text,
      hunk: text,
      about: { title: "", body: text, author: text },
      thread: [{ author: text, text }],
    };
    const facts = { ...talkFacts, subject: { kind: "issue", number: 1 }, session: null };
    withArguments(newConversation, said, facts, talkLimits)(exported, text);
    const note = { ...said, commentId: "1", group: "review:1", isOnLines: true, asksForChanges: false };
    withArguments(newConversation, note, talkFacts, talkLimits)(exported, text);
  },
  "reviews.gatherReview": (exported, text) => {
    const review = { ...saying, body: text, group: text };
    withArguments({ ...newConversation, notes: [noteOf(text)] }, review, writer, talkFacts, talkLimits)(exported, text);
    const comment = { ...review, commentId: "1", path: text, hunk: text };
    withArguments(newConversation, comment, writer, talkFacts, talkLimits)(exported, text);
  },
  "reviews.keepNote": (exported, text) => {
    const comment = { ...saying, body: text, group: "review:1", commentId: "1", path: text, hunk: text };
    withArguments(
      { ...newConversation, notes: [noteOf(text)] },
      comment,
      writer,
      talkFacts,
      talkLimits,
    )(exported, text);
  },
  "seen.seenReview": (exported, text) => {
    withArguments({ ...saying, body: text, group: text }, [noteOf(text)])(exported, text);
  },
  "reviews.startReviews": (exported, text) => {
    const asked = [{ group: "review:1", by: writer, body: "", isAnswered: false, dueAt: 0 }];
    const facts = { ...talkFacts, threads: new Map([["k", [{ author: text, text }]]]) };
    withArguments({ ...newConversation, asked, notes: [noteOf(text)] }, facts, talkLimits)(exported, text);
  },
  "dismissal.dismissed": (exported, text) => {
    const asked = [{ group: "review:1", by: writer, body: text, isAnswered: false, dueAt: 0 }];
    const happening = { type: "dismissed", key: "review:1", group: "review:1", by: writer };
    withArguments(
      { ...newConversation, asked, notes: [noteOf(text)] },
      happening,
      talkFacts,
      talkLimits,
    )(exported, text);
  },
  "schedule.cronProblem": (exported, text) => {
    for (const cron of [text, `${text} * * * *`, `0 0 * * ${text}`]) first(exported, cron);
  },
  "schedule.isTimeZone": (exported, text) => {
    for (const zone of [text, `Europe/${text}`]) first(exported, zone);
  },
  "section.sectionText": (exported, text) =>
    withArguments({ sessionUrl: text, others: [{ name: text, number: 1, url: text }], approval: null, loop: null })(
      exported,
      text,
    ),
  "secret-parts.partsOf": first,
  "secret-parts.joinedPartsOf": first,
  "secret-search.createSecretSearch": (exported, text) => {
    const search = withArguments(someSecrets)(exported, text) as ReturnType<typeof createSecretSearch>;
    const bytes = new TextEncoder().encode(text);
    search.shown(bytes);
    search.scan(bytes);
  },
  "source-event.isSourceEventName": (exported, text) => {
    for (const source of ["sentry", "cloudEvents"]) withArguments(source, given)(exported, text);
  },
  "session-reply.whatToSay": (exported, text) => {
    const facts = {
      summary: text,
      failure: { reason: text },
      hasBegun: true,
      pullRequestUrls: [text, `https://${text}`],
    };
    for (const status of ["completed", "failed"])
      withArguments({ ...facts, status }, null, "https://x.example", true)(exported, text);
  },
  "session-reply.whatToSayOfFailedRun": (exported, text) => withArguments(given, true)(exported, text),
  "session-reply.whatToComment": (exported, text) => {
    const facts = { status: "completed", summary: text, hasBegun: true, pullRequestUrls: [text, `https://${text}`] };
    withArguments(facts, null, "https://x.example")(exported, text);
  },
  "spellings.spellingsOf": first,
  "spellings.bytesOf": first,
  "repository.parseRepositoryUrl": (exported, text) => {
    for (const url of [text, `/${text}`, `https://host.example/${text}`, `file:///${text}`, `git@host:${text}`])
      first(exported, url);
  },
  "choice.bestFirst": (exported, text) =>
    withArguments([text, text], (item: string) => item, text.slice(0, 200))(exported, text),
  "words.noticeWords": (exported, text) =>
    ["session.failed", "pullRequest.opened", "automation.paused"].map((kind) =>
      withArguments(
        kind,
        { id: text, title: text, name: text, reason: text, failure: { reason: text } },
        {
          publicUrl: "",
          sessionTitle: text,
        },
      )(exported, text),
    ),
  "words.mailBodies": (exported, text) =>
    withArguments({ title: text, text, url: text, tag: "" }, text)(exported, text),
  "words.layOutMail": (exported, text) =>
    withArguments({
      language: "en",
      title: text,
      text,
      url: text,
      open: text,
      footer: text,
      change: { text, url: text },
    })(exported, text),
  "invitation-mail.invitationMail": (exported, text) =>
    withArguments("de", { publicUrl: "https://offstage.example", token: text, expiresAt: new Date(0) })(exported, text),
  "patch.inDirectory": (exported, text) => {
    const act = exported as unknown as (patch: string, directory: string) => unknown;
    return [text, `diff --git a/x b/x\n--- a/${text}`, `@@ -1,${text.length} +1 @@\n${text}`].map((each) =>
      act(each, "d"),
    );
  },
  "patch.lacksContent": first,
  "session.titleOf": first,
  "transcript.readTranscript": (exported, text) => {
    const { add, end } = (exported as unknown as typeof readTranscript)();
    const data = { part: "p", text };
    for (const type of ["agent.message", "agent.thought", "agent.message"] as const)
      add({ type, seq: 1, createdAt: "", data });
    return end();
  },
  "transcript.markdownHead": (exported, text) =>
    withArguments({
      title: text,
      branchName: text,
      repositories: [{ name: text }],
      pullRequests: [{ url: text, state: "open" }],
      eventsRemovedThrough: 0,
    })(exported, text),
  "transcript.markdownOf": (exported, text) =>
    [
      { type: "agent", at: "", text },
      {
        type: "tool",
        at: "",
        title: text,
        kind: text,
        status: "completed",
        input: text,
        content: [{ type: "text", text }],
      },
    ].map((entry) => withArguments(entry)(exported, text)),
  "session.defaultBranchName": withArguments(given, "0198c2f4"),
  "session.firstMessage": (exported, text) => withArguments({ prompt: text, description: text })(exported, text),
  "text-views.viewsOf": (exported, text) => {
    const views = withArguments(new TextEncoder().encode(text))(exported, text) as ReturnType<typeof viewsOf>;
    for (const view of views) void view;
  },
  "exact-json.exactJson": (exported, text) => withArguments(withLongNumber(text))(exported, text),
  "exact-json.parseExactly": (exported, text) => withArguments(withLongNumber(text))(exported, text),
  "text.firstOf": (exported, text) => withArguments([text, text], 1)(exported, text),
  "text.storable": first,
  "text.storableJson": (exported, text) => withArguments({ text, inner: [text] })(exported, text),
  "text.cutAtWord": (exported, text) => {
    withArguments(given, 80)(exported, text);
    withArguments(given, text.length - 1)(exported, text);
  },
  "text.cutMiddle": (exported, text) => {
    withArguments(given, 80)(exported, text);
    withArguments(given, text.length - 1)(exported, text);
  },
  "workspace-file.isName": first,
  "user.roleFor": (exported, text) => {
    const identity = { issuer: text, subject: text, name: text, email: text, login: text, organizations: [text] };
    const policy = { admins: ["a@b"], domains: ["b.example"], githubOrganizations: ["c"], defaultRole: "member" };
    withArguments(identity, policy)(exported, text);
  },
  "event-subject.isAboutIssue": first,
  "event-subject.isAboutSubject": first,
  "event-subject.isAboutPullRequest": first,
  "csv.csvOf": (exported, text) => withArguments([{ key: text, name: text }], ["key", "name"])(exported, text),
  "grant.requestedScopes": first,
  "oauth-client.mayRedirectTo": (exported, text) => {
    for (const address of [text, `https://${text}`, `http://127.0.0.1/${text}`]) withArguments(address)(exported, text);
  },
  "oauth-client.isRegistered": (exported, text) => {
    const redirectUris = [`http://127.0.0.1/${text}`, `https://example.com/${text}`];
    for (const address of [text, ...redirectUris]) withArguments({ redirectUris }, address)(exported, text);
  },
  "oauth-client.isDocumentAddress": (exported, text) => {
    for (const id of [text, `https://example.com/${text}`]) withArguments(id)(exported, text);
  },
  "event-subject.readForgeEvent": (exported, text) => {
    for (const name of talkEvents) withArguments(eventOf(name, text))(exported, text);
  },
  "event-subject.subjectOf": (exported, text) => {
    for (const name of talkEvents) withArguments(eventOf(name, text))(exported, text);
  },
  "uuid.isUuid": first,
  "short-id.shortId": first,
  "written-numbers.bytesWrittenOut": (exported, text) => withArguments([text, { [text]: 1e300 }])(exported, text),
};

/** Functions that take no untrusted text, and why. */
const withoutText: Readonly<Record<string, string>> = {
  "share.withoutSurroundings": "takes a session, and leaves its texts",
  "approval.approvalWords": "three flags",
  "answers.isDoneByCommit": "names of ours, and commits, which it compares",
  "answers.isWorthAnswering": "names of ours, and commits, which it compares",
  "audit.outcomeOf": "a number",
  "bounds.begun": "counts, and a run, which it hands on as it is",
  "bounds.left": "a reason, which it hands on as it is",
  "bounds.sayingBound": "names of ours, and numbers",
  "bounds.sharedBound": "numbers",
  "bounds.threadOf": "a path, which it puts before a number",
  "bounds.refuseOnce": "names of ours, and numbers",
  "conversation.dueAt": "times",
  "conversation.limitsWith": "settings, put together",
  "conversation.threadPlaceOf": "a path, which it puts before a number",
  "merge.mergeConversations": "two conversations, whose lists it joins by keys, each seen once",
  "days.daysOf": "days, which its caller has checked",
  "days.periodsOf": "days, which its caller has checked",
  "figures.figuresOf": "numbers",
  "histogram.quantileMs": "numbers",
  "notes.answeringNotes": "ids of a forge, which it compares",
  "never-sent.wasNeverSent": "something thrown, of which it reads a code",
  "notes.isOfReview": "names of ours, which it compares",
  "notes.isRecentNote": "times",
  "notes.unplacedNotes": "names of ours, which it compares",
  "notes.withNotesAgain": "notes that were cut when they came, which it counts",
  "prompts.conflictPrompt": "a number",
  "grant.grantable": "names of ours, which it compares",
  "oauth-client.isLoopback": "an address that was parsed, of which it compares two parts",
  "retry.answerPauseMs": "a name of ours, and numbers",
  "rounds.conflicted": "a commit, which it hands on as it is",
  "rounds.pushed": "a commit, which it hands on as it is",
  "rounds.pushedKey": "a commit, which it hands on as it is",
  "run.runStatusOf": "names of ours",
  "sayings.resumed": "counts, and names of bounds of ours",
  "seen.seen": "ids of a forge, which it hands on as they are",
  "trigger.givenSecret": "a secret, which it hands on as it is",
  "trigger.isSigned": "names of ours",
  "trigger.makesSecret": "names of ours",
  "due-ticks.judgeTicks": "times",
  "schedule.nextTick": "a schedule that cronProblem and isTimeZone have found right",
  "schedule.ticksBefore": "a schedule that cronProblem and isTimeZone have found right",
  "connection.connectionStateOf": "problems, of which it reads a flag",
  "child-environment.childEnvironment": "variables of the server's own",
  "token-bucket.createTokenBucket": "numbers and a clock",
  "backoff.backoffMs": "numbers and chance",
  "backoff.shortened": "numbers and chance",
  "errors.messageOf": "something thrown, whose message it hands on as it is",
  "list.oneOrMore": "schemas",
  "new-id.newId": "a time",
  "problems.fullnessOf": "numbers",
  "problems.systemProblems": "figures of ours, and the ids of at most 500 workers, of which it names three",
  "notice.scopeOf": "names of ours",
  "notice.isNotified": "names of ours, and ids",
  "list.pageSchema": "names of ours, and schemas",
  "key.hasScope": "scopes of a key, which are names of ours",
  "retry.planRetry": "a failure, whose reason it hands on as it is",
  "retry.withSharedBlame": "what is remembered of failures, whose reason it hands on as it is",
  "repository.isAddressProblem": "what parseRepositoryUrl found",
  "status.isFinal": "names of ours",
  "text.text": "makes a schema of a length",
  "text.optionalText": "makes a schema of a length",
  "user.scopesOf": "names of ours",
  "user.scopesOfKey": "names of ours",
  "user.scopesBeyond": "names of ours",
  "webhook.retryPauseMs": "numbers",
  "written-numbers.lengthWrittenOut": "a number",
};

/** Each schema and pattern is given the text as it is, in a list, and in each of its fields. */
function actsOfSchema(schema: z.ZodType): Act {
  const shape: unknown = "shape" in schema ? schema.shape : {};
  const names = Object.keys(shape as object);
  return (text) => {
    schema.safeParse(text);
    schema.safeParse([text]);
    schema.safeParse({ [text]: text });
    schema.safeParse(Object.fromEntries(names.map((name) => [name, text])));
    schema.safeParse(Object.fromEntries(names.map((name) => [name, [text]])));
  };
}

const isClass = (value: object): boolean => /^class\b/u.test(Function.prototype.toString.call(value));

/** @returns how each export of the folder is given a text, and exports that are in no list */
async function readExports(): Promise<{ acts: [name: string, act: Act][]; unknown: string[] }> {
  const acts: [string, Act][] = [];
  const unknown: string[] = [];
  const files = readdirSync(import.meta.dirname, { recursive: true, encoding: "utf8" }).filter(
    (file) => file.endsWith(".ts") && !file.includes(".test."),
  );
  for (const file of files) {
    const module = (await import(join(import.meta.dirname, file))) as Record<string, unknown>;
    for (const [exported, value] of Object.entries(module)) {
      const name = `${basename(file, ".ts")}.${exported}`;
      const call = calls[name];
      if (value instanceof z.ZodType) acts.push([name, actsOfSchema(value)]);
      else if (value instanceof RegExp) acts.push([name, (text) => value.test(text)]);
      else if (typeof value !== "function" || isClass(value) || name in withoutText) continue;
      else if (call === undefined) unknown.push(name);
      else acts.push([name, (text) => call(value as Exported, text)]);
    }
  }
  return { acts, unknown };
}

/** The processor time of this thread's own work, which other load does not change. @returns ms */
function timeOf(act: Act, text: string): number {
  const before = process.threadCpuUsage();
  act(text);
  const { user, system } = process.threadCpuUsage(before);
  return (user + system) / 1_000;
}

/** The most that the long text may take, in ms, if the short one took `shortMs`. */
const boundFor = (shortMs: number): number => tolerance * 10 * Math.max(shortMs, noiseMs);

/** A sentence about a case that took too long; null if the time was proportional in one of several tries. */
function complaint(name: string, act: Act, shape: (length: number) => string): string | null {
  const short = shape(shortLength);
  const long = shape(longLength);
  let shortest = Number.POSITIVE_INFINITY;
  let longest = Number.POSITIVE_INFINITY;
  for (let tried = 0; tried < tries; tried += 1) {
    longest = Math.min(longest, timeOf(act, long));
    // Within what the shortest of times allows, whatever the time for the short text is.
    if (longest <= boundFor(noiseMs)) return null;
    shortest = Math.min(shortest, timeOf(act, short));
    if (longest <= boundFor(shortest)) return null;
    // A case that takes twice too long three times will do so again, and no noise is ten times the bound.
    if (longest > (tried >= 2 ? 2 : 10) * boundFor(shortest)) break;
  }
  const start = JSON.stringify(long.slice(0, 30));
  return `${name} took ${longest.toFixed(0)} ms for ${longLength} characters of ${start}, and ${shortest.toFixed(1)} ms for ${shortLength}`;
}

const repeated =
  (unit: string, end = "") =>
  (length: number): string =>
    unit.repeat(Math.ceil(length / unit.length)).slice(0, length - end.length) + end;

/** Rising runs: each as long as the one before and one more. */
const rising = (character: string) => (length: number) => {
  let text = "";
  for (let run = 1; text.length < length; run += 1) text += `${character.repeat(run)}x`;
  return text.slice(0, length);
};

const nested =
  (open: string, close: string) =>
  (length: number): string =>
    open.repeat(Math.floor(length / 2 / open.length)) + close.repeat(Math.floor(length / 2 / close.length));

const units = [
  ..."[](){}<>\\/\"'`~*_-+#!.,:;@%^$|?= \t\n\r\0aA0".split(""),
  "{{",
  "{%",
  "{{ x",
  "{% if x %}",
  "{{ x | default: ",
  "[[x](",
  "![",
  "[a](",
  "](",
  "**a",
  "__a",
  "~~a ",
  "`a",
  " *a",
  " _a",
  "> ",
  "- ",
  "- [ ] ",
  "1. ",
  "# ",
  "#\n",
  "\n\n",
  "\r\n",
  " \n",
  "a ",
  "a.",
  "a-",
  "a/",
  "..",
  "//",
  "@{",
  "%41",
  "%",
  "\\\\",
  '\\"',
  '"a',
  "\u2028",
  "\u202e",
  "💥",
  "\ud800",
  "e\u0301",
  "\u00a0",
  "ﬃ",
  "\ufdfa",
  "ß",
  "aGVsbG8h",
  "aGVsbG8haGVsbG8haGVsbG8haGVsbG8haGVsbG8haGVsbG8haGVsbG8haGVs\n",
  "-----BEGIN KEY-----\n",
  "x".repeat(39),
  "$(",
  "<code",
  "<code>",
  "<pre\n",
  "</code ",
  "<!--",
  "<!-- offstage",
  "-->",
  "`<!--",
  "` `` ",
  "```\n",
  "@offstage",
  "@offstage-",
  "@offstage !a",
  "\n> `",
  "> > ",
  "    a\n\n",
  "<br>offstage comment=",
  "_git/",
];
const shapes = [
  ...units.flatMap((unit) => [repeated(unit), repeated(unit, "!")]),
  ...["`", "*", "~", "#", " ", "[", "-", "."].map(rising),
  ...[
    ["[", "]"],
    ["(", ")"],
    ["{", "}"],
    ["{{", "}}"],
    ["<", ">"],
    ["[", "](a)"],
    ["**", "**"],
  ].map(([open = "", close = ""]) => nested(open, close)),
];

test("every exported function of the folder that takes a text is in the list", async () => {
  const { acts, unknown } = await readExports();
  expect(unknown).toEqual([]);
  const found = new Set(acts.map(([name]) => name));
  expect(Object.keys(calls).filter((name) => !found.has(name))).toEqual([]);
});

test("a text ten times as long takes no more than ten times as long, whatever it is made of", async () => {
  const { acts } = await readExports();
  const complaints: (string | null)[] = [];
  for (const [name, act] of acts) {
    for (const shape of shapes) {
      const found = complaint(name, act, shape);
      if (found === null) continue;
      complaints.push(found);
      // A case that takes seconds for one text does so for similar ones.
      break;
    }
  }
  expect(complaints.filter((found) => found !== null)).toEqual([]);
});

test("and whatever is repeated in it", async () => {
  const { acts } = await readExports();
  const unit = fc.string({
    unit: fc.constantFrom(...'[](){}\\"`*_~#>-+.!:/@% \n\ta0'.split(""), "{{", "}}"),
    minLength: 1,
    maxLength: 6,
  });
  fc.assert(
    fc.property(unit, fc.constantFrom("", "!", "]", "\n"), (text, end) => {
      const found = acts.map(([name, act]) => complaint(name, act, repeated(text, end)));
      expect(found.filter((one) => one !== null)).toEqual([]);
    }),
    { numRuns: 15, endOnFailure: true },
  );
});

test("a function that goes back and forth over a text is found", () => {
  // In half of the text, which is a quarter of the work: bad enough, and no machine is busy with it for a minute.
  const backAndForth: Act = (text) => /\[([^\]]*)\]\(/u.test(text.slice(text.length / 2));
  expect(complaint("it", backAndForth, repeated("["))).toMatch(/^it took \d+ ms/u);
});
