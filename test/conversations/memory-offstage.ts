import type { RunEnd } from "../../src/domain/conversations/answers.ts";
import {
  dueAt,
  newConversation,
  type Conversation,
  type ConversationLimits,
  type ConversationSubject,
} from "../../src/domain/conversations/conversation.ts";
import { decide, happeningKey } from "../../src/domain/conversations/decide.ts";
import type { Decided, ConversationFacts } from "../../src/domain/conversations/facts.ts";
import { happeningOf, type Happening, type Where } from "../../src/domain/conversations/happening.ts";
import { withCommentMark } from "../../src/domain/repositories/comment-mark.ts";
import type { ForgeEvent } from "../../src/domain/automations/forge-event.ts";

/** What a mutant of the decision changes. Each must break a promise that the histories check. */
export interface Mutation {
  readonly facts?: (facts: ConversationFacts, happening: Happening, before: Conversation) => ConversationFacts;
  readonly happening?: (happening: Happening) => Happening;
  readonly limits?: (limits: ConversationLimits) => ConversationLimits;
  readonly decided?: (decided: Decided, before: Conversation, happening: Happening) => Decided;
}

interface Session {
  readonly id: string;
  status: "running" | "completed" | "failed";
  pushedSha: string | null;
  pullRequest: number | null;
  summary: string;
  readonly commits: Set<string>;
}

interface Kept {
  readonly subject: ConversationSubject;
  state: Conversation;
  readonly taken: Set<string>;
  /** Ids of comments that something came of: each at most once, whatever it is edited to. */
  readonly heeded: Set<string>;
  sessionId: string | null;
  /** Rounds begun since a person was last heard. */
  readonly inARow: { checks: number; conflict: number };
  started: number;
}

/** An answer that waits to be posted. */
export interface Queued {
  readonly key: string;
  readonly subject: ConversationSubject;
  readonly body: string;
}

/** An Offstage whose database is in memory: around the very decision that the real one takes. */
export class MemoryOffstage {
  readonly violations: string[] = [];
  /** How often what was done, by its kind: that histories are not empty. */
  readonly done = new Map<string, number>();
  readonly sessions = new Map<string, Session>();
  readonly outbox: Queued[] = [];
  readonly pulls = new Map<number, { state: "open" | "merged" | "closed"; readonly sessionId: string }>();
  private readonly conversations = new Map<string, Kept>();
  private readonly known = new Set<string>();
  private readonly ownComments = new Set<string>();
  private readonly answered = new Set<string>();
  private counter = 0;

  readonly name: string;
  private readonly limits: ConversationLimits;
  private readonly mutation: Mutation;
  /** The forge's answer about a person's rights. */
  private readonly mayWrite: (login: string) => boolean;
  private readonly usdPerRun: number;

  constructor(
    { name, usdPerRun }: { readonly name: string; readonly usdPerRun: number },
    limits: ConversationLimits,
    mayWrite: (login: string) => boolean,
    mutation: Mutation = {},
  ) {
    this.name = name;
    this.usdPerRun = usdPerRun;
    this.limits = limits;
    this.mayWrite = mayWrite;
    this.mutation = mutation;
  }

  /** A session that was begun by hand, with its pull request. */
  begin(number: number, sha: string): void {
    const id = this.newId();
    const session: Session = {
      id,
      status: "completed",
      pushedSha: sha,
      pullRequest: number,
      summary: "",
      commits: new Set([sha]),
    };
    this.sessions.set(id, session);
    this.pulls.set(number, { state: "open", sessionId: id });
  }

  private newId(): string {
    this.counter += 1;
    return `${this.name}-${this.counter}`;
  }

  /** @param now ms */
  deliver(event: ForgeEvent, now: number): void {
    const read = happeningOf(event);
    if (read === null) return;
    const subject = this.resolve(read.where);
    if (subject !== null) this.happen(subject, read.happening, now);
  }

  conflicted(number: number, now: number): void {
    if (this.pulls.get(number)?.state === "open")
      this.happen({ kind: "pullRequest", number }, { type: "conflicted", sha: null }, now);
  }

  /** Whether anything waits for time to pass, or for an answer to a run that ended. */
  isDue(): number | null {
    const times = [...this.conversations.values()].flatMap(({ state }) => {
      const due = dueAt(state);
      return [due, state.runs.some(({ id }) => this.endOf(id) !== null) ? 0 : null].filter((each) => each !== null);
    });
    return times.length === 0 ? null : Math.min(...times);
  }

