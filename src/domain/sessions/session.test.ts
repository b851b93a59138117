import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { isBranchName } from "../fields/git-ref.ts";
import { createSessionSchema, defaultBranchName, firstMessage, sessionDetailSchema, titleOf } from "./session.ts";

describe("a session's title", () => {
  it.each([
    ["Fix the build", "Fix the build"],
    ["# Fix the build\n\nIt is red.", "Fix the build"],
    ["\n\n- [ ] **Fix** `npm test`\n", "Fix npm test"],
    ["> see [the issue](https://example.com/1)", "see the issue"],
    ["```ts\nconst x = 1;\n```", "const x = 1;"],
    ["---\n***\nAfter the rules", "After the rules"],
    ["🎉", "🎉"],
    ["!\n?", "!"],
    ["\u200b\u200b\nWords", "Words"],
    ["\u200b\u2060", "Untitled session"],
    ["\u202eFix\u2066 \u001b[31mthe build\u0000", "Fix [31mthe build"],
    ["👩\u200d💻 pairs", "👩\u200d💻 pairs"],
  ])("of %j is %j", (prompt, title) => {
    expect(titleOf(prompt)).toBe(title);
  });

  it("is cut at a word to at most 80 characters", () => {
    const title = titleOf("word ".repeat(40));
    expect(title.length).toBeLessThanOrEqual(80);
    expect(title.endsWith("word")).toBe(true);
  });

  it("is looked for in the beginning of a prompt, and read of the beginning of a line", () => {
    expect(titleOf(`${"-\n".repeat(9_000)}Words`)).toBe("Words");
    expect(titleOf(`${"-\n".repeat(90_000)}Words`).startsWith("-")).toBe(true);
    expect(titleOf(`${"[".repeat(2_000)}Words`)).not.toContain("Words");
  });

  it("of any text is one well-formed line of 1 to 80 characters", () => {
    fc.assert(
      fc.property(fc.string({ unit: "grapheme", minLength: 1 }), (prompt) => {
        const title = titleOf(prompt);
        expect(title.length).toBeLessThanOrEqual(80);
        expect(title.length).toBeGreaterThan(0);
        expect(title.isWellFormed()).toBe(true);
        expect(title).not.toMatch(/[\r\n]/u);
      }),
    );
  });
});

describe("the default branch name", () => {
  it("is of the title and the last eight digits of the id, which are random", () => {
    expect(defaultBranchName("Größe prüfen: 100 %!", "0198c2f4-0000-7000-8000-00005d9e31aa")).toBe(
      "offstage/gro-e-prufen-100-5d9e31aa",
    );
    expect(defaultBranchName("表", "0198c2f4-0000-7000-8000-00005d9e31aa")).toBe("offstage/session-5d9e31aa");
  });

  it("is one that git takes, whatever the title", () => {
    fc.assert(
      fc.property(fc.string({ unit: "grapheme" }), fc.uuid(), (title, id) => {
        expect(isBranchName(defaultBranchName(title, id))).toBe(true);
      }),
    );
  });
});

describe("the body of session creation", () => {
  const problems = (body: unknown): string => {
    const parsed = createSessionSchema.safeParse(body);
    return parsed.success
      ? ""
      : parsed.error.issues.map(({ path, message }) => `${path.join(".")} ${message}`).join("; ");
  };

  it.each([
    [{ prompt: "x" }],
    [{ description: "x" }],
    [{ prompt: "x", targetBranch: null, branchName: null, queueRightAway: null }],
    [{ prompt: "x", unknown: 1 }],
    [{ prompt: "x".repeat(100_000) }],
    [{ prompt: "x", agent: "custom:a:b/c" }],
  ])("may be %j", (body) => {
    expect(problems(body)).toBe("");
  });

  it.each([
    [{}, "prompt or description is required"],
    [{ prompt: "" }, "prompt must not be empty"],
    [{ prompt: "x\0" }, "prompt must not contain NUL"],
    [{ prompt: "\ud800" }, "prompt must be valid Unicode"],
    [{ prompt: "x".repeat(100_001) }, "prompt must be at most 100,000 characters"],
    [{ prompt: null }, "prompt"],
    [{ prompt: "x", agent: "claude" }, "agent must be written <provider>:<model>"],
    [{ prompt: "x", branchName: "a..b" }, "branchName"],
    [{ prompt: "x", branchName: "a", targetBranch: "a" }, "branchName must differ from targetBranch"],
  ])("may not be %j", (body, problem) => {
    expect(problems(body)).toContain(problem);
  });

  it("gives the agent the prompt first and the description as further detail", () => {
    expect(firstMessage({ prompt: "Do it", description: "like this" })).toBe("Do it\n\nlike this");
    expect(firstMessage({ description: "like this" })).toBe("like this");
  });
});

it("is read as a node of the version before shows it, which the page may ask during an upgrade", () => {
  const id = "0198c1f0-0000-7000-8000-000000000001";
  const at = "2026-01-01T00:00:00.000Z";
  const pull = {
    repositoryId: id,
    number: 1,
    url: "https://h/a/b/pull/1",
    head: "work",
    target: "main",
    state: "open",
  };
  const before = {
    id,
    title: "t",
    description: "d",
    status: "completed",
    createdAt: at,
    updatedAt: at,
    organizationId: id,
    htmlUrl: "https://h/s",
    prompt: "p",
    agent: null,
    targetBranch: null,
    branchName: "work",
    priority: 5,
    queuePosition: null,
    estimatedWaitSeconds: null,
    queuedAt: at,
    startedAt: at,
    finishedAt: at,
    failure: null,
    summary: "s",
    automationId: null,
    jobId: null,
    sandboxed: true,
    budgetUsd: null,
    spentUsd: 0,
    waiting: null,
    eventsRemovedThrough: 0,
    repositories: [],
    pullRequests: [pull],
  };
  const read = sessionDetailSchema.parse(before);
  expect(read).toMatchObject({ requestedBy: null, retry: null, pullRequests: [{ ...pull, mergeable: null }] });
});
