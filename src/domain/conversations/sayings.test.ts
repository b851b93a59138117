import { describe, expect, it } from "vitest";
import { factsOf, limits, sha } from "../../../test/conversations/pure-facts.ts";
import type { ForgeEvent } from "../automations/forge-event.ts";
import { newConversation, type Conversation } from "./conversation.ts";
import { decide } from "./decide.ts";
import type { Effect, ConversationFacts } from "./facts.ts";
import { happeningOf } from "./happening.ts";
import { steeringHintOf } from "./steering-hint.ts";

const ann = { id: "1", login: "ann", isBot: false };
const bob = { id: "2", login: "bob", isBot: false };
const pullRequest: NonNullable<ForgeEvent["pullRequest"]> = {
  number: 7,
  title: "Work",
  body: "",
  url: "https://git.example.com/7",
  state: "open",
  draft: false,
  head: { branch: "work", sha, repositoryUrl: null },
  target: "main",
  labels: [],
  author: null,
};
let comments = 0;

function written(body: string, author: NonNullable<ForgeEvent["actor"]>, threadId: string) {
  comments += 1;
  return { id: String(comments), body, url: null, author, path: null, line: null, hunk: null, threadId };
}

/** A conversation on a pull request of a forge, by what is delivered. */
function talk(forge: ForgeEvent["forge"]) {
  let conversation: Conversation = newConversation;
  const effects: Effect[] = [];
  const deliver = (event: Partial<ForgeEvent>, now: number): ForgeEvent => {
    const whole: ForgeEvent = {
      name: "pullRequest.commented",
      forge,
      repository: null,
      actor: null,
      pullRequest,
      payload: {},
      ...event,
    };
    const about = happeningOf(whole);
    if (about === null) throw new Error("it is no happening");
    const decided = decide(conversation, about.happening, factsOf({ now }), limits);
    conversation = decided.conversation;
    effects.push(...decided.effects);
    return whole;
  };
  return {
    effects,
    comment(body: string, { by = ann, now = 0, threadId = "t", confidential = false } = {}) {
      return deliver({ comment: written(body, by, threadId), confidential }, now);
    },
    lines(body: string, on: Pick<NonNullable<ForgeEvent["comment"]>, "path" | "line" | "firstLine" | "reviewId">) {
      return deliver({ comment: { ...written(body, ann, "t"), ...on } }, 0);
    },
    vote: (body = "", now = 0, id: string | null = null) =>
      deliver(
        {
          name: "pullRequest.reviewSubmitted",
          review: { id, state: "changesRequested", body, url: null, author: ann },
        },
        now,
      ),
    dismiss: (id: string | null = null, by = ann) =>
      deliver(
        { name: "pullRequest.reviewDismissed", review: { id, state: "dismissed", body: "", url: null, author: by } },
        0,
      ),
    /** Starts what is due. @returns the agent's prompt, and answers without the agent */
    tick(now = 0, ends: ConversationFacts["ends"] = new Map(), places: ConversationFacts["places"] = new Map()) {
      const before = effects.length;
      for (let round = 0; round < 5; round += 1) {
        const decided = decide(conversation, { type: "tick" }, factsOf({ now, ends, places }), limits);
        conversation = decided.conversation;
        effects.push(...decided.effects);
      }
      return effects.slice(before).flatMap((effect) => ("text" in effect ? [effect.text] : []));
    },
  };
}

const forges = ["gitlab", "bitbucket", "bitbucketDataCenter", "azure"] as const;

describe.each(forges)("a vote for changes on %s", (forge) => {
  it("takes the reviewer's comments, which may come before or after it, and no other person's", () => {
    const { comment, vote, tick, effects } = talk(forge);
    const event = comment("Rename the total.");
    expect(steeringHintOf(event, "offstage")).toMatchObject({ numbers: [7] });
    comment("I like it.", { by: bob });
    vote();
    comment("And test it.", { threadId: "u" });
    const [text, ...others] = tick();
    expect(others).toEqual([]);
    expect(text).toMatch(/asks for changes[^]*Rename the total\.[^]*And test it\./u);
    expect(text).not.toContain("I like it.");
    expect(text).not.toContain("The lines that it is about");
    expect(effects.filter(({ type }) => type === "react")).toHaveLength(2);
  });

  it("without any words starts nothing, which is said once", () => {
    const { comment, vote, tick } = talk(forge);
    comment("I like it.", { by: bob });
    vote();
    expect(tick()).toEqual([expect.stringContaining("nothing of what it says has come to me")]);
    vote("", 1);
    expect(tick(1)).toEqual([]);
  });

  it("whose reviewer has called Offstage in a comment starts nothing more", () => {
    const { comment, vote, tick, effects } = talk(forge);
    comment("@offstage rename the total");
    vote();
    expect(tick()).toEqual([]);
    expect(effects.filter(({ type }) => type === "followUp")).toHaveLength(1);
  });

  it("leaves out what the reviewer said days before", () => {
    const day = 24 * 60 * 60_000;
    const { comment, vote, tick } = talk(forge);
    comment("Thanks!");
    comment("Rename the total.", { now: 2 * day });
    vote("", 2 * day + 1_000);
    const [text] = tick(2 * day + 1_000);
    expect(text).toContain("Rename the total.");
    expect(text).not.toContain("Thanks!");
  });
});

