import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { Worker } from "node:worker_threads";
import fc from "fast-check";
import { afterAll, afterEach, expect, test } from "vitest";
import type { EventContext } from "../../src/domain/automations/automation.ts";
import type { Verdict } from "../../src/domain/automations/condition.ts";
import { InvalidInputError, TooManyRequestsError, UnavailableError } from "../../src/domain/errors/errors.ts";
import { allowedFilters } from "../../src/templates/liquid.ts";
import { startRenderer, type Renderer } from "../../src/templates/renderer.ts";
import { createTemplates, type Templates } from "../../src/templates/templates.ts";
import { waitFor } from "../wait-for.ts";

/** One process, so that what a template leaves behind meets the next. */
const started: Renderer[] = [];
const start = (): Renderer => {
  const renderer = startRenderer();
  started.push(renderer);
  return renderer;
};
const templates = createTemplates({ processes: 1, start });
const others: Templates[] = [];
const asker = { organizationId: "organization", id: "key" };
const render = (instructions: string, event: EventContext = {}): Promise<string> =>
  templates.render(instructions, event, asker);

afterEach(async () => {
  // Whatever was done before, the next small template is rendered.
  const next = await render("Fix {{ event.issue }}", { issue: 7 });
  if (next !== "Fix 7") throw new Error(`the next template was rendered as ${next}`);
  for (const each of others.splice(0)) await each.close();
});
afterAll(() => templates.close());

/** For what hangs alone: the processor's time is bounded by the product, a clock's by how busy the machine is. */
const generousMs = 60_000;

const numbers = Array.from({ length: 20_000 }, (_, index) => index);
/** What takes too much time, and what takes too much memory. */
const poisons: readonly (readonly [string, string, EventContext])[] = [
  ["nested loops", "{% for i in (1..99999) %}{% for j in (1..99999) %}{% endfor %}{% endfor %}x", {}],
  ["loops over the event", `${"{% for a in event.x %}".repeat(4)}${"{% endfor %}".repeat(4)}x`, { x: numbers }],
  [
    "printing a large event again and again",
    "{% for i in (1..9999) %}{% assign a = event | json %}{% endfor %}",
    { x: '"'.repeat(400_000) },
  ],
  [
    "sorting again and again",
    "{% for i in (1..999) %}{% assign a = event.x | reverse | sort | size %}{% endfor %}",
    { x: numbers.map(String) },
  ],
  [
    "splitting again and again",
    '{% for i in (1..999) %}{% assign a = event.x | split: "" | join: "-" %}{% endfor %}',
    { x: "ab".repeat(99_999) },
  ],
  [
    "lists that double",
    "{% assign a = event.x %}{% for i in (1..40) %}{% assign a = a | concat: a %}{% endfor %}x",
    { x: [1] },
  ],
  [
    "texts that double",
    "{% assign a = 'ab' %}{% for i in (1..40) %}{% assign a = a | append: a %}{% endfor %}{{ a | upcase }}",
    {},
  ],
  [
    "captures that double",
    "{% assign a = 'ab' %}{% for i in (1..40) %}{% capture a %}{{ a }}{{ a }}{% endcapture %}{% endfor %}{{ a }}",
    {},
  ],
  ["a replacement that multiplies", '{{ event.x | replace: "a", event.x }}', { x: "a".repeat(400_000) }],
  ["a date that is padded", '{{ "now" | date: "%400000000Y" }}', {}],
  ["a range", "{% for i in (1..1000000000) %}x{% endfor %}", {}],
  ["a range that just fits", "{% for i in (1..33000000) %}{% endfor %}x", {}],
  ["a long chain of filters", `{{ event.x${" | upcase | downcase".repeat(4_500)} }}`, { x: "a".repeat(400_000) }],
  [
    "grouping and finding again and again",
    '{% for i in event.x %}{% assign a = event.x | where: "a.b" | group_by: "a" %}{% endfor %}x',
    { x: numbers.map(() => ({ a: { b: 1 } })) },
  ],
];

test.each(poisons)("%s end with a limit by name, not with the server", async (_, instructions, event) => {
  const began = performance.now();
  const error = await render(instructions, event).catch((reason: unknown) => reason);
  expect(error).toBeInstanceOf(InvalidInputError);
  expect((error as Error).message).toMatch(/100 ms of processor time|64 MiB of memory/u);
  expect(performance.now() - began).toBeLessThan(generousMs);
});

