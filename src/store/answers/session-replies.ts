import type { Database, Queryable } from "../../database/database.ts";
import {
  type ReplyStage,
  type RepliedSession,
  whatToComment,
  whatToSay,
  whatToSayOfFailedRun,
} from "../../domain/answers/session-reply.ts";
import {
  mostRepliesOfSubject,
  replyTargetOf,
  type ForgeReply,
  type ForgeReplyTarget,
  type ReplyTarget,
} from "../../domain/automations/reply-target.ts";
import { storableJson } from "../../domain/fields/text.ts";
import { answersChannel, queueAnswer, type AnswerAction } from "./answers.ts";

/**
 * Records the place of a run's answers, if its trigger is of that service and has a token, unless that place has its
 * most answers. Idempotent. A worker polls the session from then on: its status may have changed before.
 */
export async function noteReplyTarget(
  queryable: Queryable,
  { jobId, sessionId, target }: { readonly jobId: string; readonly sessionId: string; readonly target: ReplyTarget },
): Promise<void> {
  await queryable.query(
    `insert into session_reply (session_id, trigger_id, target)
     select $2, trigger.id, $3::jsonb from job join trigger on trigger.id = job.trigger_id and ${repliesToSource}
     where job.id = $1 and trigger.settings ->> 'source' = $4 and (select count(*) from (
       select from session_reply earlier join session on session.id = earlier.session_id and session.organization_id = job.organization_id
       where earlier.target = $3::jsonb limit ${mostRepliesOfSubject}) as counted) < ${mostRepliesOfSubject}
     on conflict do nothing`,
    [jobId, sessionId, storableJson(target), target.service],
  );
}

/**
 * Queues the report of a job that failed before it had a session, in the transaction in which it failed: as a reply to
 * its event, if its trigger is of that service and has a token. A worker finds it within a second.
 * @param reason a sentence for readers
 */
export async function sayRunFailed(
  transaction: Queryable,
  { jobId, reason }: { readonly jobId: string; readonly reason: string },
): Promise<void> {
  const { rows } = await transaction.query<FailedRun>(
    `select job.organization_id as "organizationId", job.payload, trigger.id as "triggerId", trigger.settings ->> 'source' as source
     from job join trigger on trigger.id = job.trigger_id and ${repliesToSource}
     where job.id = $1 and not exists (select from session where session.job_id = job.id)`,
    [jobId],
  );
  const [run] = rows;
  const target = replyTargetOf(run?.payload);
  if (run === undefined || target === null || target.service !== run.source) return;
  const { organizationId, triggerId } = run;
  await queueAnswer(transaction, {
    organizationId,
    sessionId: null,
    repositoryId: null,
    key: `job ${jobId} failed`,
    action: { kind: "service", target, triggerId },
    text: whatToSayOfFailedRun(reason, target.service === "linear"),
  });
}

interface FailedRun {
  readonly organizationId: string;
  readonly payload: unknown;
  readonly triggerId: string;
  readonly source: string;
}

/**
 * Records that a run's result goes to the issue or pull request that its event is about, unless that has its most
 * answers. Idempotent.
 */
export async function noteForgeReply(
  queryable: Queryable,
  { jobId, sessionId, target, threadId }: ForgeReply & { readonly jobId: string; readonly sessionId: string },
): Promise<void> {
  await queryable.query(
    `insert into session_reply (session_id, trigger_id, target, thread_id)
     select $2, trigger.id, $3::jsonb, $4 from job join trigger on trigger.id = job.trigger_id and ${repliesToSubject}
     where job.id = $1 and (select count(*) from (
       select from session_reply earlier where earlier.target = $3::jsonb limit ${mostRepliesOfSubject}) as counted) < ${mostRepliesOfSubject}
     on conflict do nothing`,
    [jobId, sessionId, storableJson(target), threadId],
  );
}

/** SQL for whether a trigger is of a service that takes answers, and can write there. */
const repliesToSource = `trigger.deleted_at is null and trigger.type = 'source' and trigger.settings -> 'hasReplyToken' = 'true'`;

