import { SessionError } from "../../domain/errors/errors.ts";
import { isAddressProblem, parseRepositoryUrl, type RepositoryAddress } from "../../domain/repositories/repository.ts";
import type { Feedback, ForgeComment, NewComment } from "../../forges/feedback/feedback.ts";
import type { OwnForges } from "../../forges/connections/organization-forges.ts";
import type { Reply } from "../../replies/reply.ts";
import type { AnswerAction } from "../../store/answers/answers.ts";
import type { ClaimedAnswer, WrittenAnswer } from "../../store/answers/sending.ts";

/** Where answers are written. */
export interface Writers {
  readonly forgesOf: (organizationId: string) => Promise<OwnForges>;
  readonly replies: Reply;
  /** The token of a trigger's service; null if it has none, or is gone. */
  readonly replyToken: (organizationId: string, triggerId: string) => Promise<string | null>;
}

/** An answer without a destination, which is final. */
export class NowhereToAnswer extends Error {}

const nothingToRecord: WrittenAnswer = { externalId: null, idScope: null, url: null };

/**
 * Writes an answer where it belongs. Idempotent.
 * @throws NowhereToAnswer, and what `Feedback` and `Reply` throw; the signal's reason
 */
export async function writeAnswer(
  writers: Writers,
  answer: ClaimedAnswer,
  signal: AbortSignal,
): Promise<WrittenAnswer> {
  const { action, id, text, createdAt } = answer;
  if (action.kind === "service") {
    const token = await writers.replyToken(answer.organizationId, action.triggerId);
    if (token === null) throw new NowhereToAnswer(`the trigger has no token of ${action.target.service} any more`);
    const sent = await writers.replies.send(action.target, text, {
      id,
      token,
      isRepeated: answer.attempts > 1,
      signal,
    });
    return { externalId: sent.id, idScope: null, url: sent.url };
  }
  if (action.kind === "resolution" && answer.replyStatus !== "sent")
    throw new NowhereToAnswer("the thread stays open, since it was not answered");
  const { address, feedback } = await placeOf(writers, answer);
  const comment: NewComment = { key: id, text, since: createdAt };
  switch (action.kind) {
    case "comment":
      return writtenAs(await feedback.comment(address, action.subject, comment, signal));
    case "reply":
      return writtenAs(await reply(feedback, address, { action, comment }, signal));
    case "resolution":
      if (!(await feedback.resolve(address, action.thread, signal)))
        throw new NowhereToAnswer("the thread stays open: this forge has no call that resolves it");
      return nothingToRecord;
    case "reaction":
      return react(feedback, address, { action, comment }, signal);
    case "settings":
      await feedback.add(address, action.subject.number, action, signal);
      return nothingToRecord;
    case "status":
      await feedback.setStatus(address, action.sha, action, signal);
      return nothingToRecord;
  }
}

/**
 * Replies in a thread. If the forge no longer has the thread (its first comment was deleted, say), writes a comment
 * that says so, so that the person who asked gets the reply.
 */
async function reply(
  feedback: Feedback,
  address: RepositoryAddress,
  { action, comment }: { readonly action: Extract<AnswerAction, { kind: "reply" }>; readonly comment: NewComment },
  signal: AbortSignal,
): Promise<ForgeComment> {
  const { thread, otherwise = null } = action;
  try {
    return await feedback.reply(address, thread, comment, signal);
  } catch (error) {
    const isRefused = error instanceof SessionError && !error.retryable && error.code !== "repository_access_denied";
    if (!isRefused || otherwise === null) throw error;
    const text = `${otherwise}\n\n${comment.text}`;
    return feedback.comment(address, thread.subject, { ...comment, text }, signal);
  }
}

/** If the forge has no reaction, the acknowledgement is a comment. */
const seenInWords = "Seen.";

/** Reacts. If the forge has no such reaction, a short comment says the same of 👀, in the thread if there is one; of several only one does. */
async function react(
  feedback: Feedback,
  address: RepositoryAddress,
  { action, comment }: { readonly action: Extract<AnswerAction, { kind: "reaction" }>; readonly comment: NewComment },
  signal: AbortSignal,
): Promise<WrittenAnswer> {
  const { target, reaction, isMinor = false } = action;
  const isDone = await feedback.react(address, target, reaction, signal);
  if (isDone || reaction !== "eyes" || isMinor) return nothingToRecord;
  const { subject, commentId } = target;
  const words = { ...comment, text: seenInWords };
  return writtenAs(
    commentId === null
      ? await feedback.comment(address, subject, words, signal)
      : await feedback.reply(address, { subject, id: commentId }, words, signal),
  );
}

async function placeOf({ forgesOf }: Writers, { repositoryUrl, organizationId }: ClaimedAnswer) {
  const address = repositoryUrl === null ? null : parseRepositoryUrl(repositoryUrl);
  if (address === null || isAddressProblem(address)) {
    throw new NowhereToAnswer("the repository is no longer connected");
  }
  const { feedback }: { readonly feedback: Feedback | null } = (await forgesOf(organizationId)).forgeOf(address);
  if (feedback === null)
    throw new NowhereToAnswer(`nothing can be written at ${address.host ?? address.path}: it is plain git`);
  return { address, feedback };
}

function writtenAs({ id, url, idScope }: ForgeComment): WrittenAnswer {
  return { externalId: id, idScope: idScope ?? null, url };
}