test("the attack of nested loops is one: if nothing limits it, it is not over ten times later", async () => {
  const module = JSON.stringify(join(import.meta.dirname, "../../src/templates/liquid.ts"));
  const [, loops] = poisons[0] ?? [];
  const source = `import(${module}).then(({ renderLiquid }) => {
    const { parentPort } = require("node:worker_threads");
    parentPort.postMessage("begun"); renderLiquid(${JSON.stringify(loops)}, {}, 9); parentPort.postMessage("over");
  });`;
  const worker = new Worker(source, { eval: true });
  const said: unknown[] = [];
  worker.on("message", (message) => said.push(message));
  await waitFor(() => said.includes("begun"), "the loops began");
  const before = worker.performance.eventLoopUtilization().active;
  await waitFor(
    () => worker.performance.eventLoopUtilization().active - before > 1_000 || said.includes("over"),
    "the loops took a second",
  );
  expect(said).toEqual(["begun"]);
  await worker.terminate();
});

/** Parsed at once; quadratic or deep, if anything is. */
test.each([
  "{%",
  "{{",
  "{{ a[",
  "{% if a %}",
  "{% for a in b %}",
  "{% liquid\n",
  "{{ a | ",
  "{%- -%}",
  "{% raw %}",
  '{{ "',
  "\n",
])("a hundred thousand characters of %j are checked and rendered, or refused", async (unit) => {
  const instructions = unit.repeat(Math.floor(100_000 / unit.length));
  for (const action of [() => templates.check(instructions, asker), () => render(instructions)]) {
    const outcome = await action().then(
      () => "done",
      (error: unknown) => error,
    );
    expect(outcome instanceof InvalidInputError ? "done" : outcome).toBe("done");
  }
});

test("a large template of the usual kind is rendered by a process that has just begun", async () => {
  const fresh = createTemplates({ processes: 1 });
  others.push(fresh);
  const line = "- {{ event.name | upcase }}: {% if event.name %}{{ event.text | truncate: 20 }}{% endif %}\n";
  const prompt = await fresh.render(line.repeat(100), { name: "a", text: "b".repeat(900_000) }, asker);
  expect(prompt.split("\n")).toHaveLength(101);
});

test("whatever a template is made of, it is rendered or refused, and nothing breaks", async () => {
  const value = fc.oneof(
    fc.constantFrom(
      "event",
      "event.x",
      "event.list",
      "a",
      '"b"',
      "1",
      "-1",
      "1e308",
      "nil",
      "empty",
      "(1..5)",
      "event[a]",
      "forloop",
    ),
    fc.integer().map(String),
  );
  const filter = fc
    .tuple(
      fc.oneof(fc.constantFrom(...allowedFilters), fc.constantFrom("where_exp", "constructor")),
      fc.array(value, { maxLength: 3 }),
    )
    .map(([name, given]) => (given.length === 0 ? ` | ${name}` : ` | ${name}: ${given.join(", ")}`));
  const expression = fc
    .tuple(value, fc.array(filter, { maxLength: 4 }))
    .map(([first, filters]) => first + filters.join(""));
  const { template } = fc.letrec<{ template: string; part: string }>((tie) => ({
    template: fc.array(tie("part"), { maxLength: 6 }).map((parts) => parts.join("")),
    part: fc.oneof(
      { depthSize: "small" },
      fc.string({ unit: "binary", maxLength: 10 }),
      expression.map((text) => `{{ ${text} }}`),
      fc.tuple(value, tie("template")).map(([list, inner]) => `{% for a in ${list} %}${inner}{% endfor %}`),
      fc
        .tuple(value, tie("template"))
        .map(([what, inner]) => `{% if ${what} contains a %}${inner}{% else %}x{% endif %}`),
      expression.map((text) => `{% assign a = ${text} %}`),
      tie("template").map((inner) => `{% capture a %}${inner}{% endcapture %}`),
      fc.constantFrom(
        "{%",
        "{{",
        "%}",
        "{% case a %}",
        "{% endfor %}",
        "{% break %}",
        "{% cycle a, 1 %}",
        "{% increment a %}",
        "{% raw %}",
        "{% liquid\necho a\n%}",
      ),
    ),
  }));
  const odd = { x: "\ud800<a>%ff", list: [1, null, { x: [] }, "b", [[]]], n: 1e308, deep: { deep: { deep: {} } } };
  await fc.assert(
    fc.asyncProperty(
      template,
      fc.oneof(fc.constant(odd), fc.dictionary(fc.string(), fc.jsonValue())),
      async (instructions, event) => {
        const outcome = await render(instructions, event as EventContext).catch((error: unknown) => error);
        expect(
          typeof outcome === "string" || outcome instanceof InvalidInputError ? "rendered or refused" : outcome,
        ).toBe("rendered or refused");
      },
    ),
    { numRuns: 1_000 },
  );
});