/** SQL for whether a trigger wants results at the subject of its event. */
const repliesToSubject = `trigger.deleted_at is null and trigger.type = 'forge' and trigger.settings ->> 'reply' = 'subject'`;

/** Time after which a session is polled again whose agent has not begun, in seconds. */
const againSeconds = 2;
const batch = 50;

interface DueReply extends RepliedSession {
  readonly sessionId: string;
  readonly organizationId: string;
  readonly triggerId: string;
  readonly target: ReplyTarget | ForgeReplyTarget;
  /** See `ForgeReply`. */
  readonly threadId: string | null;
  readonly said: ReplyStage | null;
  /** Of a forge: whether its trigger still says so, and its connection is there. */
  readonly isWanted: boolean;
}

/**
 * Queues the replies about sessions whose status has changed, each in one transaction with its record: after a kill, no
 * reply is missing or repeated.
 * @param linkOf address of a session's page
 * @returns how many sessions were read
 */
export async function sayWhatIsDue(database: Database, linkOf: (sessionId: string) => string): Promise<number> {
  const looked = await database.transaction(async (transaction) => {
    const due = await takeDue(transaction);
    for (const reply of due) await say(transaction, reply, linkOf(reply.sessionId));
    return due.length;
  });
  if (looked > 0) database.notify(answersChannel, "");
  return looked;
}

async function takeDue(transaction: Queryable): Promise<readonly DueReply[]> {
  const { rows } = await transaction.query<DueReply>({
    name: "take_due_replies",
    text: `select due.session_id as "sessionId", due.trigger_id as "triggerId", due.target, due.said, due.thread_id as "threadId",
        session.organization_id as "organizationId", session.status, session.summary, session.failure,
        exists (select from message where message.session_id = session.id and message.status <> 'pending'
            and not (message.position = 1 and exists (
              select from session_gate where session_gate.session_id = session.id and session_gate.outcome = 'filtered')))
          as "hasBegun",
        exists (select from trigger join forge_connection connection on connection.deleted_at is null
            and connection.id = (due.target ->> 'connectionId')::uuid and connection.organization_id = session.organization_id
          where trigger.id = due.trigger_id and ${repliesToSubject}) as "isWanted",
        coalesce((select array_agg(url order by created_at) from pull_request where pull_request.session_id = session.id), '{}')
          as "pullRequestUrls"
      from session_reply due join session on session.id = due.session_id
      where due_at <= now() order by due_at limit ${batch} for update of due skip locked`,
  });
  return rows;
}

async function say(transaction: Queryable, reply: DueReply, link: string): Promise<void> {
  const { sessionId, organizationId, target } = reply;
  const toSay =
    target.service !== "forge"
      ? whatToSay(reply, reply.said, link, target.service === "linear")
      : reply.isWanted
        ? whatToComment(reply, reply.said, link)
        : null;
  const isSaid = toSay !== null && toSay !== "wait";
  if (isSaid) {
    const key = `session ${sessionId} ${toSay.said}`;
    await queueAnswer(transaction, { organizationId, sessionId, key, text: toSay.text, ...placeOf(reply) });
  }
  await transaction.query(
    "update session_reply set said = coalesce($2, said), due_at = now() + $3 * interval '1 second' where session_id = $1",
    [sessionId, isSaid ? toSay.said : null, toSay === "wait" ? againSeconds : null],
  );
}

function placeOf({ target, triggerId, threadId }: DueReply): { repositoryId: string | null; action: AnswerAction } {
  if (target.service === "forge") {
    const { repositoryId, subject } = target;
    const thread = threadId === null ? null : { subject, id: threadId };
    return {
      repositoryId,
      action: thread === null ? { kind: "comment", subject } : { kind: "reply", thread, otherwise: null },
    };
  }
  return { repositoryId: null, action: { kind: "service", target, triggerId } };
}
