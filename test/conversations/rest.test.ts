import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { ConversationLimits } from "../../src/domain/conversations/conversation.ts";
import { AdversarialForge, writers, type Hardships } from "./adversarial-forge.ts";
import { MemoryOffstage, type Mutation } from "./memory-offstage.ts";

/** Lower than by default, so that histories reach each bound. */
const limits: ConversationLimits = {
  mention: "offstage",
  turns: 9,
  botTurns: 2,
  sessions: 1,
  checkRounds: 3,
  conflictRounds: 2,
  usd: 4,
  bots: ["allowed[bot]"],
  resolvesThreads: true,
  checksMs: 2_000,
  reviewMs: 1_000,
};

const hardships: fc.Arbitrary<Hardships> = fc.record({
  seed: fc.nat(),
  isTwo: fc.boolean(),
  account: fc.constantFrom("bots", "shared", "person"),
  autoReply: fc.constantFrom("none", "bot", "stranger", "writer"),
  reviewer: fc.constantFrom("none", "bot", "allowed", "writer"),
  checks: fc.constantFrom("fail", "flap", "pass"),
  conflicts: fc.constantFrom("never", "flap", "always"),
  deliveries: fc.integer({ min: 1, max: 3 }),
  isObeying: fc.boolean(),
  endsEarly: fc.boolean(),
  isDear: fc.boolean(),
});

/** How often all histories of this file did what. */
const done = new Map<string, number>();

/** What is wrong with a history; empty: it came to rest, and every promise was kept. */
function faultsOf(hard: Hardships, mutation?: Mutation): string[] {
  // A GitHub App is not a collaborator: the operator who allows it by name vouches for it.
  const mayWrite = (login: string): boolean => writers.has(login) || limits.bots.includes(login);
  const usdPerRun = hard.isDear ? 1 : 0;
  const one = new MemoryOffstage({ name: "one", usdPerRun }, limits, mayWrite, mutation);
  const offstages = hard.isTwo
    ? [one, new MemoryOffstage({ name: "two", usdPerRun }, limits, mayWrite, mutation)]
    : [one];
  const forge = new AdversarialForge(hard, offstages);
  const rested = forge.run();
  for (const [what, times] of [forge, ...offstages].flatMap((each) => [...each.done]))
    done.set(what, (done.get(what) ?? 0) + times);
  return [...offstages.flatMap(({ violations }) => violations), ...(rested ? [] : ["it did not come to rest"])];
}

test("10,000 histories on a forge that does its worst come to rest, with no run and no answer twice", () => {
  fc.assert(
    fc.property(hardships, (hard) => {
      expect(faultsOf(hard)).toEqual([]);
    }),
    { numRuns: 10_000 },
  );
  // Every bound was reached, and everything was done, in many of them.
  const all = ["turns", "botTurns", "sessions", "usd", "checks", "conflicts", "pushed", "merged", "closed", "foreign"];
  const edits = ["adds", "changes", "hundred"].map((edit) => `edit:${edit}`);
  for (const what of ["followUp", "session", "react", "run", ...edits, ...all.map((bound) => `told:${bound}`)])
    expect([what, (done.get(what) ?? 0) > 50]).toEqual([what, true]);
});

/** Each takes one rule away. */
const mutants: Readonly<Record<string, Mutation & { readonly breaks: RegExp }>> = {
  "own comments are not known, nor made harmless": {
    facts: (facts) => ({ ...facts, isOwn: false }),
    happening: (happening) =>
      happening.type === "said"
        ? { ...happening, isMarked: false, body: happening.body.replaceAll("\u{200b}", "").replaceAll(/^> /gmu, "") }
        : happening,
    breaks: /own comment steered/u,
  },
  "a second delivery is not known": { facts: (facts) => ({ ...facts, isTaken: false }), breaks: /taken up twice/u },
  "an edited comment counts as another": {
    happening: (happening) =>
      happening.type === "said" ? { ...happening, key: `${happening.key} ${happening.body}` } : happening,
    breaks: /was heeded twice/u,
  },
  "no person's rights are asked for": { facts: (facts) => ({ ...facts, mayWrite: true }), breaks: /stranger steered/u },
  "bots count as people": {
    happening: (happening) =>
      happening.type === "said" && happening.by !== null
        ? { ...happening, by: { ...happening.by, isBot: false } }
        : happening,
    facts: (facts) => ({ ...facts, mayWrite: true }),
    breaks: /bot steered/u,
  },
  "turns are not bounded": {
    limits: (given) => ({ ...given, turns: Number.POSITIVE_INFINITY, usd: Number.POSITIVE_INFINITY }),
    breaks: /started \d+ runs/u,
  },
  "rounds are not counted": {
    decided: (decided) => ({
      ...decided,
      conversation: { ...decided.conversation, checkRounds: 0, conflictRounds: 0 },
    }),
    breaks: /too often/u,
  },
  "a merge is not heard of": {
    facts: (facts) => ({ ...facts, pullRequest: facts.pullRequest === null ? null : "open" }),
    breaks: /though the pull request is/u,
  },
  "what was answered is not remembered": {
    decided: (decided, before) => ({
      ...decided,
      conversation: {
        ...decided.conversation,
        runs: [...new Map([...before.runs, ...decided.conversation.runs].map((run) => [run.id, run])).values()],
      },
    }),
    breaks: /answered twice/u,
  },
  "checks of old commits count": {
    facts(facts, happening, { checks }) {
      const sha = happening.type === "checks" ? happening.sha : happening.type === "tick" ? checks?.sha : undefined;
      if (facts.session === null || sha === undefined) return facts;
      return { ...facts, isTaken: false, session: { ...facts.session, pushedSha: sha } };
    },
    breaks: /old commit/u,
  },
};

describe("a rule that is taken away is missed", () => {
  test.each(Object.entries(mutants))("%s", (_, { breaks, ...mutation }) => {
    const found = fc.check(
      fc.property(hardships, (hard) => !faultsOf(hard, mutation).some((fault) => breaks.test(fault))),
      { numRuns: 2_000, endOnFailure: true },
    );
    expect(found.failed).toBe(true);
  });
});
