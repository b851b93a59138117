import { expect, test } from "vitest";
import { newConversation, type Conversation } from "./conversation.ts";
import { sectionText, type LoopFacts } from "./section.ts";

const sessionUrl = "https://offstage.example/sessions/1";
const other = { name: "acme/other", number: 3, url: "https://forge.example/acme/other/pull/3" };

test("a session on one repository says what made its pull request", () => {
  expect(sectionText({ sessionUrl, others: [], approval: null, loop: null })).toBe(
    `---\nMade by [this Offstage session](${sessionUrl}).`,
  );
});

test("it names and links the others", () => {
  expect(sectionText({ sessionUrl, others: [other, { ...other, number: 4 }], approval: null, loop: null })).toBe(
    `---\nMade by [this Offstage session](${sessionUrl}).\n- It goes with [acme/other #3](${other.url}), [acme/other #4](${other.url}).`,
  );
});

test("the name of a repository is no mention, link, image, mark or HTML", () => {
  const name = "@all ](x) ![a](b) <img> <!-- /offstage section -->\n/close `_*";
  const text = sectionText({
    sessionUrl,
    others: [{ ...other, name, url: "https://x.example/a)b <c>" }],
    approval: null,
    loop: null,
  });
  expect(text).not.toMatch(/@all|[^\\]\]\((?!https)|<img|<!--|^\/close/mu);
  expect(text).toContain("(https://x.example/a%29b%20%3cc%3e)");
});

test("its length is bounded, and it says how many it leaves out", () => {
  const others = Array.from({ length: 19 }, (_, number) => ({
    name: "🙈".repeat(150),
    number,
    url: other.url.repeat(10),
  }));
  const text = sectionText({ sessionUrl, others, approval: null, loop: null });
  expect(text.length).toBeLessThan(2_500);
  expect(text.isWellFormed()).toBe(true);
  expect(text).toMatch(/ and \d+ more, which the session names\.$/u);
});

const limits = { checkRounds: 3, conflictRounds: 2 };
const rest: LoopFacts = {
  status: "completed",
  followUps: 0,
  isAsked: false,
  pushedSha: null,
  conversation: null,
  limits,
};
const linesOf = (loop: Partial<LoopFacts>): string[] =>
  sectionText({ sessionUrl, others: [], approval: null, loop: { ...rest, ...loop } })
    .split("\n")
    .slice(2);
const heard = (more: Partial<Conversation>): Partial<LoopFacts> => ({ conversation: { ...newConversation, ...more } });

test.each<[string, Partial<LoopFacts>, string[]]>([
  ["nothing, as long as nothing came after it", {}, []],
  ["nothing while its first turn ends", { status: "running" }, []],
  ["what it waits for", heard({}), ["- It waits for comments, reviews and checks."]],
  [
    "follow-ups and the last commit",
    { followUps: 2, pushedSha: "0123456789abcdef" },
    ["- 2 follow-ups so far; its last commit here is `0123456789`."],
  ],
  ["that it works", { status: "queued", isAsked: true }, ["- It works on what it was asked last."]],
  ["that it waits for money", { status: "waiting" }, ["- It waits until its budget is raised."]],
  ["that it failed", { status: "failed" }, ["- It stopped: the session failed, and its page says why."]],
  ["that it was cancelled", { status: "cancelled", ...heard({}) }, ["- It stopped: the session was cancelled."]],
  [
    "rounds",
    heard({ checkRounds: 2, conflictRounds: 1 }),
    [
      "- Rounds in a row, until somebody says something: fixing red checks: 2 of 3, merging the target branch: 1 of 2.",
      "- It waits for comments, reviews and checks.",
    ],
  ],
  [
    "why it stopped fixing",
    heard({ told: ["checks", "conflicts"] }),
    [
      "- It stopped fixing checks after 3 in a row and merging the target branch after 2 in a row, until somebody who may write here asks it for more.",
    ],
  ],
  [
    "that somebody else pushed",
    heard({ isPushedByOthers: true, told: ["pushed"] }),
    [
      "- It leaves checks and conflicts alone, since somebody else has pushed, until somebody who may write here asks it for more.",
    ],
  ],
  [
    "its last bound",
    heard({ told: ["turns", "checks"] }),
    ["- It stopped: as many turns were taken here as a conversation may have."],
  ],
  ["its costs", heard({ told: ["usd"] }), ["- It stopped: this conversation has cost as much as one may."]],
])("it says %s", (_, loop, lines) => expect(linesOf(loop)).toEqual(lines));

test("what checks do alone changes nothing in it, since an edit may start checks", () => {
  const failed = [{ kind: "run", id: "1", name: "test", url: null }];
  const gathered = { checks: { sha: "a".repeat(40), since: 1, dueAt: 2, failed }, conflict: { sha: "a", dueAt: 3 } };
  expect(linesOf(heard(gathered))).toEqual(linesOf(heard({})));
});

test("who may approve is one line, if the forge tells what people would miss", () => {
  const rules = { excludesPusher: true, excludesAuthor: null, pushDismisses: true };
  const text = sectionText({ sessionUrl, others: [], approval: rules, loop: null });
  expect(text).toMatch(
    /\n- Who may approve: an approval by the account that pushed last does not count, .*the approvals before it\.$/u,
  );
  const none = { excludesPusher: false, excludesAuthor: false, pushDismisses: null };
  expect(sectionText({ sessionUrl, others: [], approval: none, loop: null })).not.toContain("approve");
});
