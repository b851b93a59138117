import { expect, it } from "vitest";
import { sectionText } from "../../domain/conversations/section.ts";
import { readMark, withMark } from "../../domain/repositories/pull-request-mark.ts";
import { pullRequestText, withFurtherTurn } from "../../domain/repositories/pull-request-text.ts";
import { descriptionLimit, withinLimit } from "./description.ts";

const mark = { sessionId: "0198c1f0-0000-7000-8000-000000000001", sha: "a".repeat(40) };
const section = sectionText({
  sessionUrl: "https://offstage.example/session/1",
  others: [],
  approval: null,
  loop: null,
});
const work = { title: "Work", section, headSha: mark.sha, commits: [] };
const note = "cut here: Azure DevOps keeps 4,000 characters";

it("what fits stays as it is", () => {
  for (const text of ["", "Words", "x".repeat(descriptionLimit)]) expect(withinLimit(text)).toBe(text);
});

it("a long answer is cut and says so, and keeps the link, both marks and the place for further turns", () => {
  const { body } = pullRequestText({ ...work, finalMessage: `Begin ${"word ".repeat(5_000)}`, template: null });
  const cut = withinLimit(withMark(body, mark));
  expect(cut).toHaveLength(descriptionLimit);
  expect(cut.startsWith("Begin word")).toBe(true);
  for (const part of [note, "[this Offstage session]", `<!-- offstage ${mark.sha} -->`, "<!-- /offstage -->"])
    expect(cut).toContain(part);
  expect(readMark(cut)).toEqual(mark);
  expect(withinLimit(cut)).toBe(cut);

  const headSha = "b".repeat(40);
  const further = withFurtherTurn(cut, { headSha, finalMessage: "More.", commits: [] });
  const again = withinLimit(further ?? "");
  expect(again.length).toBeLessThanOrEqual(descriptionLimit);
  expect(readMark(again)).toEqual(mark);
  // It is known to describe the commit, so that the turn is not added again.
  expect(withFurtherTurn(again, { headSha, finalMessage: "More.", commits: [] })).toBeNull();
});

it("a long template gives way before a mark does", () => {
  const template = `# Description\n\n# Checks\n${"- [ ] Did it\n".repeat(1_000)}`;
  const { body } = pullRequestText({ ...work, finalMessage: "Done.", template });
  const cut = withinLimit(withMark(body, mark));
  expect(cut.length).toBeLessThanOrEqual(descriptionLimit);
  expect([cut.includes(note), readMark(cut)]).toEqual([true, mark]);
});

it("a text without a mark is cut between characters", () => {
  const cut = withinLimit("😀".repeat(3_000));
  expect([cut.length <= descriptionLimit, cut.isWellFormed(), cut.includes(note)]).toEqual([true, true, true]);
});

it("is quick with a text that is made of beginnings of marks", () => {
  const began = performance.now();
  withinLimit(`<!-- offstage ${"a".repeat(40)} `.repeat(1_000));
  withinLimit(`\n<!-- offstage ${"a".repeat(40)} -->`.repeat(1_000));
  expect(performance.now() - began).toBeLessThan(1_000);
});
