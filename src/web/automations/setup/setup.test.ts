import { readFile } from "node:fs/promises";
import { expect, it } from "vitest";
import { sourceNames } from "../../../domain/automations/source-event.ts";
import { triggerListSchema, triggerTypes } from "../../../domain/automations/trigger.ts";
import { checkCel } from "../../../templates/cel.ts";
import { forgeKinds } from "../../../domain/repositories/repository.ts";
import { choicesFor, forgeChoices } from "./forge-choices.ts";
import { sourceSetups } from "./source-setups.ts";
import { triggerExamples } from "./trigger-examples.ts";

const read = (name: string): Promise<string> => readFile(new URL(`../../../../docs/${name}`, import.meta.url), "utf8");

it("has what docs/forges.md says is to be chosen at each forge", async () => {
  const [, table = ""] = /\| Event \| GitHub \|[^\n]*\n[^\n]*\n((?:\|[^\n]*\n)+)/u.exec(await read("forges.md")) ?? [];
  const columns = ["github", "gitlab", "gitea", "bitbucket", "bitbucketDataCenter", "azure"] as const;
  const rows = table
    .trim()
    .split("\n")
    .map((row) =>
      row
        .split("|")
        .slice(1, -1)
        .map((cell) => cell.trim()),
    );
  const listed = rows.flatMap(([names = "", ...cells]) =>
    [...names.matchAll(/`([^`]+)`/gu)].map(([, name = ""]) => {
      const choices = columns.flatMap((kind, index) => (cells[index] === "–" ? [] : [[kind, cells[index]] as const]));
      return [name, Object.fromEntries(choices)] as const;
    }),
  );
  expect(Object.fromEntries(listed)).toEqual(forgeChoices);
});

it("lists each choice once, and the events that a forge does not deliver", () => {
  expect(choicesFor("github", ["issue.opened", "issue.labeled", "push", "session.completed"])).toEqual({
    choose: ["Issues", "Pushes"],
    untold: [],
  });
  expect(choicesFor("bitbucket", ["issue.labeled"])).toEqual({ choose: [], untold: ["issue.labeled"] });
  for (const kind of forgeKinds) expect(choicesFor(kind, ["session.completed"])).toEqual({ choose: [], untold: [] });
});

it("has the conditions and instructions of docs/sources.md", async () => {
  const text = await read("sources.md");
  const blocks = (language: string): string[] =>
    [...text.matchAll(new RegExp(`^\`\`\`${language}\\n([\\s\\S]*?)\\n\`\`\`$`, "gmu"))].map(([, block = ""]) => block);
  expect(sourceNames.map((name) => sourceSetups[name].condition)).toEqual(blocks("cel"));
  expect(sourceNames.map((name) => sourceSetups[name].instructions)).toEqual(blocks("liquid"));
});

it("has examples of triggers that the API takes, of each kind and source", () => {
  const all = triggerListSchema.parse(triggerExamples.map(({ trigger }) => trigger));
  expect(new Set(["api", ...all.map(({ type }) => type)])).toEqual(new Set(triggerTypes));
  expect(all.flatMap((trigger) => (trigger.type === "source" ? [trigger.source] : []))).toEqual(sourceNames);
  for (const { condition } of all) if (condition !== "") checkCel(condition, "bool");
});
