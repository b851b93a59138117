import type { NewEvent } from "../../../src/domain/sessions/event.ts";

const started: NewEvent = {
  type: "agent.started",
  data: { provider: "opencode", model: "anthropic/claude-sonnet-4-6", resumed: false },
};

export function message(part: string, text: string): NewEvent {
  return { type: "agent.message", data: { part, text } };
}

export function thought(part: string, text: string): NewEvent {
  return { type: "agent.thought", data: { part, text } };
}

type Tool = Extract<NewEvent, { type: "agent.tool" }>["data"];

export function tool(toolCallId: string, given: Partial<Tool> & Pick<Tool, "title">): ToolEvent {
  const data: Tool = { toolCallId, kind: "execute", status: "completed", locations: [], content: [], ...given };
  return { type: "agent.tool", data };
}

export function printed(output: string): Tool["content"] {
  return [{ type: "text", text: output }];
}

/** The beginning of every session: asked, prepared, started. */
export function beginning(prompt: string): NewEvent[] {
  return [
    { type: "session.created", data: { title: prompt.slice(0, 80) } },
    { type: "message.user", data: { messageId: crypto.randomUUID(), text: prompt, from: null } },
    { type: "session.status", data: { from: "queued", to: "running" } },
    { type: "step.started", data: { step: "prepare", attempt: 1 } },
    { type: "step.completed", data: { step: "prepare", durationMs: 1_840 } },
    { type: "step.started", data: { step: "setup", attempt: 1 } },
    {
      type: "setup.output",
      data: {
        repositoryId: "r",
        repository: "acme/shop",
        text: "$ npm ci\nadded 412 packages in 9s\n",
        state: "completed",
      },
    },
    { type: "step.completed", data: { step: "setup", durationMs: 9_410 } },
    { type: "step.started", data: { step: "agent", attempt: 1 } },
    started,
  ];
}

/** A turn as agents take them: a plan, thoughts, reading, editing, running what fails and then passes. */
export function work(): NewEvent[] {
  const plan = (done: number): NewEvent => ({
    type: "agent.plan",
    data: {
      entries: [
        "Find where the checkout adds up prices",
        "Round to cents once, at the end",
        "Cover it with tests, in every currency the shop takes",
        "Say so in the changelog",
      ].map((entry, index) => ({
        text: entry,
        status: index < done ? "completed" : index === done ? "in_progress" : "pending",
      })),
    },
  });
  const events: NewEvent[] = [
    plan(0),
    thought("t1", "The totals differ by a cent when several items are discounted. I should look at how "),
    thought("t1", "the cart adds them up before I change anything."),
    message("m1", "I'll look at how the cart **adds up** its prices first.\n"),
    tool("c1", { title: "src/cart/total.ts", kind: "read", locations: [{ path: "src/cart/total.ts", line: 12 }] }),
    tool("c2", { title: "src/cart/discount.ts", kind: "read", locations: [{ path: "src/cart/discount.ts" }] }),
    tool("c3", {
      title: "round\\( in src",
      kind: "search",
      content: printed("src/cart/total.ts:31\nsrc/cart/discount.ts:8\n"),
    }),
    tool("c4", { title: "test/cart/total.test.ts", kind: "read" }),
    plan(1),
    message(
      "m2",
      "Both `total` and `discount` round. Rounding twice loses the cent:\n\n```ts\nround(round(price * 0.9) * quantity)\n```\n\n| items | before | after |\n|---|---|---|\n| 3 × 9.99 | 26.98 | 26.97 |\n",
    ),
    tool("c5", {
      title: "src/cart/total.ts",
      kind: "edit",
      locations: [{ path: "src/cart/total.ts", line: 31 }],
      content: [
        {
          type: "diff",
          path: "src/cart/total.ts",
          oldText:
            "export function total(items: readonly Item[]): number {\n  return items.reduce((sum, item) => sum + round(item.price * item.quantity), 0);\n}\n",
          newText:
            "/** What a cart costs, in cents: rounded once, at the end. */\nexport function total(items: readonly Item[]): number {\n  return Math.round(items.reduce((sum, item) => sum + item.price * item.quantity, 0));\n}\n",
        },
      ],
    }),
    plan(2),
    tool("c6", {
      title: "npm test -- cart",
      kind: "execute",
      status: "failed",
      input: JSON.stringify({ command: "npm test -- cart" }),
      content: printed(
        "\u001b[1m RUN \u001b[22m v5.1.1\n\n \u001b[31m❯\u001b[39m test/cart/total.test.ts \u001b[2m(4 tests | \u001b[22m\u001b[31m1 failed\u001b[39m\u001b[2m)\u001b[22m 12ms\n   \u001b[32m✓\u001b[39m adds up one item\n   \u001b[32m✓\u001b[39m adds up nothing\n   \u001b[31m×\u001b[39m keeps the cent of three discounted items\n     \u001b[31m→ expected 2698 to be 2697\u001b[39m\n",
      ),
    }),
    thought("t2", "The fixture has the wrong total: it was computed with the old rounding."),
    tool("c7", {
      title: "test/cart/total.test.ts",
      kind: "edit",
      content: [
        {
          type: "diff",
          path: "test/cart/total.test.ts",
          oldText: "  expect(total(three)).toBe(2698);\n",
          newText: "  expect(total(three)).toBe(2697);\n",
        },
      ],
    }),
    tool("c8", {
      title: "npm test -- cart",
      kind: "execute",
      content: printed(
        "\u001b[32m✓\u001b[39m test/cart/total.test.ts (4 tests) 9ms\n\n Tests  \u001b[32m4 passed\u001b[39m (4)\n",
      ),
    }),
    { type: "egress.refused", data: { host: "rates.example.com", port: 443, reason: "not allowed" } },
    {
      type: "model.usage",
      data: {
        provider: "anthropic",
        model: "claude-sonnet-4-6",
        inputTokens: 8_412,
        outputTokens: 2_310,
        cacheReadTokens: 64_120,
        cacheWriteTokens: 4_002,
        reasoningTokens: 0,
        costUsd: 0.412,
      },
    },
    { type: "agent.usage", data: { contextUsed: 76_000, contextSize: 200_000 } },
    plan(3),
  ];
  return events.flatMap<NewEvent>((event) => (event.type === "agent.tool" ? [begun(event), event] : [event]));
}

