import { noSuchMacro } from "./answers.ts";
import { begun, left, sharedBound, threadOf, refuseOnce, type Bound } from "./bounds.ts";
import {
  threadPlaceOf,
  type Conversation,
  type ConversationLimits,
  type Note,
  type Run,
  type Speaker,
} from "./conversation.ts";
import type { Decided, Effect, ConversationFacts } from "./facts.ts";
import type { Happening, Said } from "./happening.ts";
import { findMention, instructionOf } from "./mention.ts";
import { isRecentNote, withNote, withNotesAgain } from "./notes.ts";
import { reviewPrompt, sayingPrompt } from "./prompts.ts";

/**
 * Whether the forge has to be asked if the author of a comment may write to the repository, before it can be decided what comes of it. It is
 * not asked about comments that start nothing anyway, so that a stranger's comments cost no request.
 */
export function needsRights(
  saying: Said,
  facts: Pick<ConversationFacts, "isTaken" | "isOwn" | "pullRequest">,
  limits: Pick<ConversationLimits, "mention" | "bots">,
): boolean {
  if (facts.isTaken || facts.isOwn || saying.isMarked || saying.by === null) return false;
  if (saying.by.isBot && !isAllowedBot(saying.by, limits)) return false;
  return findMention(saying.body, limits.mention) !== null || (saying.asksForChanges && facts.pullRequest !== null);
}

function isAllowedBot({ login }: Speaker, { bots }: Pick<ConversationLimits, "bots">): boolean {
  return bots.includes(login.toLowerCase());
}

/** Decides what comes of what somebody said. */
export function said(
  conversation: Conversation,
  saying: Said,
  facts: ConversationFacts,
  limits: ConversationLimits,
): Decided {
  const { by } = saying;
  const mention = findMention(saying.body, limits.mention);
  const asks = saying.asksForChanges && facts.pullRequest !== null;
  if (facts.isTaken) return left(conversation, "it was taken up before");
  if (facts.isOwn) return left(conversation, "Offstage posted it itself");
  if (saying.isMarked) return left(conversation, "an Offstage posted it");
  if (by === null) return left(conversation, "nobody knows who said it");
  if (by.isBot && !isAllowedBot(by, limits))
    return left(conversation, `${by.login} is a bot that is not allowed to steer`);
  if (facts.isDismissed && mention === null) return left(conversation, "the review was dismissed since");
  if (mention === null && !asks) return noted(conversation, saying, by, facts, limits);
  if (facts.mayWrite === null) return left(conversation, `the forge does not tell whether ${by.login} may write`);
  if (!facts.mayWrite) return left(conversation, `${by.login} has no write access`);
  // What is answered elsewhere than in its thread everybody may read.
  if (saying.isConfidential && saying.commentId !== null && saying.threadId === null)
    return left(conversation, "it is confidential, and in no thread in which it could be answered");
  if (saying.mark !== null && facts.pullRequest === null)
    return left(conversation, "the pull request is of another Offstage, or of a session that is gone");

  // The person in charge has spoken: what had stopped by itself may go on.
  const heard = by.isBot ? conversation : resumed(conversation);
  const bound = boundOf(heard, saying, facts, limits);
  if (bound !== null) return refuseOnce(conversation, bound, limits, saying);
  const counted = { ...heard, botTurns: heard.botTurns + Number(by.isBot) };
  if (mention?.macro != null) return macro(counted, saying, mention.macro, facts);
  const isOfReview = saying.isOnLines || saying.commentId === null;
  const isGathered = saying.group !== null && isOfReview && facts.pullRequest !== null;
  return isGathered ? asked(counted, saying, by, facts, limits) : started(counted, saying, by, facts);
}

/**
 * What a person's words set back: rounds, and that others pushed. It is bounded, since each of them is a turn, of the conversation or, if
 * they were not said on the forge, of the session.
 * @returns the same conversation if there is nothing to set back
 */
export function resumed(conversation: Conversation): Conversation {
  const again = new Set<string>(["checks", "conflicts", "pushed"]);
  const { checkRounds, conflictRounds, isPushedByOthers, told: saidOnce } = conversation;
  if (checkRounds + conflictRounds === 0 && !isPushedByOthers && !saidOnce.some((each) => again.has(each)))
    return conversation;
  return {
    ...conversation,
    checkRounds: 0,
    conflictRounds: 0,
    isPushedByOthers: false,
    told: saidOnce.filter((each) => !again.has(each)),
  };
}