  sweep(now: number): void {
    for (const kept of this.conversations.values()) this.happen(kept.subject, { type: "tick" }, now);
  }

  running(): Session[] {
    return [...this.sessions.values()].filter(({ status }) => status === "running");
  }

  /** An agent's turn ends. @param pushed the new commit; null: nothing changed */
  finish(session: Session, pushed: string | null, summary: string, failed: boolean): void {
    session.status = failed ? "failed" : "completed";
    session.summary = summary;
    if (pushed !== null && !failed) {
      session.pushedSha = pushed;
      session.commits.add(pushed);
    }
  }

  /** The comment as it is posted; its id is known a little later. */
  post(queued: Queued): string {
    const key = `${this.name}-key-${queued.key}`;
    this.ownComments.add(key);
    return withCommentMark(queued.body, key);
  }

  private resolve(where: Where): ConversationSubject | null {
    if ("number" in where) return where;
    const found = [...this.pulls].find(([number, { sessionId }]) => {
      if (where.branch === `branch-${number}`) return true;
      if (where.kind === "branch") return false;
      return where.numbers.includes(number) || this.sessions.get(sessionId)?.commits.has(where.sha) === true;
    });
    return found === undefined ? null : { kind: "pullRequest", number: found[0] };
  }

  private endOf(runId: string): RunEnd | null {
    const [sessionId = ""] = this.runs.get(runId) ?? [];
    const session = this.sessions.get(sessionId);
    if (session === undefined || session.status === "running") return null;
    return {
      status: session.status,
      pushedSha: session.pushedSha,
      commitUrl: null,
      pullRequestUrl: null,
      summary: session.summary,
      reason: session.status === "failed" ? session.summary : null,
      sessionUrl: null,
    };
  }

  /** Of each run: its session. */
  private readonly runs = new Map<string, [string]>();

  private happen(subject: ConversationSubject, delivered: Happening, now: number): void {
    const place = `${subject.kind} ${subject.number}`;
    const before = this.conversations.get(place);
    const kept: Kept = before ?? {
      subject,
      state: newConversation,
      taken: new Set(),
      heeded: new Set(),
      sessionId: null,
      inARow: { checks: 0, conflict: 0 },
      started: 0,
    };
    const pull = subject.kind === "pullRequest" ? this.pulls.get(subject.number) : undefined;
    if (delivered.type === "ended" && pull !== undefined) pull.state = delivered.state;
    if (delivered.type === "reopened" && pull?.state === "closed") pull.state = "open";
    const session = this.sessions.get(pull?.sessionId ?? kept.sessionId ?? "");
    const of =
      session === undefined
        ? null
        : {
            status: session.status,
            pushedSha: session.pushedSha,
            pushingSha: null,
            begunShas: [],
            isOver: this.isOver(session),
          };
    const happening = this.mutation.happening?.(delivered) ?? delivered;
    const key = happeningKey(happening, of);
    const truth: ConversationFacts = {
      now,
      newId: () => this.newId(),
      subject,
      isTaken: key !== null && kept.taken.has(key),
      isOwn:
        delivered.type === "said" &&
        [...this.ownComments].some((mark) => delivered.body.endsWith(`comment=${mark} -->`)),
      mayWrite: delivered.type === "said" && delivered.by !== null ? this.mayWrite(delivered.by.login) : null,
      isOwnCommit: delivered.type === "pushed" && session?.commits.has(delivered.sha ?? "") === true,
      isDismissed: false,
      isAskedAgain: false,
      waitingRuns: new Set(),
      endedLater: [],
      pullRequest: pull?.state ?? null,
      session: of,
      spentUsd: kept.started * this.usdPerRun,
      isMacro: () => false,
      logs: new Map(),
      places: new Map(),
      threads: new Map(),
      ends: new Map(
        kept.state.runs.flatMap(({ id }) => {
          const end = this.endOf(id);
          return end === null ? [] : [[id, end] as const];
        }),
      ),
    };
    const facts = this.mutation.facts?.(truth, delivered, kept.state) ?? truth;
    const limits = this.mutation.limits?.(this.limits) ?? this.limits;
    const plain = decide(kept.state, happening, facts, limits);
    const decided = this.mutation.decided?.(plain, kept.state, delivered) ?? plain;
    this.check(kept, delivered, truth, decided, key);
    // What left nothing is not kept, as in the database.
    if (before === undefined && decided.conversation === newConversation && decided.takes === null) return;
    this.conversations.set(place, kept);
    kept.state = decided.conversation;
    if (decided.takes !== null) kept.taken.add(decided.takes);
    for (const each of decided.takesKept ?? []) kept.taken.add(each);
    this.carryOut(kept, pull?.sessionId ?? kept.sessionId, decided);
  }