test("hostile templates of one key leave the others their turns, and what is too much is refused for now", async () => {
  const pool = createTemplates({ processes: 1 });
  others.push(pool);
  const [, loops = "", event = {}] = poisons[0] ?? [];
  const order: string[] = [];
  const hostile = Array.from({ length: 30 }, () =>
    pool.render(loops, event, { organizationId: "one", id: "hostile" }).catch((error: unknown) => {
      order.push("hostile");
      return error;
    }),
  );
  const sameOrganization = pool.render("a", {}, { organizationId: "one", id: "other" }).then(() => order.push("same"));
  const another = pool.render("a", {}, { organizationId: "two", id: "other" }).then(() => order.push("another"));
  const errors = await Promise.all(hostile);
  await Promise.all([sameOrganization, another]);
  const refused = errors.filter((error) => error instanceof TooManyRequestsError);
  const ended = errors.filter((error) => error instanceof InvalidInputError);
  expect([ended.length, refused.length]).toEqual([5, 25]);
  // One was under way; then the organizations took turns, and in the first of them its keys did.
  expect(order.slice(refused.length)).toEqual([
    "hostile",
    "hostile",
    "another",
    "same",
    "hostile",
    "hostile",
    "hostile",
  ]);
});

test("a process that is killed from outside loses no template", async () => {
  let kills = 0;
  const pool = createTemplates({
    processes: 1,
    start: () => {
      const renderer = startRenderer();
      const carryOut = (task: Parameters<Renderer["render"]>[0]) => {
        const outcome = renderer.render(task);
        if (kills++ === 0) void renderer.end();
        return outcome;
      };
      return {
        pid: renderer.pid,
        get alive() {
          return renderer.alive;
        },
        render: carryOut,
        end: () => renderer.end(),
      };
    },
  });
  others.push(pool);
  await expect(pool.render("a", {}, asker)).resolves.toBe("a");
});

test("a condition without a verdict never lets its trigger fire", async () => {
  const answering = (verdicts: Verdict[]) => {
    const pool = createTemplates({
      start: () => ({ pid: 0, alive: true, render: async () => ({ verdicts }), end: async () => undefined }),
    });
    others.push(pool);
    return pool;
  };
  const expression = { condition: "event.a == 1", key: null, trigger: { id: "t", type: "webhook" } };
  const variables = { event: { a: 1 }, repository: null };
  const right = answering([{ passes: true, key: null }]);
  await expect(right.evaluate([expression], variables, asker)).resolves.toEqual([{ passes: true, key: null }]);
  await expect(right.evaluate([expression, expression], variables, asker)).rejects.toThrow("1 verdicts for 2");
  await expect(answering([]).evaluate([expression], variables, asker)).rejects.toThrow("0 verdicts for 1");
  await expect(answering([]).evaluateOne(expression, variables, asker)).rejects.toThrow("0 verdicts for 1");
});

test("a renderer has nothing of the server's environment", async () => {
  await render("a");
  const pid = started.findLast(({ alive }) => alive)?.pid;
  const environment = (await readFile(`/proc/${pid}/environ`, "utf8")).split("\0").filter((line) => line !== "");
  const names = new Set(environment.map((line) => line.slice(0, line.indexOf("="))));
  expect(names).toEqual(new Set(["NODE_CHANNEL_FD", "NODE_CHANNEL_SERIALIZATION_MODE", "TZ"]));
});

test("a server that stops starts no renderer for the template that it ends", async () => {
  const mine: Renderer[] = [];
  const pool = createTemplates({
    processes: 1,
    start: () => {
      const renderer = startRenderer();
      mine.push(renderer);
      return renderer;
    },
  });
  const [, loops = "", event = {}] = poisons[0] ?? [];
  const rendering = pool.render(loops, event, asker).catch((error: unknown) => error);
  await pool.close();
  await pool.close();
  expect(await rendering).toBeInstanceOf(UnavailableError);
  expect(mine.map(({ alive }) => alive)).toEqual([false]);
});

test("a renderer ends when it has had nothing to do for a while, and when the server stops", async () => {
  const mine: Renderer[] = [];
  const pool = createTemplates({
    idleMs: 1,
    start: () => {
      const renderer = startRenderer();
      mine.push(renderer);
      return renderer;
    },
  });
  others.push(pool);
  await pool.render("a", {}, asker);
  await waitFor(() => mine[0]?.alive === false, "the renderer ended");
  const [, loops = "", event = {}] = poisons[0] ?? [];
  const waiting = Array.from({ length: 4 }, () => pool.render(loops, event, asker).catch((error: unknown) => error));
  await pool.close();
  for (const error of await Promise.all(waiting)) expect(error).toBeInstanceOf(UnavailableError);
  expect(mine.every(({ alive }) => !alive)).toBe(true);
});
