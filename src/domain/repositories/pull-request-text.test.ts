import { expect, test } from "vitest";
import { longestBody, pullRequestText, withFurtherTurn } from "./pull-request-text.ts";

const work = { title: "Work", section: "section", template: null, commits: [] };
const sha = (digit: number): string => String(digit).repeat(40);
const turn = (digit: number, finalMessage: string) => ({ headSha: sha(digit), finalMessage, commits: [] });

test("a further turn for which there is little room is described in part, and is known to be described", () => {
  const { body } = pullRequestText({ ...work, headSha: sha(1), finalMessage: "a".repeat(longestBody - 1_000) });
  const further = withFurtherTurn(body, turn(2, `It begins. ${"b".repeat(5_000)}`)) ?? "";
  expect(further).toMatch(/It begins\. b+\n\n\(cut\)\n<!-- offstage 2+ -->/u);
  expect(further.length).toBeLessThanOrEqual(longestBody);
  expect(withFurtherTurn(further, turn(2, "Again."))).toBeNull();
});

test("turns after that are described in a few words, as long as forges take the text", () => {
  let { body } = pullRequestText({ ...work, headSha: sha(1), finalMessage: "a".repeat(longestBody) });
  expect(body.length).toBeLessThanOrEqual(longestBody);
  let described = 0;
  for (let digit = 2; digit < 10; digit += 1) {
    const further = withFurtherTurn(body, turn(digit, `Turn ${digit}. ${"b".repeat(5_000)}`));
    if (further === null) continue;
    expect(further).toContain(`Turn ${digit}. b`);
    described += 1;
    body = further;
  }
  expect([described, body.length < 65_536]).toEqual([8, true]);
  expect(withFurtherTurn(body.replace("a", "a".repeat(5_536)), turn(0, "Too much."))).toBeNull();
});