/** The bound that keeps a saying from starting anything; null: none does. */
function boundOf(
  conversation: Conversation,
  { by, state }: Said,
  facts: ConversationFacts,
  limits: ConversationLimits,
): Bound | null {
  const isIssue = facts.subject.kind === "issue";
  if (!isIssue && facts.pullRequest === null) return state === "open" ? "foreign" : state;
  const now = isIssue ? state : facts.pullRequest;
  if (now !== "open" && now !== null) return now;
  if (by?.isBot === true && conversation.botTurns >= limits.botTurns) return "botTurns";
  const startsSession = isIssue && (facts.session === null || facts.session.isOver);
  if (startsSession && conversation.sessions >= limits.sessions) return "sessions";
  return sharedBound(conversation, facts, limits);
}

/** The sign that something was seen. @param isMinor whether another one stands for it, too */
function seen({ key, commentId, isOnLines }: Pick<Said, "key" | "commentId" | "isOnLines">, isMinor = false): Effect {
  return { type: "react", key: `seen:${key}`, commentId, isOnLines, reviewId: null, isMinor };
}

/** The sign that a review was seen: at its own words, and at each of its comments. */
function seenReview({ key, body, group }: Said, notes: readonly Note[]): Effect[] {
  const reviewId = group?.startsWith("review:") === true ? group.slice("review:".length) : null;
  const own: Effect[] =
    body.trim() === ""
      ? []
      : [{ type: "react", key: `seen:${key}`, commentId: null, isOnLines: false, reviewId, isMinor: false }];
  const ofNotes = notes.map((note, index) => seen({ ...note, isOnLines: note.path !== null }, own.length + index > 0));
  return [...own, ...ofNotes];
}

/** What a run that one saying asks for has to answer. */
function askedBy(saying: Said): Pick<Run, "threads" | "places" | "isConfidential"> {
  const { threadId, place, isConfidential } = threadOf(saying);
  return { threads: [threadId], places: [place], ...(isConfidential && { isConfidential }) };
}

function macro(conversation: Conversation, saying: Said, name: string, facts: ConversationFacts): Decided {
  const { key: takes } = saying;
  if (!facts.isMacro(name)) {
    const text = noSuchMacro(name);
    const effects: Effect[] = [{ type: "answer", key: `macro:${takes}`, text, ...threadOf(saying) }];
    // It counts, or a writer's bot could have itself answered for ever.
    return {
      conversation: { ...conversation, turns: conversation.turns + 1 },
      effects,
      takes,
      reason: `no automation !${name} can be started`,
    };
  }
  const run: Run = { id: facts.newId(), kind: "macro", ...askedBy(saying), pushedSha: null };
  const effects: Effect[] = [seen(saying), { type: "macro", runId: run.id, macro: name }];
  return { conversation: begun(conversation, run), effects, takes, reason: null };
}

const confidentialTitle = "Work on a confidential issue";

/** A follow-up of the session that works on it, or a new session for an issue. */
function started(conversation: Conversation, saying: Said, by: Speaker, facts: ConversationFacts): Decided {
  const { subject, session } = facts;
  const { key: takes, body, path, line, hunk, thread = [], about, commentId, isConfidential } = saying;
  const isIssue = subject.kind === "issue";
  const isOpening = isIssue && commentId === null;
  const where = isIssue
    ? isOpening
      ? `issue #${subject.number}`
      : `a comment on issue #${subject.number}`
    : path === null
      ? `a comment on pull request #${subject.number}`
      : `a comment on lines of pull request #${subject.number}`;
  const around = {
    ...(isIssue && !isOpening && { issue: { title: about.title, text: about.body, author: about.author } }),
    ...(path !== null && { file: path, line, hunk }),
    ...(thread.length > 0 && { saidBefore: thread }),
  };
  const text = sayingPrompt({ by, body, where, around, isConfidential });
  const isFollowUp = session !== null && !session.isOver;
  const id = facts.newId();
  const run: Run = {
    id,
    kind: isFollowUp ? "followUp" : "session",
    ...askedBy(saying),
    pushedSha: isFollowUp ? session.pushedSha : null,
  };
  if (isFollowUp) {
    const effects: Effect[] = [seen(saying), { type: "followUp", runId: id, text, mergesTarget: false }];
    return { conversation: begun(conversation, run), effects, takes, reason: null };
  }
  const words = about.title.trim() === "" ? instructionOf(body).text : about.title;
  // The title is the branch's, the commits' and the pull request's.
  const title = isConfidential ? confidentialTitle : words;
  const effects: Effect[] = [seen(saying), { type: "session", runId: id, title, text }];
  return {
    conversation: begun(conversation, run, { sessions: conversation.sessions + 1 }),
    effects,
    takes,
    reason: null,
  };
}

