import { z } from "zod";
import type { Subject } from "../answers/answer.ts";

const text = z.string().min(1).max(2_000);

/** Where the answer to an event is written: the thread of a message in Slack, or an issue in Linear. */
export const replyTargetSchema = z.discriminatedUnion("service", [
  z.object({ service: z.literal("slack"), channel: text, threadId: text }),
  z.object({ service: z.literal("linear"), issueId: text }),
]);
/** See `replyTargetSchema`. */
export type ReplyTarget = z.infer<typeof replyTargetSchema>;

/** The fields of a `sourceEventSchema` event that say where its answer goes. */
const answerableSchema = z.discriminatedUnion("source", [
  z.object({ source: z.literal("slack"), message: z.object({ channel: text, threadId: text }) }),
  z.object({ source: z.literal("linear"), issue: z.object({ id: text }) }),
]);

/** Where the answer to an event is written; null if its source takes none. @param event as conditions and templates see it */
export function replyTargetOf(event: unknown): ReplyTarget | null {
  const { data } = answerableSchema.safeParse(event);
  if (data === undefined) return null;
  if (data.source === "linear") return { service: "linear", issueId: data.issue.id };
  return { service: "slack", channel: data.message.channel, threadId: data.message.threadId };
}

/** An issue or a pull request of a forge that takes the result of a run whose event is about it. */
export interface ForgeReplyTarget {
  readonly service: "forge";
  /** That delivered the event: if it is deleted, nothing is said. */
  readonly connectionId: string;
  readonly repositoryId: string;
  readonly subject: Subject;
}

/** The exact place at which a result is reported. */
export interface ForgeReply {
  readonly target: ForgeReplyTarget;
  /** The thread that it is said in, since not everybody may read it; null: it is a comment on the subject itself. */
  readonly threadId: string | null;
}

/**
 * Most runs of all automations that are reported at one issue or pull request, or in one thread of Slack or at one
 * issue of Linear, so that bots that answer each other come to an end.
 */
export const mostRepliesOfSubject = 50;
