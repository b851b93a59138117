import { pathOfAddress } from "../repositories/path-of-address.ts";
import { notices } from "./answers.ts";
import { begun, left, onSubject, sharedBound, refuseOnce } from "./bounds.ts";
import type { Conversation, ConversationLimits, FailedCheck, Run } from "./conversation.ts";
import type { Decided, Effect, ConversationFacts } from "./facts.ts";
import type { Happening } from "./happening.ts";
import { checksPrompt, conflictPrompt, type FailedLog } from "./prompts.ts";

/** A check failed, or passed: what failed of one commit is gathered, for one round. */
export function checked(
  conversation: Conversation,
  { outcome, sha, check }: Extract<Happening, { type: "checks" }>,
  facts: ConversationFacts,
  limits: ConversationLimits,
): Decided {
  const { checks } = conversation;
  if (facts.endedLater.some((each) => isSame(each, check)))
    return left(conversation, "the check has ended again since");
  if (outcome === "passed") {
    if (checks?.sha !== sha) return left(conversation, "nothing is done about checks that pass");
    // It was run again before anything was started.
    const failed = checks.failed.filter((each) => !isSame(each, check));
    const next = failed.length === 0 ? null : { ...checks, failed };
    return left({ ...conversation, checks: next }, "a check that had failed passed");
  }
  if (facts.pullRequest === null) return left(conversation, "no pull request of a session has the commit");
  if (facts.pullRequest !== "open") return left(conversation, `the pull request is ${facts.pullRequest}`);
  if (limits.checkRounds === 0) return left(conversation, "checks are not followed");
  if (facts.isTaken) return left(conversation, "a round was begun for this commit");
  const { pushedSha = null, pushingSha = null } = facts.session ?? {};
  // A commit that is being pushed replaces the one before; if its push fails, `startRound` drops it.
  const isOlder = sha !== pushingSha && pushingSha !== null && checks?.sha === pushingSha;
  if ((sha !== pushedSha && sha !== pushingSha) || isOlder)
    return left(conversation, "the commit is not what the session pushed last");
  if (conversation.isPushedByOthers) return left(conversation, "somebody else has pushed to the branch");
  const since = checks?.sha === sha ? checks.since : facts.now;
  const before = checks?.sha === sha ? checks.failed.filter((each) => !isSame(each, check)) : [];
  // A few at most: each is named in a message.
  const failed = [...before, check].slice(-mostChecks);
  const dueAt = Math.min(facts.now + limits.checksMs, since + 5 * limits.checksMs);
  return {
    conversation: { ...conversation, checks: { sha, since, dueAt, failed } },
    effects: [],
    takes: null,
    reason: null,
  };
}

/**
 * Whether two are the same check of a commit: a run that is run again keeps its id, while several runs may have one
 * name, as of a workflow that runs for the push and for the pull request. A status that is set again has another id,
 * and replaces that of its name. A run that Gitea delivers as the status of a job has the path of its address instead
 * of the id.
 */
function isSame(one: FailedCheck, other: FailedCheck): boolean {
  if (one.kind !== other.kind) return false;
  if (one.kind === "status") return one.id === other.id || one.name === other.name;
  return one.id === other.id || isAt(one, other.id) || isAt(other, one.id);
}

const isAt = ({ url }: FailedCheck, path: string): boolean => url !== null && pathOfAddress(url) === path;

const mostChecks = 20;
/** While the session works, due rounds are checked again no sooner than after this time, in ms. */
const shortestMs = 1_000;

type Pushed = Extract<Happening, { type: "pushed" }>;

/**
 * Whether a push took the branch from what the session pushed last to something else, also to an older commit of the
 * session: the session never does that itself, so another pushed.
 */
function isMovedAway({ sha, before }: Pushed, session: ConversationFacts["session"]): boolean {
  if (session === null || session.pushedSha === null || before !== session.pushedSha) return false;
  return sha !== before && ![session.pushingSha, ...session.begunShas].includes(sha);
}

/** See `happeningKey`. The branch may be moved to one commit several times. */
export function pushedKey(push: Pushed, session: ConversationFacts["session"]): string {
  return isMovedAway(push, session) ? `pushed:${push.before}..${push.sha}` : `pushed:${push.sha}`;
}

