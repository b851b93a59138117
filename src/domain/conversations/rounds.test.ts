import { describe, expect, it } from "vitest";
import { newConversation, type Conversation, type ConversationLimits, type FailedCheck } from "./conversation.ts";
import type { Facts } from "./facts.ts";
import { checked } from "./rounds.ts";

const sha = "a".repeat(40);
const limits: ConversationLimits = {
  mention: "offstage",
  turns: 50,
  botTurns: 5,
  sessions: 5,
  checkRounds: 3,
  conflictRounds: 3,
  usd: 50,
  bots: [],
  resolvesThreads: false,
  checksMs: 0,
  reviewMs: 0,
};
const facts: Facts = {
  now: 0,
  newId: () => "id",
  subject: { kind: "pullRequest", number: 7 },
  isTaken: false,
  isOwn: false,
  mayWrite: null,
  isOwnCommit: false,
  pullRequest: "open",
  session: { status: "completed", pushedSha: sha, pushingSha: sha, isOver: false },
  spentUsd: 0,
  isMacro: () => false,
  logs: new Map(),
  ends: new Map(),
};

/** Names and ids of what counts as failed after some checks of one commit. */
function failedAfter(
  ...told: readonly (readonly [outcome: "failed" | "passed", kind: string, name: string, id: string])[]
) {
  let conversation: Conversation = newConversation;
  for (const [outcome, kind, name, id] of told) {
    const check: FailedCheck = { kind, name, id, url: null };
    ({ conversation } = checked(
      conversation,
      { type: "checks", outcome, sha, isOfPullRequest: false, check },
      facts,
      limits,
    ));
  }
  return conversation.checks?.failed.map(({ name, id }) => `${name} ${id}`) ?? [];
}

describe("checks of one commit", () => {
  it("that have one name and are several runs don't hide each other", () => {
    expect(failedAfter(["failed", "workflow", "CI", "1"], ["passed", "workflow", "CI", "2"])).toEqual(["CI 1"]);
    expect(failedAfter(["failed", "workflow", "CI", "1"], ["failed", "workflow", "CI", "2"])).toEqual(["CI 1", "CI 2"]);
  });
  it("that are run again and pass are no failure any more", () => {
    expect(failedAfter(["failed", "workflow", "CI", "1"], ["passed", "workflow", "CI", "1"])).toEqual([]);
    expect(failedAfter(["failed", "pipeline", "", "1"], ["passed", "check suite", "", "1"])).toEqual([" 1"]);
  });
  it("that are statuses count by their name, whatever their ids", () => {
    expect(failedAfter(["failed", "status", "ci", "1"], ["passed", "status", "ci", "2"])).toEqual([]);
    expect(failedAfter(["failed", "status", "ci", "1"], ["failed", "status", "ci", "2"])).toEqual(["ci 2"]);
    expect(failedAfter(["failed", "status", "ci", "1"], ["passed", "status", "lint", "2"])).toEqual(["ci 1"]);
  });
});
