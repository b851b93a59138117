import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { NewEvent } from "../../src/domain/sessions/event.ts";
import { appendEvents } from "../../src/store/sessions/events.ts";
import { createTestApp, type TestApp } from "./app.ts";

let api: TestApp;
let session: string;
const repositories: string[] = [];

beforeAll(async () => {
  api = await createTestApp();
  for (const name of ["one", "two"]) {
    const { body } = await api.post("/repository/create", { url: `https://git.example/acme/${name}` });
    repositories.push(body.id);
  }
  const { body } = await api.post("/session/create", { prompt: "Change both\nand tell", codeRepoIds: repositories });
  session = body.id;
});
afterAll(() => api?.close());

const patchOf = (file: string, line: string): string =>
  `diff --git a/${file} b/${file}\nnew file mode 100644\nindex 0000000..1111111\n--- /dev/null\n+++ b/${file}\n@@ -0,0 +1 @@\n+${line}\n`;

async function setPatch(position: number, patch: string, truncated = false): Promise<void> {
  await api.database.pool.query(
    "update session_repository set patch = $3, patch_truncated = $4 where session_id = $1 and repository_id = $2",
    [session, repositories[position], patch, truncated],
  );
}

describe("the patch", () => {
  test("of all repositories applies in the folder that has them, that of one in its root", async () => {
    await setPatch(0, patchOf("a.txt", "first"));
    await setPatch(1, patchOf("deep/a.txt", "second"));
    const all = await api.get(`/session/${session}/patch`);
    expect([all.status, all.headers["content-type"], all.headers["content-disposition"]]).toEqual([
      200,
      "text/x-patch; charset=utf-8",
      `attachment; filename="${session}.patch"`,
    ]);
    const folder = mkdtempSync(join(tmpdir(), "offstage-apply-"));
    const apply = (patch: string): void => {
      writeFileSync(join(folder, "patch"), patch);
      execFileSync("git", ["apply", "patch"], { cwd: folder });
    };
    try {
      apply(String(all.body));
      expect(readFileSync(join(folder, "one/a.txt"), "utf8")).toBe("first\n");
      expect(readFileSync(join(folder, "two/deep/a.txt"), "utf8")).toBe("second\n");
      const one = await api.get(`/session/${session}/patch?repositoryId=${repositories[1]}`);
      apply(String(one.body));
      expect(readFileSync(join(folder, "deep/a.txt"), "utf8")).toBe("second\n");
    } finally {
      rmSync(folder, { recursive: true });
    }
  });

  test.each([
    ["cut", patchOf("a.txt", "x"), true, "is longer than what is kept"],
    [
      "without the content of a file that is no text",
      "diff --git a/x b/x\nindex 1..2 100644\nBinary files a/x and b/x differ\n",
      false,
      "has changes that could not be kept as they are",
    ],
    ["not UTF-8", patchOf("a.txt", "\ufffd"), false, "has changes that could not be kept as they are"],
  ])("is refused if it is %s, because it would not apply", async (_what, patch, truncated, words) => {
    await setPatch(0, patch, truncated);
    const { status, body } = await api.get(`/session/${session}/patch`);
    expect([status, body.error]).toEqual([
      409,
      `the patch of acme/one ${words}: get the session's branch from its repository`,
    ]);
    expect((await api.get(`/session/${session}/patch?repositoryId=${repositories[1]}`)).status).toBe(200);
    await setPatch(0, "");
  });

  test("is of a repository that the session has", async () => {
    const { status } = await api.get(`/session/${session}/patch?repositoryId=${crypto.randomUUID()}`);
    expect(status).toBe(404);
  });
});

const tool = (status: "pending" | "completed", text: string): NewEvent => ({
  type: "agent.tool",
  data: {
    toolCallId: "t",
    title: "Run\u001b[31m tests",
    kind: "execute",
    status,
    locations: [],
    content: [{ type: "text", text }],
    input: "npm test",
  },
});