/** Decides a push to the branch: if it is not the session's, automatic rounds stop. */
export function pushed(conversation: Conversation, push: Pushed, facts: ConversationFacts): Decided {
  const { sha, by } = push;
  if (facts.pullRequest === null) return left(conversation, "it is not a session's branch");
  if (facts.isOwnCommit && !isMovedAway(push, facts.session)) return left(conversation, "the session pushed it itself");
  if (by?.isBot === true) return left(conversation, "a bot pushed it");
  if (facts.isTaken || sha === null) return left(conversation, "it was heard of before");
  const { checkRounds, conflictRounds, checks, conflict } = conversation;
  const wasUnderWay = checkRounds + conflictRounds > 0 || checks !== null || conflict !== null;
  const next = { ...conversation, isPushedByOthers: true, checks: null, conflict: null };
  const takes = pushedKey(push, facts.session);
  const reason = "somebody else pushed to the branch";
  if (!wasUnderWay || conversation.told.includes("pushed")) return { conversation: next, effects: [], takes, reason };
  const key = `told:pushed:${conversation.turns}`;
  const effects: Effect[] = [{ type: "answer", key, text: notices.pushed(), ...onSubject }];
  return { conversation: { ...next, told: [...next.told, "pushed"] }, effects, takes, reason };
}

/** The pull request collides with its target. */
export function conflicted(
  conversation: Conversation,
  happening: Extract<Happening, { type: "conflicted" }>,
  facts: ConversationFacts,
  limits: ConversationLimits,
): Decided {
  const sha = facts.session?.pushedSha ?? null;
  if (facts.pullRequest !== "open") return left(conversation, "no pull request of a session is open");
  if (limits.conflictRounds === 0) return left(conversation, "conflicts are not resolved by themselves");
  if (sha === null || facts.isTaken) return left(conversation, "a round was begun for this commit");
  // If a later push collides too, there is another event for it.
  if (happening.sha !== null && happening.sha !== sha)
    return left(conversation, "the commit is not what the session pushed last");
  if (conversation.isPushedByOthers) return left(conversation, "somebody else has pushed to the branch");
  return {
    conversation: { ...conversation, conflict: { sha, dueAt: facts.now } },
    effects: [],
    takes: null,
    reason: null,
  };
}

/** A round for red checks or for a conflict: one at a time, while the session rests. */
export function startRound(conversation: Conversation, facts: ConversationFacts, limits: ConversationLimits): Decided {
  const { checks, conflict } = conversation;
  const { session, now } = facts;
  const [due, name] =
    conflict !== null && conflict.dueAt <= now ? [conflict, "conflicts" as const] : [checks, "checks" as const];
  if (due === null || due.dueAt > now || session === null) return left(conversation, "no round is due");
  const isConflict = name === "conflicts";
  const rest: Conversation = isConflict ? { ...conversation, conflict: null } : { ...conversation, checks: null };
  // A person stopped it.
  if (session.status === "cancelled") return left(rest, "the session was cancelled");
  if (session.status !== "completed" && session.status !== "failed") {
    // Its next push makes this commit outdated.
    const later = { ...due, dueAt: now + Math.max(limits.checksMs, shortestMs) };
    return left(
      { ...conversation, ...(isConflict ? { conflict: later } : { checks: { ...later, ...checksOf(checks) } }) },
      "the session works",
    );
  }
  if (due.sha !== session.pushedSha) return left(rest, "the session has pushed since");
  const takes = isConflict ? `conflict:${due.sha}` : `checks:${due.sha}`;
  const rounds = isConflict ? rest.conflictRounds : rest.checkRounds;
  const most = isConflict ? limits.conflictRounds : limits.checkRounds;
  const bound = rest.isPushedByOthers ? "pushed" : rounds >= most ? name : sharedBound(rest, facts, limits);
  if (bound !== null) return { ...refuseOnce(rest, bound, limits), takes };
  const run: Run = {
    id: facts.newId(),
    kind: isConflict ? "conflict" : "checks",
    threads: [null],
    pushedSha: session.pushedSha,
  };
  const failed: FailedLog[] = (checks?.failed ?? []).map(({ id, kind, name: check, url }) => ({
    name: check,
    kind,
    url,
    logEnd: facts.logs.get(id) ?? null,
  }));
  const text = isConflict ? conflictPrompt(facts.subject.number) : checksPrompt(due.sha, failed);
  const counted = isConflict ? { conflictRounds: rounds + 1 } : { checkRounds: rounds + 1 };
  const effects: Effect[] = [{ type: "followUp", runId: run.id, text, mergesTarget: isConflict }];
  return { conversation: begun(rest, run, counted), effects, takes, reason: null };
}

function checksOf(checks: Conversation["checks"]): Pick<NonNullable<Conversation["checks"]>, "since" | "failed"> {
  return { since: checks?.since ?? 0, failed: checks?.failed ?? [] };
}