/** A review, or a comment of one, that asks for something: its other comments are waited for. */
function asked(
  conversation: Conversation,
  saying: Said,
  by: Speaker,
  facts: ConversationFacts,
  limits: ConversationLimits,
): Decided {
  const { key: takes, body, asksForChanges, commentId } = saying;
  const isComment = commentId !== null;
  // Without a review's id, a comment that calls Offstage is asked for alone: the person's others may be of no review.
  const group = isComment && !(saying.group ?? "").startsWith("review:") ? `only:${takes}` : (saying.group ?? "");
  const known = conversation.asked.find((each) => each.group === group);
  const dueAt = facts.now + limits.reviewMs;
  const next = {
    group,
    by,
    body: isComment ? (known?.body ?? "") : body,
    isAnswered: (known?.isAnswered ?? false) || (!isComment && body.trim() !== ""),
    dueAt: known?.dueAt ?? dueAt,
  };
  const others = conversation.asked.filter((each) => each !== known);
  const notes = isComment ? withNote(conversation.notes, saying, by, group, facts.now) : conversation.notes;
  const ofIt = notes.filter((note) => note.group === group && note.by.id === by.id && isRecentNote(note, facts.now));
  const effects = isComment ? [seen(saying)] : seenReview(saying, asksForChanges ? ofIt : []);
  return { conversation: { ...conversation, notes, asked: [...others, next] }, effects, takes, reason: null };
}

/**
 * A review was dismissed before its turn began: what it asks for is not done, unless its author called Offstage by name in it. A follow-up
 * that waits for its turn is withdrawn. If the forge tells of it before the review itself, that is taken up no more.
 */
export function dismissed(
  conversation: Conversation,
  { key, group, by }: Extract<Happening, { type: "dismissed" }>,
  facts: Pick<ConversationFacts, "isTaken" | "isAskedAgain" | "pullRequest" | "waitingRuns">,
  { mention }: Pick<ConversationLimits, "mention">,
): Decided {
  const isOfIt = (each: { readonly group: string; readonly by: Speaker }): boolean =>
    each.group === group && each.by.id === by?.id;
  const isCalling = (words: readonly { readonly body: string }[]): boolean =>
    words.some(({ body }) => findMention(body, mention) !== null);
  const waiting = conversation.asked.find(isOfIt);
  const queued = conversation.runs.filter(
    ({ id, review }) => review !== undefined && isOfIt(review) && facts.waitingRuns.has(id),
  );
  if (waiting === undefined && queued.length === 0) {
    const takes = facts.isTaken || facts.pullRequest !== "open" ? null : key;
    return { ...left(conversation, "no turn of the review is about to begin"), takes };
  }
  // A vote has no id: this may be told of late, when the next one has been taken up.
  if (key === null && facts.isAskedAgain) return left(conversation, "the reviewer has asked for changes again since");
  const notes = conversation.notes.filter(isOfIt);
  const isKept = waiting !== undefined && isCalling([waiting, ...notes]);
  const withdrawn = queued.filter(({ review }) => review !== undefined && !isCalling([review, ...review.notes]));
  if (withdrawn.length === 0 && (waiting === undefined || isKept))
    return left(conversation, `the review mentions ${mention}, so its turn begins all the same`);
  const others = isKept ? conversation.notes : conversation.notes.filter((note) => !isOfIt(note));
  // Those that no review holds together may be of the next one.
  const again = key === null ? withdrawn.flatMap(({ review }) => review?.notes ?? []) : [];
  const next: Conversation = {
    ...conversation,
    asked: isKept ? conversation.asked : conversation.asked.filter((each) => each !== waiting),
    notes: key === null ? withNotesAgain(conversation.notes, again) : others,
    // What comes late of it starts nothing by itself.
    reviewed: conversation.reviewed.filter((each) => withdrawn.length === 0 || each !== `${group} ${by?.id}`),
    runs: conversation.runs.filter((run) => !withdrawn.includes(run)),
  };
  const effects = withdrawn.map(({ id }): Effect => ({ type: "withdraw", withdrawnId: id }));
  return { ...left(next, "the review was dismissed before its turn began"), effects };
}

const keptReason = "it is kept until its review asks for changes";

