import { expect, test } from "vitest";
import type { LoopEvent } from "./loop.ts";
import { brokenLoop, type LoopFound } from "./verify-loop.ts";

const shared = { sessionId: "s1", repository: "chaos-1", pullRequest: 3 } as const;

function asked(index: number, thread: string | null): LoopEvent {
  const file = `loop-1-${index}.txt`;
  return { ...shared, sign: file, reaction: `to ${index} eyes`, answered: true, thread, file, content: "x" };
}

const [comment, onLines] = [asked(1, null), asked(2, "701")];
const check: LoopEvent = { ...asked(3, null), sign: '/runs/1000001"', reaction: null, answered: false };
const events = [comment, onLines, check];

const answer = ({ file, thread }: LoopEvent): LoopFound["answers"][number] => ({
  repository: "chaos-1",
  number: 3,
  thread,
  body: `Done in abc.\n\n> Wrote ${file}.`,
});
const turn = (...of: readonly LoopEvent[]): LoopFound["messages"][number] => ({
  sessionId: "s1",
  text: of.map(({ sign }) => `write ${sign}`).join("\n"),
  status: "done",
});

/** What there is when all went well. */
const kept: LoopFound = {
  messages: [turn(comment), turn(onLines), turn(check)],
  answers: [answer(comment), answer(onLines)],
  reactions: new Map([["chaos-1", new Set(["to 1 eyes", "to 2 eyes"])]]),
  unrest: [],
};
const { messages, answers } = kept;

test("one turn, one answer and one reaction for each is no broken promise", () => {
  expect(brokenLoop(events, kept)).toEqual([]);
  expect(brokenLoop([], { messages: [], answers: [], reactions: new Map(), unrest: [] })).toEqual([]);
  // A review and its comments may be taken up together or one after the other.
  expect(brokenLoop(events, { ...kept, messages: [turn(comment, onLines), turn(check)] })).toEqual([]);
});

const reactions = (...of: readonly string[]) => new Map([["chaos-1", new Set(of)]]);

test.each<[string, Partial<LoopFound>, string]>([
  ["a doubled answer", { answers: [...answers, answer(onLines)] }, "loop-1-2.txt of chaos-1 #3 has 2 answers"],
  ["a missing answer", { answers: [answer(comment)] }, "loop-1-2.txt of chaos-1 #3 has 0 answers"],
  [
    "an answer in the wrong place",
    { answers: [answer(comment), { ...answer(onLines), thread: null }] },
    "loop-1-2.txt of chaos-1 #3 has 0 answers",
  ],
  [
    "an answer to what the commit answers",
    { answers: [...answers, answer(check)] },
    '/runs/1000001" of chaos-1 #3 has 1 answers',
  ],
  ["an answer to nothing", { answers: [...answers, { ...answer(comment), body: "Hm." }] }, "there are 3 answers"],
  ["a doubled turn", { messages: [...messages, turn(comment)] }, "loop-1-1.txt of chaos-1 #3 became 2 turns"],
  ["a lost turn", { messages: [turn(onLines), turn(check)] }, "loop-1-1.txt of chaos-1 #3 became 0 turns"],
  [
    "a turn in another session",
    { messages: [{ ...turn(comment), sessionId: "s2" }, turn(onLines), turn(check)] },
    "session s2 has an unrequested turn",
  ],
  [
    "a turn that has not ended",
    { messages: [turn(comment), turn(onLines), { ...turn(check), status: "running" }] },
    'the turn of /runs/1000001" of chaos-1 #3 has not ended',
  ],
  ["a missing reaction", { reactions: reactions("to 1 eyes") }, "loop-1-2.txt of chaos-1 #3 has no reaction"],
  [
    "a reaction to nothing",
    { reactions: reactions("to 1 eyes", "to 2 eyes", "to 9 eyes") },
    "2 were to get a reaction, and there are 3",
  ],
  ["something that is still due", { unrest: ["the run r is not answered"] }, "the run r is not answered"],
])("%s is reported", (_, change, words) => {
  expect(brokenLoop(events, { ...kept, ...change }).join("\n")).toContain(words);
});
