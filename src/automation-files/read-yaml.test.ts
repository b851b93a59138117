import { expect, test } from "vitest";
import { InvalidInputError } from "../domain/errors/errors.ts";
import { readAutomationFile } from "./read-automation.ts";
import { readYaml } from "./read-yaml.ts";

const least = "name: Fix\ninstructions: Fix it\n";
const path = ".offstage/automations/fix-it.yaml";

function problemOf(content: string, of = path): string {
  try {
    readAutomationFile(of, readYaml(content));
  } catch (error) {
    if (error instanceof InvalidInputError) return error.message;
    throw error;
  }
  return "none";
}

test("a file is read with the defaults of the API, and its name is the macro unless it has one", () => {
  expect(readAutomationFile(path, readYaml(least))).toEqual({
    name: "Fix",
    macro: "fix-it",
    instructions: "Fix it",
    priority: 5,
    paused: false,
    triggers: [],
  });
  const whole = `${least}macro: other\npriority: 9\ntriggers:\n- type: forge\n  events: [push]\n- {type: schedule, cron: 0 5 * * 1}\n`;
  expect(readAutomationFile(path, readYaml(whole))).toMatchObject({
    macro: "other",
    priority: 9,
    triggers: [
      { type: "forge", events: ["push"], connectionId: null, repositories: [], condition: "" },
      { type: "schedule", cron: "0 5 * * 1", timeZone: "UTC" },
    ],
  });
});

test.each([
  ["names other repositories", `${least}repositories: [https://example.com/a/b]\n`, "unknown field: repositories"],
  [
    "names a forge trigger's repositories",
    `${least}triggers: [{type: forge, events: [push], repositories: [a.b/c]}]\n`,
    "unknown field: repositories",
  ],
  [
    "names a connection",
    `${least}triggers: [{type: forge, events: [push], connectionId: null}]\n`,
    "unknown field: connectionId",
  ],
  ["has a secret", `${least}triggers: [{type: source, source: sentry, secret: x}]\n`, "unknown field: secret"],
  ["is more urgent than usual", `${least}priority: 4\n`, "priority: must be 5 to 9"],
  ["has an unknown field", `${least}instruction: x\n`, "unknown field: instruction"],
  ["has no instructions", "name: Fix\n", "instructions: is required"],
  ["lists an unknown event", `${least}triggers: [{type: forge, events: [pushed]}]\n`, "triggers.0.events.0: "],
  [
    "lists an event that its source has not",
    `${least}triggers: [{type: source, source: sentry, events: [x]}]\n`,
    "triggers.0.events: sentry has no event x",
  ],
  ["is a list", "- 1\n", "the file must be an object"],
  ["is empty", "", "the file must be an object"],
  ["has a key twice", `${least}name: Other\n`, "line 3, column 1: the key name is there twice"],
  ["has an alias", `name: &a Fix\ninstructions: *a\n`, "aliases (*) are not allowed"],
  ["merges a map", `x: &a {name: Fix}\n<<: *a\ninstructions: x\n`, "aliases (*) are not allowed"],
  ["is no YAML", 'name: "Fix\n', "line 2, column 1: "],
  ["has a tag of its own", `${least}title: !!js/function x\n`, "line 3"],
  ["has two documents", `${least}---\n${least}`, "line 3"],
  ["has a key that is no text", `${least}1: x\n`, "a key must be a text"],
  ["has half a character", `name: "\\ud800"\ninstructions: x\n`, "name: must be valid Unicode"],
  ["sets a prototype", `${least}__proto__: {title: x}\n`, "unknown field: __proto__"],
  ["is too large", `${least}title: ${"x".repeat(70_000)}\n`, "has more than 64 KiB"],
])("a file that %s is refused with the place", (_what, content, problem) => {
  expect(problemOf(content)).toContain(problem);
});

test("a file whose name can't be a macro needs one", () => {
  expect(problemOf(least, ".offstage/automations/Fix It.yaml")).toContain("macro: is required");
  expect(problemOf(`${least}macro: fix\n`, ".offstage/automations/Fix It.yaml")).toBe("none");
});
