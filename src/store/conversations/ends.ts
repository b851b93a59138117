import type { Queryable } from "../../database/database.ts";
import type { RunEnd } from "../../domain/conversations/answers.ts";
import type { LockedConversation } from "./conversations.ts";

const runStatuses = { completed: "completed", failed: "failed", cancelled: "cancelled" } as const;

interface EndRow {
  readonly id: string;
  readonly status: string;
  readonly messageStatus: string | null;
  readonly isWithdrawn: boolean;
  readonly isSettled: boolean;
  readonly answer: string | null;
  readonly changed: boolean | null;
  readonly sessionId: string | null;
  readonly pushedSha: string | null;
  readonly pushedWithIt: string | null;
  /** Whether the pull request of what was pushed with it is there. */
  readonly isDelivered: boolean;
  readonly pullRequestUrl: string | null;
  readonly summary: string | null;
  readonly reason: string | null;
}

/**
 * How runs ended; those that have not are missing. What is gone counts as cancelled. Several turns may end before their session does:
 * each has its own words and its own commit.
 */
export async function readEnds(
  queryable: Queryable,
  { repositoryId, state }: Pick<LockedConversation, "repositoryId" | "state">,
  urls: { readonly commit: (sha: string) => string | null; readonly session: (id: string) => string },
): Promise<Map<string, RunEnd>> {
  const { rows } = await queryable.query<EndRow>(
    `select run.id, coalesce(session.status, case job.status when 'completed' then 'cancelled' else job.status end, 'cancelled') as status,
       message.status as "messageStatus", message.withdrawn_at is not null as "isWithdrawn", coalesce(message.position <= session.settled_messages, false) as "isSettled",
       message.answer, message.changed, message.pushed ->> part.position::text as "pushedWithIt",
       exists (select from pull_request where session_id = session.id and repository_id = $2
         and head_sha = message.pushed ->> part.position::text) as "isDelivered",
       session.id as "sessionId", part.pushed_sha as "pushedSha", session.summary,
       coalesce(session.failure ->> 'reason', job.error) as reason,
       (select url from pull_request where session_id = session.id and repository_id = $2 order by created_at desc limit 1) as "pullRequestUrl"
     from unnest($1::uuid[]) as run (id) left join job on job.id = run.id
     -- A session's first message has its id.
     left join message on message.id = coalesce(job.session_id, run.id)
     left join session on session.id = coalesce(message.session_id, job.session_id)
     left join session_repository part on part.session_id = session.id and part.repository_id = $2`,
    [state.runs.map(({ id }) => id), repositoryId],
  );
  return new Map(
    rows.flatMap((row): [string, RunEnd][] => {
      const end = endOf(row);
      if (end === null) return [];
      const { pullRequestUrl, reason, sessionId } = row;
      const commitUrl = end.pushedSha === null ? null : urls.commit(end.pushedSha);
      const sessionUrl = sessionId === null ? null : urls.session(sessionId);
      return [[row.id, { ...end, commitUrl, pullRequestUrl, reason, sessionUrl }]];
    }),
  );
}

function endOf(row: EndRow): Pick<RunEnd, "status" | "pushedSha" | "summary"> | null {
  const { messageStatus, isSettled, answer, changed, pushedSha, pushedWithIt, isDelivered, summary } = row;
  const status = runStatuses[row.status as keyof typeof runStatuses];
  if (row.isWithdrawn) return { status: "cancelled", pushedSha: null, summary: null };
  const own = { pushedSha: changed === false ? null : pushedWithIt, summary: answer };
  if (messageStatus === "done" && answer !== null) {
    // Its work was delivered, whatever becomes of the turns after it.
    if (isSettled) return { status: "completed", ...own };
    // The failure is of another repository of the session.
    if (status === "failed") return { status: isDelivered ? "completed" : "undelivered", ...own };
    return status === undefined ? null : { status, ...own };
  }
  if (status === undefined) return null;
  if (status === "completed" && messageStatus !== null && messageStatus !== "done") return null;
  return { status, pushedSha, summary };
}