describe("what is answered", () => {
  it("names where each thread is, for the case that the thread is gone, and which not everybody may read", () => {
    const { comment, tick, effects, lines } = talk("gitlab");
    lines("@offstage rename it", { path: "a.txt", line: 3 });
    tick();
    comment("@offstage look", { threadId: "c", confidential: true });
    comment("@offstage !none", { threadId: "d" });
    const runs = effects.flatMap((effect) => (effect.type === "followUp" ? [effect.runId] : []));
    expect(runs).toHaveLength(2);
    const end = {
      status: "failed",
      pushedSha: null,
      commitUrl: null,
      pullRequestUrl: null,
      summary: null,
      reason: "It broke.",
      sessionUrl: null,
    } as const;
    tick(0, new Map(runs.map((id) => [id, end])));
    const answers = effects.flatMap((effect) => (effect.type === "answer" ? [effect] : []));
    expect(answers.map(({ threadId, place, isConfidential }) => [threadId, place, isConfidential])).toEqual([
      ["d", null, false],
      ["t", "a.txt, line 3", false],
      ["c", null, true],
    ]);
  });
});

it("what a comment is on that its forge was asked for is in the agent's message, and in what is answered", () => {
  const { comment, vote, tick, effects } = talk("azure");
  const { comment: first } = comment("Rename it.");
  vote();
  const places = new Map([[`comment:${first?.id}`, { path: "a.txt", line: 3, hunk: "@@ -3 +3 @@\n-x\n+y" }]]);
  const [text] = tick(0, new Map(), places);
  expect(text).toMatch(/Rename it\.[^]*The lines that it is about[^]*a\.txt[^]*\+y/u);
  const [run] = effects.flatMap((effect) => (effect.type === "followUp" ? [effect.runId] : []));
  const end = {
    status: "failed",
    pushedSha: null,
    commitUrl: null,
    pullRequestUrl: null,
    summary: null,
    reason: "No.",
    sessionUrl: null,
  } as const;
  tick(0, new Map([[run ?? "", end]]));
  expect(effects.at(-1)).toMatchObject({ type: "answer", place: "a.txt, line 3" });
});

it.each(["@offstage drop these", "Drop these."])("several lines that %j is on are in the agent's message", (body) => {
  const { lines, vote, tick } = talk("github");
  lines(body, { path: "a.txt", firstLine: 3, line: 9, reviewId: "9" });
  vote("", 0, "9");
  expect(tick(1_000)[0]).toMatch(/"file": "a.txt",\n *"firstLine": 3,\n *"line": 9/u);
});

describe("the sign that something was seen", () => {
  const signs = (effects: readonly Effect[]) =>
    effects.flatMap((effect) =>
      effect.type === "react" ? [[effect.reviewId ?? effect.commentId ?? "pull request", effect.isMinor]] : [],
    );

  it("is at a review's own words, and at each of its comments, of which one can stand for all", () => {
    const { lines, vote, effects } = talk("github");
    const first = lines("Not so.", { path: "a.txt", line: 1, reviewId: "9" });
    vote("Better, please.", 0, "9");
    const second = lines("Nor so.", { path: "a.txt", line: 2, reviewId: "9" });
    expect(signs(effects)).toEqual([
      ["9", false],
      [first.comment?.id, true],
      [second.comment?.id, true],
    ]);
  });
  it("is at the pull request where reviews have no ids", () => {
    const { vote, effects } = talk("gitea");
    vote("Better, please.");
    expect(signs(effects)).toEqual([["pull request", false]]);
  });
  it("is at the first comment of a vote, and at the others if the forge has reactions", () => {
    const { comment, vote, effects } = talk("bitbucket");
    const [first, second] = [comment("Not so."), comment("Nor so.")];
    vote();
    const third = comment("And so.");
    expect(signs(effects)).toEqual([
      [first.comment?.id, false],
      [second.comment?.id, true],
      [third.comment?.id, true],
    ]);
  });
  it("is at the first comment that comes after its vote", () => {
    const { comment, vote, effects } = talk("bitbucket");
    vote();
    const [first, second] = [comment("Not so."), comment("Nor so.")];
    expect(signs(effects)).toEqual([
      [first.comment?.id, false],
      [second.comment?.id, true],
    ]);
  });
});

describe("a review that names its comments, or has words", () => {
  it.each(["github", "gitea"] as const)("takes no other comments on %s", (forge) => {
    const { comment, vote, tick } = talk(forge);
    expect(steeringHintOf(comment("I like it."), "offstage")).toBeNull();
    vote("Rename the total.", 0, forge === "github" ? "9" : null);
    const [text, ...others] = tick();
    expect(others).toEqual([]);
    expect(text).toContain("Rename the total.");
    expect(text).not.toContain("I like it.");
  });
});

describe("a review that is dismissed before its turn begins", () => {
  it.each([
    ["github", "9"],
    ["gitlab", null],
  ] as const)("starts nothing on %s, unless it calls Offstage by name", (forge, id) => {
    const on = { path: "a.txt", line: 1, ...(id !== null && { reviewId: id }) };
    const plain = talk(forge);
    plain.lines("Rename it.", on);
    plain.vote("", 0, id);
    plain.dismiss(id);
    expect(plain.tick()).toEqual([]);
    const called = talk(forge);
    called.lines("Rename it.", on);
    called.vote("@offstage please do", 0, id);
    called.dismiss(id);
    expect(called.tick()).toEqual([expect.stringContaining("Rename it.")]);
  });

  it("leaves another person's alone, and what a person says in their next one", () => {
    const { lines, vote, dismiss, tick } = talk("gitlab");
    lines("Rename it.", { path: "a.txt", line: 1 });
    vote();
    dismiss(null, { ...ann, id: "7" });
    expect(tick()).toHaveLength(1);
    lines("Rename that.", { path: "a.txt", line: 2 });
    vote();
    dismiss();
    vote();
    expect(tick()).toEqual([expect.stringContaining("Rename that.")]);
  });
});