  private isOver({ pullRequest }: Session): boolean {
    return pullRequest !== null && this.pulls.get(pullRequest)?.state !== "open";
  }

  private carryOut(kept: Kept, sessionId: string | null, { effects }: Decided): void {
    for (const effect of effects) {
      const what = effect.type === "answer" ? effect.key.replace(/^(told:\w+|\w+).*$/u, "$1") : effect.type;
      this.done.set(what, (this.done.get(what) ?? 0) + 1);
      if (effect.type === "answer") {
        const key = `${kept.subject.kind}:${kept.subject.number}:${effect.key}`;
        if (this.known.has(key)) continue;
        this.known.add(key);
        this.outbox.push({ key, subject: kept.subject, body: effect.text });
      } else if (effect.type === "followUp" && sessionId !== null) {
        this.runs.set(effect.runId, [sessionId]);
        const session = this.sessions.get(sessionId);
        if (session !== undefined) session.status = "running";
      } else if (effect.type === "session") {
        this.runs.set(effect.runId, [effect.runId]);
        kept.sessionId = effect.runId;
        this.sessions.set(effect.runId, {
          id: effect.runId,
          status: "running",
          pushedSha: null,
          pullRequest: null,
          summary: "",
          commits: new Set(),
        });
      }
    }
  }

  /** What is promised of each decision, by the truth and not by the decision's input. */
  private check(
    kept: Kept,
    delivered: Happening,
    truth: ConversationFacts,
    { effects, reason }: Decided,
    key: string | null,
  ): void {
    const place = `${this.name}, ${kept.subject.kind} ${kept.subject.number}`;
    const fail = (what: string): void => void this.violations.push(`${place}: ${what}`);
    const starts = effects.filter(({ type }) => type === "followUp" || type === "session" || type === "macro");
    kept.started += starts.length;
    if (kept.started > this.limits.turns) fail(`it started ${kept.started} runs`);
    if (delivered.type === "said" && reason === null) {
      if (truth.isOwn) fail("its own comment steered it");
      if (truth.isTaken) fail(`${key} was taken up twice`);
      if (delivered.commentId !== null) {
        if (kept.heeded.has(delivered.commentId)) fail(`comment ${delivered.commentId} was heeded twice`);
        kept.heeded.add(delivered.commentId);
      }
      if (delivered.by?.isBot === true && !this.limits.bots.includes(delivered.by.login)) fail("a bot steered it");
      if (delivered.by?.isBot !== true && truth.mayWrite !== true) fail("a stranger steered it");
      if (delivered.by?.isBot !== true) Object.assign(kept.inARow, { checks: 0, conflict: 0 });
    }
    if (truth.pullRequest !== "open" && kept.subject.kind === "pullRequest" && starts.length > 0)
      fail(`it started a run though the pull request is ${truth.pullRequest}`);
    for (const effect of effects) {
      if (effect.type === "answer" && effect.key.startsWith("run:")) {
        const answer = `${place} ${effect.key}`;
        if (this.answered.has(answer)) fail(`${effect.key} was answered twice`);
        this.answered.add(answer);
      }
      if (effect.type === "resolve") {
        const before = effects.slice(0, effects.indexOf(effect));
        const reply = before.find((each) => each.type === "answer" && each.key === effect.after);
        if (reply?.type !== "answer" || reply.threadId !== effect.threadId)
          fail("a thread was resolved without its answer");
        else if (!reply.text.startsWith("Done in ")) fail("a thread was resolved without a commit");
      }
      if (effect.type === "followUp" && effect.text.startsWith("On your last commit")) {
        kept.inARow.checks += 1;
        if (kept.inARow.checks > this.limits.checkRounds) fail("it tried too often to fix checks");
        if (!effect.text.includes((truth.session?.pushedSha ?? "?").slice(0, 10))) fail("a round for an old commit");
      }
      if (effect.type === "followUp" && effect.mergesTarget) {
        kept.inARow.conflict += 1;
        if (kept.inARow.conflict > this.limits.conflictRounds) fail("it merged too often");
      }
    }
  }
}
