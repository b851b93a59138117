import { describe, expect, it } from "vitest";
import { newConversation, type Conversation, type FailedCheck } from "./conversation.ts";
import { factsOf, limits, sha } from "../../../test/conversations/pure-facts.ts";
import { checked } from "./rounds.ts";

/** Names and ids of what counts as failed after some checks of one commit. */
function failedAfter(
  ...ended: readonly (readonly [outcome: "failed" | "passed", kind: string, name: string, id: string, url?: string])[]
) {
  let conversation: Conversation = newConversation;
  for (const [outcome, kind, name, id, url = null] of ended) {
    const check: FailedCheck = { kind, name, id, url };
    ({ conversation } = checked(
      conversation,
      { type: "checks", outcome, sha, isOfPullRequest: false, check },
      factsOf(),
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
  it("that are one run count once, if a job's status names it by its address, and the run itself by its id", () => {
    const path = "/acme/shop/actions/runs/12";
    const job = ["failed", "workflow", "CI / test", path, `${path}/jobs/1`] as const;
    const run = (outcome: "failed" | "passed") =>
      [outcome, "workflow", "CI", "500", `https://gitea.example${path}`] as const;
    expect(failedAfter(job, run("passed"))).toEqual([]);
    expect(failedAfter(job, run("failed"))).toEqual(["CI 500"]);
    expect(failedAfter(run("failed"), job)).toEqual([`CI / test ${path}`]);
    expect(failedAfter(job, ["passed", "workflow", "CI", "501", `https://gitea.example${path}3`])).toHaveLength(1);
  });
  it("that are statuses count by their name, whatever their ids", () => {
    expect(failedAfter(["failed", "status", "ci", "1"], ["passed", "status", "ci", "2"])).toEqual([]);
    expect(failedAfter(["failed", "status", "ci", "1"], ["failed", "status", "ci", "2"])).toEqual(["ci 2"]);
    expect(failedAfter(["failed", "status", "ci", "1"], ["passed", "status", "lint", "2"])).toEqual(["ci 1"]);
  });
});
