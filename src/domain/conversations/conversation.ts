import { z } from "zod";
import type { Calling } from "../repositories/calling.ts";

/** The subject: one pull request, or one issue. */
export interface ConversationSubject {
  readonly kind: "issue" | "pullRequest";
  readonly number: number;
}

const account = z.object({ id: z.string(), login: z.string(), isBot: z.boolean() });
/** A person or program on the forge. */
export type Speaker = z.infer<typeof account>;

/** A comment that a review may be about, kept until one takes it. */
const noteSchema = z.object({
  key: z.string(),
  /** Of which review it is: the forge's id, or whose it is if the forge has none. */
  group: z.string(),
  by: account,
  body: z.string(),
  path: z.string().nullable(),
  line: z.number().nullable(),
  /** Of several lines the first. */
  firstLine: z.number().optional(),
  hunk: z.string().nullable(),
  /** The thread that an answer goes to; null: a comment on the pull request. */
  threadId: z.string().nullable(),
  commentId: z.string(),
  /** Whether not everybody who may read the repository may read it; omitted: everybody may. */
  isConfidential: z.boolean().optional(),
  /** When it came, in ms since the epoch. Omitted: it is on lines. */
  at: z.number().optional(),
});
/** See `noteSchema`. */
export type Note = z.infer<typeof noteSchema>;

const askedSchema = z.object({
  group: z.string(),
  by: account,
  /** The review's own words; empty if only its notes say something. */
  body: z.string(),
  /** Whether the review itself is answered by a comment, in addition to the threads of its notes. */
  isAnswered: z.boolean(),
  /** Ms since the epoch: by then its notes should be here. */
  dueAt: z.number(),
});

const failedCheckSchema = z.object({
  kind: z.string(),
  id: z.string(),
  name: z.string(),
  url: z.string().nullable(),
});
/** A check that failed. */
export type FailedCheck = z.infer<typeof failedCheckSchema>;

/** A review that is all that a run was started for. */
const reviewOfRunSchema = z.object({
  group: z.string(),
  by: account,
  body: z.string(),
  /** Its comments, which are kept again if it is taken back. */
  notes: z.array(noteSchema),
});

const runSchema = z.object({
  /** Of the message, the session or the job. */
  id: z.string(),
  kind: z.enum(["followUp", "session", "macro", "checks", "conflict"]),
  /** Threads to answer once it ended; null: by a comment. */
  threads: z.array(z.string().nullable()),
  /** The place of each thread, as in `AnsweredThread`. Omitted: unknown. */
  places: z.array(z.string().nullable()).optional(),
  /** Whether not everybody may read the threads; omitted: everybody may. */
  isConfidential: z.boolean().optional(),
  /** The pushed commit when it began. */
  pushedSha: z.string().nullable(),
  /** The review that it was started for, which may be dismissed before its turn begins. Omitted: it was started for something else. */
  review: reviewOfRunSchema.optional(),
});
/** A started run, which is answered once it ended. */
export type Run = z.infer<typeof runSchema>;

/**
 * The state of a conversation: all that deciding needs to remember. The database keeps it as it is; `decide` in decide.ts
 * changes it, and `resumed` in sayings.ts if a person speaks to the session elsewhere than on the forge.
 */
export const conversationSchema = z.object({
  /** All started runs. */
  turns: z.number().int(),
  /** Of them by bots. */
  botTurns: z.number().int(),
  /** Sessions among them. */
  sessions: z.number().int(),
  /** Since a person last asked for something. */
  checkRounds: z.number().int(),
  /** Likewise. */
  conflictRounds: z.number().int(),
  /** Whether others have pushed since a person last asked for something. */
  isPushedByOthers: z.boolean(),
  /** Names of bounds that were reported. */
  told: z.array(z.string()),
  checks: z
    .object({ sha: z.string(), since: z.number(), dueAt: z.number(), failed: z.array(failedCheckSchema) })
    .nullable(),
  conflict: z.object({ sha: z.string(), dueAt: z.number() }).nullable(),
  notes: z.array(noteSchema),
  asked: z.array(askedSchema),
  /** Reviews that were taken up: their late comments are taken up on their own. */
  reviewed: z.array(z.string()),
  runs: z.array(runSchema),
});
/** See `conversationSchema`. */
export type Conversation = z.infer<typeof conversationSchema>;

/** A conversation before its first event. */
export const newConversation: Conversation = {
  turns: 0,
  botTurns: 0,
  sessions: 0,
  checkRounds: 0,
  conflictRounds: 0,
  isPushedByOthers: false,
  told: [],
  checks: null,
  conflict: null,
  notes: [],
  asked: [],
  reviewed: [],
  runs: [],
};

/** Limits on what a conversation may start. */
export interface ConversationLimits {
  /** The word that calls Offstage, without `@`. */
  readonly mention: string;
  /** All runs, whatever started them. */
  readonly turns: number;
  /** Of them, those that bots ask for. */
  readonly botTurns: number;
  /** Sessions of one issue. */
  readonly sessions: number;
  /** Rounds of red checks in a row; 0: none. */
  readonly checkRounds: number;
  /** Merges of a target branch in a row; 0: none. */
  readonly conflictRounds: number;
  /** The total cost of its sessions, in dollars, after which nothing more is started. */
  readonly usd: number;
  /** Bots that steer, by their login in lower case. */
  readonly bots: readonly string[];
  /** Whether a thread that was answered with a commit is resolved then. */
  readonly resolvesThreads: boolean;
  /** For so long red checks of one commit are gathered, in ms. */
  readonly checksMs: number;
  /** For so long comments of one review are gathered, in ms. */
  readonly reviewMs: number;
}

/** The place of a thread, by the fields of a comment in it; null: it is on no lines. */
export function threadPlaceOf({
  path,
  line,
}: {
  readonly path: string | null;
  readonly line: number | null;
}): string | null {
  return path === null ? null : line === null ? path : `${path}, line ${line}`;
}

/** The limits with what a connection says itself of who calls Offstage by what. */
export function limitsWith(limits: ConversationLimits, { mention, allowedBots }: Calling): ConversationLimits {
  return { ...limits, mention: mention ?? limits.mention, bots: allowedBots ?? limits.bots };
}

/** When something of the conversation is due, in ms since the epoch; null: nothing is. Runs are read as they end. */
export function dueAt({ checks, conflict, asked }: Conversation): number | null {
  const times = [checks?.dueAt, conflict?.dueAt, ...asked.map((each) => each.dueAt)].filter(
    (time) => time !== undefined,
  );
  return times.length === 0 ? null : Math.min(...times);
}
