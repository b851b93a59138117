import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { allGoals } from "./all-goals.ts";
import { channels } from "./channels.ts";
import { groups } from "./goal.ts";
import { pageOf } from "./table.ts";

const root = join(import.meta.dirname, "../..");

test("the page of goals says what is tried", async () => {
  await expect(pageOf(allGoals)).toMatchFileSnapshot(join(root, "docs/security-goals.md"));
});

test("docs/security.md says how many goals are stopped", async () => {
  const stopped = allGoals.filter(({ outcome }) => outcome === "stopped").length;
  const text = (await readFile(join(root, "docs/security.md"), "utf8")).replaceAll("\n", " ");
  expect(text).toContain(`${stopped} of ${allGoals.length} [goals of attackers](security-goals.md)`);
  expect(text).toContain(`The other ${allGoals.length - stopped} can't be stopped`);
});

test("at least 60 goals are stopped, each under a name of its own, of every group and by every channel", () => {
  const stopped = allGoals.filter(({ outcome }) => outcome === "stopped");
  expect(stopped.length).toBeGreaterThanOrEqual(60);
  expect(allGoals.filter(({ awaits }) => awaits !== undefined)).toEqual([]);
  expect(new Set(allGoals.map(({ id }) => id)).size).toBe(allGoals.length);
  expect(new Set(allGoals.map(({ group }) => group))).toEqual(new Set(Object.keys(groups)));
  expect(new Set(allGoals.map(({ channel }) => channel))).toEqual(new Set(Object.keys(channels)));
  console.log(
    `${allGoals.length} goals: ${stopped.length} stopped, ${allGoals.length - stopped.length} not, by design`,
  );
});
