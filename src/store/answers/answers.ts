import { createHash } from "node:crypto";
import type { Queryable } from "../../database/database.ts";
import type { CommitStatus, IdScope, Reaction, ReactionTarget, Subject, Thread } from "../../domain/answers/answer.ts";
import type { ReplyTarget } from "../../domain/automations/reply-target.ts";
import { cutMiddle, storableJson } from "../../domain/fields/text.ts";
import type { PullRequestAddition } from "../../domain/repositories/pull-request-settings.ts";
import { isUuid } from "../../domain/fields/uuid.ts";
import { commentMarkKey } from "../../domain/repositories/comment-mark.ts";

/**
 * Channel on which workers learn that an answer was queued. The code that queues one notifies it after the commit;
 * without, it is found within a second.
 */
export const answersChannel = "offstage_answers";

/** The text or change, and its place. */
export type AnswerAction =
  | { readonly kind: "comment"; readonly subject: Subject }
  /**
   * @property otherwise if the thread is gone, it is a comment that begins with these words; null, or omitted by the version before: it is
   * written nowhere then
   */
  | { readonly kind: "reply"; readonly thread: Thread; readonly otherwise?: string | null }
  /** @property after key of the thread's reply: without that, the thread stays open */
  | { readonly kind: "resolution"; readonly thread: Thread; readonly after: string }
  /** @property isMinor whether there are others for the same; if the forge has no reactions, nothing is written in its place */
  | {
      readonly kind: "reaction";
      readonly target: ReactionTarget;
      readonly reaction: Reaction;
      readonly isMinor?: boolean;
    }
  | ({ readonly kind: "status"; readonly sha: string } & CommitStatus)
  | ({ readonly kind: "settings"; readonly subject: Subject } & PullRequestAddition)
  | { readonly kind: "service"; readonly target: ReplyTarget; readonly triggerId: string };

/** An answer to send once. */
export interface NewAnswer {
  readonly organizationId: string;
  /** The session whose page shows it. */
  readonly sessionId: string | null;
  /** The repository to which it is written; null only for a service. */
  readonly repositoryId: string | null;
  /** Its cause, such as the event and the kind of answer; at most 500 characters. Unique in an organization. */
  readonly key: string;
  readonly action: AnswerAction;
  /** Markdown for forges and Linear, plain for Slack; "" for a reaction, a resolution, a status or settings. Without secrets. */
  readonly text: string;
}

const longestKey = 500;
/** GitHub takes 65,536 characters, with our mark. */
const longestText = 60_000;

/**
 * Answers go out in the order of their due times. A reaction acknowledges a comment to a person who waits, so it is due
 * before all answers queued in the last so many seconds; answers that have waited longer still go first.
 */
const reactionsLeadSeconds = 60;

/**
 * Queues an answer in the caller's transaction, once for its organization and key: a second call changes nothing.
 * @throws RangeError if the key is too long, or an answer to a forge has no repository
 */
export async function queueAnswer(queryable: Queryable, answer: NewAnswer): Promise<void> {
  const { organizationId, sessionId, repositoryId, key, action, text } = answer;
  if (key === "" || key.length > longestKey)
    throw new RangeError(`an answer's key must have 1 to ${longestKey} characters`);
  if (repositoryId === null && action.kind !== "service")
    throw new RangeError("an answer to a forge needs a repository");
  await queryable.query({
    name: "queue_answer",
    text: `insert into answer (organization_id, session_id, repository_id, key, action, text, host, place, next_attempt_at)
      select $1, (select id from session where id = $2 and organization_id = $1), $3, $4, $5, $6,
        coalesce($7, split_part((select address_key from repository where id = $3 and organization_id = $1), '/', 1)), $8,
        now() - $9::integer * interval '1 second'
      on conflict (organization_id, key) do nothing`,
    values: [
      organizationId,
      sessionId,
      repositoryId,
      key,
      storableJson(action),
      cutMiddle(text, longestText),
      action.kind === "service" ? action.target.service : null,
      placeOf(repositoryId, action),
      action.kind === "reaction" ? reactionsLeadSeconds : 0,
    ],
  });
}

/**
 * The lane of answers that must go out in their order: comments in one place, and the states of one commit. Of fixed
 * length, since names are untrusted. Reactions have none.
 */
function placeOf(repositoryId: string | null, action: AnswerAction): string | null {
  const parts = partsOf(action);
  if (parts === null) return null;
  return createHash("sha256")
    .update(JSON.stringify([repositoryId, action.kind === "resolution" ? "reply" : action.kind, ...parts]))
    .digest("base64url");
}

function partsOf(action: AnswerAction): readonly unknown[] | null {
  switch (action.kind) {
    case "comment":
      return [action.subject.kind, action.subject.number];
    case "reply":
    // After what was replied there.
    case "resolution":
      return [action.thread.subject.kind, action.thread.subject.number, action.thread.id];
    case "status":
      return [action.sha, action.name];
    case "service":
      return action.target.service === "slack"
        ? [action.target.service, action.target.channel, action.target.threadId]
        : [action.target.service, action.target.issueId];
    case "reaction":
    case "settings":
      return null;
  }
}

/** A comment that an event is about. */
export interface SeenComment {
  readonly organizationId: string;
  readonly repositoryId: string;
  readonly commentId: string;
  readonly body: string;
  /**
   * See `idScopesOf`. Omitted: any in the repository, which matches too many comments on GitHub, and none on Azure
   * DevOps.
   */
  readonly idScopes?: readonly IdScope[];
}

/**
 * Whether a comment of a forge is one of ours: by its recorded id, whatever its author, or by the key of our mark at
 * its end. The mark counts also if another id is recorded, and of any organization: a copy by a program, or a comment
 * of another organization, is not a person's own words either.
 */
export async function isOwnComment(queryable: Queryable, comment: SeenComment): Promise<boolean> {
  const key = commentMarkKey(comment.body);
  const { rowCount } = await queryable.query({
    name: "is_own_comment",
    // Rows of one repository are merged when its address is known to be the same.
    text: `select from answer where organization_id = $1 and external_id = $3 and repository_id in (
          select same.id from repository same join repository given
            on (same.organization_id, same.address_key) = (given.organization_id, given.address_key)
          where given.id = $2 and given.organization_id = $1)
        and (id_scope is null or ($4::text[] is null and id_scope not like 'thread %') or id_scope = any($4))
      union all select from answer where id = $5 limit 1`,
    values: [
      comment.organizationId,
      comment.repositoryId,
      comment.commentId,
      comment.idScopes ?? null,
      key !== null && isUuid(key) ? key : null,
    ],
  });
  return rowCount === 1;
}