type ToolEvent = Extract<NewEvent, { type: "agent.tool" }>;

/** The event of a call when it begins. */
function begun({ type, data }: ToolEvent): ToolEvent {
  return { type, data: { ...data, status: "in_progress", content: [] } };
}

/** What a sandbox uses while it builds and tests. */
export function used(count: number): NewEvent[] {
  return Array.from({ length: count }, (_, index) => ({
    type: "sandbox.usage",
    data: {
      memoryBytes: Math.round(3e8 + 9e8 * Math.abs(Math.sin(index / 4)) + 1e7 * index),
      memoryLimitBytes: 4e9,
      cores: Math.max(0.05, 1.6 * Math.sin(index / 3) ** 2),
    },
  }));
}

/** The end of a session whose work is pushed. */
export function ending(number: number): NewEvent[] {
  return [
    message("m9", "The cart rounds **once** now, and a test keeps it so. `npm test` passes."),
    { type: "agent.turn", data: { stopReason: "end_turn", durationMs: 81_000 } },
    { type: "step.completed", data: { step: "agent", durationMs: 81_400 } },
    { type: "step.started", data: { step: "commit", attempt: 1 } },
    {
      type: "workspace.commit",
      data: {
        repositoryId: crypto.randomUUID(),
        sha: "3f2c9a1be77d",
        subject: "Round the cart's total once",
        by: "offstage",
      },
    },
    { type: "step.completed", data: { step: "commit", durationMs: 620 } },
    { type: "step.started", data: { step: "push", attempt: 1 } },
    {
      type: "branch.pushed",
      data: { repositoryId: crypto.randomUUID(), branch: "offstage/round-once", sha: "3f2c9a1be77d" },
    },
    { type: "step.completed", data: { step: "push", durationMs: 1_130 } },
    { type: "step.started", data: { step: "pullRequest", attempt: 1 } },
    {
      type: "pullRequest.opened",
      data: {
        repositoryId: crypto.randomUUID(),
        number,
        url: `https://github.com/acme/shop/pull/${number}`,
        created: true,
      },
    },
    { type: "step.completed", data: { step: "pullRequest", durationMs: 890 } },
    { type: "session.status", data: { from: "running", to: "completed" } },
  ];
}

