import { answerPauseMs } from "../../domain/answers/retry.ts";
import type { Mask } from "../../domain/masking/mask.ts";
import { settleMs } from "../../forges/feedback/feedback.ts";
import { createClaimLoop } from "../../lifecycle/claim-loop.ts";
import { withListener } from "../../lifecycle/periodic.ts";
import type { Service } from "../../lifecycle/service.ts";
import type { Database } from "../../database/database.ts";
import type { Metrics } from "../../metrics/metrics.ts";
import type { Logger } from "../../observability.ts";
import { answersChannel } from "../../store/answers/answers.ts";
import { claimAnswers, recordFailed, recordSent, type ClaimedAnswer, type Lane } from "../../store/answers/sending.ts";
import { readAnswerFailure } from "./answer-failure.ts";
import { writeAnswer, type Writers } from "./write-answer.ts";

/** Dependencies for sending answers. */
export interface AnswerSenderOptions extends Writers {
  readonly database: Database;
  readonly logger: Logger;
  readonly metrics: Pick<Metrics, "answerAttempted">;
  /** Of the server's own secrets. */
  readonly mask: Mask;
  /** How long an attempt may take, in ms; omitted: as long as the lease allows. */
  readonly timeLimitMs?: number;
}

const pollEveryMs = 1_000;
/**
 * Answers that one worker sends at once: in all, to one host, of one organization, and of that to one host. Whose forge is slow holds up
 * nobody else, nor its organization's other forges.
 */
const concurrency = 64;
const mostOfHost = 32;
const mostOfOrganization = 24;
const mostOfLane = 16;
/** Longer than the looks for a comment whose answer was lost. */
const attemptLimitMs = 75_000;
/** If it has expired, the sender died, and what it sent at the last moment is listed by now. */
const leaseMs = attemptLimitMs + 2 * settleMs;
/** How long the answers under way get when the worker stops. */
const graceMs = 5_000;

/**
 * Makes the sender of the outbox's answers: each once: before a repetition it searches for an earlier result. Any
 * number of senders may run at the same time. `stop` settles when the answers under way are sent, or put back.
 */
export function createAnswerSender(options: AnswerSenderOptions): Service {
  const { database, logger } = options;
  const resting = new Map<string, { readonly lane: Lane; readonly until: number }>();
  const loop = createClaimLoop<ClaimedAnswer>({
    atOnce: concurrency,
    everyMs: pollEveryMs,
    claim: (underWay) =>
      claimAnswers(database, {
        limit: concurrency - underWay.length,
        leaseMs,
        underWay,
        mostOfHost,
        mostOfOrganization,
        mostOfLane,
        resting: restingLanes(),
      }),
    work: (answer, hurry) => send(options, answer, hurry, (restMs) => rest(answer, restMs)),
    graceMs,
    onClaimFailure: (error) => logger.warn({ err: error }, "could not claim answers; will retry"),
    onWorkFailure: (error, { id }) =>
      logger.warn({ err: error, answerId: id }, "could not record an answer; will retry"),
  });

  function rest({ organizationId, host }: Lane, ms: number): void {
    resting.set(`${organizationId} ${host}`, { lane: { organizationId, host }, until: performance.now() + ms });
  }

  function restingLanes(): Lane[] {
    for (const [key, { until }] of resting) if (until <= performance.now()) resting.delete(key);
    return [...resting.values()].map(({ lane }) => lane);
  }

  return withListener(loop, (now) => database.listen(answersChannel, now));
}

async function send(
  options: AnswerSenderOptions,
  answer: ClaimedAnswer,
  stopping: AbortSignal,
  rest: (ms: number) => void,
): Promise<void> {
  const { database, metrics, logger, timeLimitMs = attemptLimitMs } = options;
  const { kind } = answer.action;
  const startedAt = performance.now();
  const secondsSince = () => (performance.now() - startedAt) / 1_000;
  try {
    const masked = { ...answer, text: await maskedText(options, answer) };
    const written = await writeAnswer(options, masked, AbortSignal.any([stopping, AbortSignal.timeout(timeLimitMs)]));
    await recordSent(database, answer, written);
    metrics.answerAttempted(kind, "sent", secondsSince());
  } catch (error) {
    if (stopping.aborted) {
      await recordFailed(database, answer, "its worker stopped", { retryMs: settleMs });
      return;
    }
    const { problem, passes, leastMs, restMs, isOurs } = readAnswerFailure(error);
    if (isOurs) logger.warn({ err: error, answerId: answer.id, kind }, "could not send an answer; will retry");
    if (restMs !== null) rest(restMs);
    const pauseMs = answerPauseMs(kind, answer.attempts, leastMs);
    const outcome = !passes ? "refused" : pauseMs === null ? "dead" : { retryMs: pauseMs };
    const counts = await recordFailed(database, answer, options.mask.text(problem), outcome);
    const outcomeName = typeof outcome === "string" ? outcome : "delayed";
    metrics.answerAttempted(kind, outcomeName, secondsSince());
    if (counts && typeof outcome === "string") {
      logger.info({ answerId: answer.id, sessionId: answer.sessionId, kind, problem }, `an answer is ${outcome}`);
    }
  }
}

/** The text without the server's secrets, and those of the organization's forges. */
async function maskedText(
  { mask, forgesOf }: AnswerSenderOptions,
  { text, organizationId }: ClaimedAnswer,
): Promise<string> {
  if (text === "") return text;
  return mask.with((await forgesOf(organizationId)).secrets()).text(text);
}