/** Keeps a comment that asks for nothing itself: the review that it is of may. */
function noted(
  conversation: Conversation,
  saying: Said,
  by: Speaker,
  facts: ConversationFacts,
  limits: ConversationLimits,
): Decided {
  const { group, key: takes } = saying;
  if (group === null || facts.pullRequest !== "open") {
    return left(conversation, `it does not mention ${limits.mention}`);
  }
  if (conversation.notes.some((note) => note.key === takes)) return left(conversation, keptReason);
  const notes = withNote(conversation.notes, saying, by, group, facts.now);
  const isOfSame = (each: { readonly group: string; readonly by: Speaker }): boolean =>
    each.group === group && each.by.id === by.id;
  const waiting = conversation.asked.find(isOfSame);
  if (waiting !== undefined) {
    const isMinor = waiting.isAnswered || conversation.notes.some(isOfSame);
    return { conversation: { ...conversation, notes }, effects: [seen(saying, isMinor)], takes, reason: null };
  }
  if (conversation.reviewed.includes(`${group} ${by.id}`)) {
    const bound = boundOf(conversation, saying, facts, limits);
    if (bound !== null) return refuseOnce(conversation, bound, limits, saying);
    const late = { group, by, body: "", isAnswered: false, dueAt: facts.now + limits.reviewMs };
    const botTurns = conversation.botTurns + Number(by.isBot);
    const next = { ...conversation, botTurns, notes, asked: [...conversation.asked, late] };
    return { conversation: next, effects: [seen(saying)], takes, reason: null };
  }
  // It takes nothing yet: a stranger's comments would leave a row each.
  return left({ ...conversation, notes }, keptReason);
}

const mostReviewed = 50;

/** One follow-up for one review, with all its comments that came. */
export function startReviews(
  conversation: Conversation,
  facts: ConversationFacts,
  limits: ConversationLimits,
): Decided {
  const due = conversation.asked.find((each) => each.dueAt <= facts.now);
  if (due === undefined || facts.session === null) return left(conversation, "no review is due");
  const { group, by } = due;
  const isOfIt = (note: Note): boolean => note.group === group && note.by.id === by.id;
  const ofIt = conversation.notes.filter((note) => isOfIt(note) && isRecentNote(note, facts.now));
  const notes = ofIt.map((note) => ({
    ...note,
    ...facts.places.get(note.key),
    thread: facts.threads.get(note.key) ?? [],
  }));
  const rest = {
    ...conversation,
    asked: conversation.asked.filter((each) => each !== due),
    notes: conversation.notes.filter((note) => !isOfIt(note)),
    reviewed: group.startsWith("review:")
      ? [...conversation.reviewed, `${group} ${by.id}`].slice(-mostReviewed)
      : conversation.reviewed,
  };
  const takesKept = notes.map(({ key }) => key);
  const isWordless = notes.length === 0 && due.body.trim() === "" && !due.isAnswered;
  // What the reviewer said may have called Offstage by itself.
  if (isWordless && conversation.runs.length > 0) return left(rest, "the review has no words of its own");
  const bound = isWordless ? "wordless" : sharedBound(rest, facts, limits);
  if (bound !== null) return { ...refuseOnce(rest, bound, limits), takesKept };
  const [first] = notes;
  const isComment = notes.length === 1 && first !== undefined && due.body.trim() === "" && !due.isAnswered;
  const { number } = facts.subject;
  const text =
    isComment && group.startsWith("only:")
      ? sayingPrompt({
          by,
          body: first.body,
          where: `a comment on lines of pull request #${number}`,
          around: {
            file: first.path,
            line: first.line,
            hunk: first.hunk,
            ...(first.thread.length > 0 && { saidBefore: first.thread }),
          },
          isConfidential: first.isConfidential === true,
        })
      : reviewPrompt({ by, body: due.body, number }, notes);
  const of = [...new Set(notes.map(({ threadId }) => threadId))];
  const threads = due.isAnswered || of.length === 0 ? [null, ...of.filter((each) => each !== null)] : of;
  const places = threads.map((threadId) => {
    const note = threadId === null ? undefined : notes.find((each) => each.threadId === threadId);
    return note === undefined ? null : threadPlaceOf(note);
  });
  const isConfidential = notes.some((note) => note.isConfidential === true);
  const asks = { threads, places, ...(isConfidential && { isConfidential }) };
  const review = group.startsWith("only:") ? {} : { review: { group, by, body: due.body, notes: ofIt } };
  const run: Run = { id: facts.newId(), kind: "followUp", ...asks, pushedSha: facts.session.pushedSha, ...review };
  const effects: Effect[] = [{ type: "followUp", runId: run.id, text, mergesTarget: false }];
  return { conversation: begun(rest, run), effects, takes: null, takesKept, reason: null };
}