/** As many events as a long session has: texts in pieces, tool calls that run and end, thoughts. */
export function manyEvents(count: number): NewEvent[] {
  const events: NewEvent[] = beginning("Work for a long time");
  for (let turn = 0; events.length < count; turn += 1) {
    const id = String(turn);
    events.push(
      thought(`t${id}`, `Step ${id}: what is left to do here? `),
      message(`m${id}`, `Looking at part ${id}: `),
      message(`m${id}`, `it has **${turn * 7}** lines, and \`file-${id}.ts\` among them.`),
      tool(`r${id}`, { title: `src/part-${id}/file-${id}.ts`, kind: "read" }),
      tool(`e${id}`, { title: `src/part-${id}/file-${id}.ts`, kind: "edit", status: "in_progress" }),
      tool(`e${id}`, {
        title: `src/part-${id}/file-${id}.ts`,
        kind: "edit",
        content: [
          {
            type: "diff",
            path: `src/part-${id}/file-${id}.ts`,
            oldText: `const a = ${id};\n`,
            newText: `const a = ${turn + 1};\n`,
          },
        ],
      }),
      tool(`x${id}`, { title: `npm test -- part-${id}`, status: "in_progress" }),
      tool(`x${id}`, {
        title: `npm test -- part-${id}`,
        content: printed(`\u001b[32m✓\u001b[39m part-${id}\n`.repeat(5)),
      }),
    );
  }
  return [...events.slice(0, count - 14), ...ending(99)].slice(0, count);
}

/** The changes of many files as git prints them. */
export function manyFiles(count: number): string {
  return Array.from({ length: count }, (_, index) => fileDiff(`src/module-${index % 20}/file-${index}.ts`, index)).join(
    "",
  );
}

function fileDiff(path: string, index: number): string {
  return [
    `diff --git a/${path} b/${path}`,
    `index 1111111..2222222 100644`,
    `--- a/${path}`,
    `+++ b/${path}`,
    `@@ -1,6 +1,7 @@`,
    ` import { value } from "./value.ts";`,
    ` `,
    `-export const answer${index} = value(${index});`,
    `+/** What is asked for. */`,
    `+export const answer${index} = value(${index + 1});`,
    ` `,
    ` export function question(): string {`,
    `   return "what is ${index}?";`,
    ``,
  ].join("\n");
}

/** The changes of a few files: of code, of text from right to left, one that is new, one that is gone, one that is renamed. */
export const fewFiles = [
  `diff --git a/src/cart/total.ts b/src/cart/total.ts
index 1111111..2222222 100644
--- a/src/cart/total.ts
+++ b/src/cart/total.ts
@@ -28,9 +28,10 @@ interface Item {
   readonly quantity: number;
 }
 
-/** What a cart costs. */
+/** What a cart costs, in cents: rounded once, at the end. */
 export function total(items: readonly Item[]): number {
-  return items.reduce((sum, item) => sum + round(item.price * item.quantity), 0);
+  const exact = items.reduce((sum, item) => sum + item.price * item.quantity, 0);
+  return Math.round(exact);
 }
 
 /** What is taken off. */
`,
  `diff --git a/docs/he/README.md b/docs/he/README.md
new file mode 100644
index 0000000..3333333
--- /dev/null
+++ b/docs/he/README.md
@@ -0,0 +1,3 @@
+# עגלת הקניות
+
+הסכום מעוגל פעם אחת בלבד, בסוף 🛒
`,
  `diff --git a/src/cart/round.ts b/src/cart/round.ts
deleted file mode 100644
index 4444444..0000000
--- a/src/cart/round.ts
+++ /dev/null
@@ -1,3 +0,0 @@
-export function round(value: number): number {
-  return Math.round(value * 100) / 100;
-}
`,
  `diff --git a/assets/a-very-long-name-of-a-picture-that-somebody-gave-it.png b/assets/cart.png
similarity index 100%
rename from assets/a-very-long-name-of-a-picture-that-somebody-gave-it.png
rename to assets/cart.png
`,
].join("");