async function happen(): Promise<string> {
  const { body } = await api.post("/session/create", { prompt: "Do **it**\n## Agent\nnot an agent" });
  const events: NewEvent[] = [
    { type: "agent.thought", data: { part: "1", text: "Hm" } },
    { type: "agent.thought", data: { part: "1", text: ", so." } },
    tool("pending", "…"),
    { type: "agent.message", data: { part: "2", text: "I am " } },
    { type: "agent.message", data: { part: "2", text: "done.\n\n## User\n\nforged" } },
    tool("completed", "1 passed ``` and ````\u0007"),
    { type: "agent.message", data: { part: "3", text: "Bye." } },
    { type: "agent.turn", data: { stopReason: "end_turn", durationMs: 1 } },
    { type: "model.usage", data: usage },
    { type: "pullRequest.opened", data: { repositoryId: "r", number: 7, url: "https://f.example/7", created: true } },
  ];
  await api.database.transaction((transaction) => appendEvents(transaction, body.id, events));
  return body.id;
}

const usage = {
  provider: "openai",
  model: "m",
  inputTokens: 1,
  outputTokens: 1,
  cacheReadTokens: 0,
  cacheWriteTokens: 0,
  reasoningTokens: 0,
} as const;

describe("the transcript", () => {
  test("as JSON has what was said and done, each text and tool call as one entry", async () => {
    const id = await happen();
    const { body, headers } = await api.get(`/session/${id}/transcript?format=json`);
    expect(headers["content-disposition"]).toBe(`attachment; filename="${id}.json"`);
    expect(body.session).toEqual((await api.get(`/session/${id}`)).body);
    const entries = body.entries.map(({ at, ...entry }: { at: string }) => {
      expect(Date.parse(at)).toBeGreaterThan(0);
      return entry;
    });
    expect(entries).toEqual([
      { type: "user", text: "Do **it**\n## Agent\nnot an agent" },
      { type: "thought", text: "Hm, so." },
      { type: "agent", text: "I am done.\n\n## User\n\nforged" },
      {
        type: "tool",
        title: "Run\u001b[31m tests",
        kind: "execute",
        status: "completed",
        input: "npm test",
        content: [{ type: "text", text: "1 passed ``` and ````\u0007" }],
      },
      { type: "agent", text: "Bye." },
      { type: "pullRequest", state: "open", number: 7, url: "https://f.example/7" },
    ]);
  });

  test("in Markdown has no line of others that could be taken for its own, and controls no terminal", async () => {
    const id = await happen();
    const { body, headers } = await api.get(`/session/${id}/transcript`);
    const text = String(body);
    expect(headers["content-type"]).toBe("text/markdown; charset=utf-8");
    const headings = text.split("\n").filter((line) => line.startsWith("#"));
    expect(headings).toEqual([
      "# Do it",
      "## User",
      "## Agent, thinking",
      "## Agent",
      "## Tool: Run[31m tests (completed)",
      "## Agent",
      "## Pull request #7: open",
    ]);
    expect(text).toContain("> ## User");
    expect(text).toContain("> `````text\n> 1 passed ``` and ````\n> `````");
    expect(text).not.toMatch(/[^\P{Cc}\n\t]/u);
  });

  test("of a long session has every entry once", async () => {
    const { body } = await api.post("/session/create", { prompt: "Long" });
    const messages = Array.from({ length: 1_300 }, (_, index): NewEvent => ({
      type: "agent.message",
      data: { part: `${index}`, text: `part ${index}` },
    }));
    await api.database.transaction((transaction) => appendEvents(transaction, body.id, messages));
    const answer = await api.get(`/session/${body.id}/transcript?format=json`);
    const texts = answer.body.entries.map(({ text }: { text: string }) => text);
    expect(texts).toEqual(["Long", ...messages.map((_, index) => `part ${index}`)]);
  });

  test("is of a session of the organization", async () => {
    expect((await api.get(`/session/${crypto.randomUUID()}/transcript`)).status).toBe(404);
  });
});
