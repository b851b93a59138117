import type { Database } from "../../database/database.ts";
import type { Answer } from "../../domain/answers/answer.ts";
import type { Page, PageQuery } from "../../domain/fields/list.ts";
import { cursorColumn, isoTime, pageOf, readCursor, withoutCursor, type WithCursor } from "../cursor.ts";

const columns = `id, session_id as "sessionId", action ->> 'kind' as kind, repository_id as "repositoryId",
  action -> 'target' ->> 'service' as service,
  coalesce(action -> 'subject', action -> 'thread' -> 'subject', action -> 'target' -> 'subject') as subject,
  case action ->> 'kind' when 'reaction' then action ->> 'reaction'
    when 'status' then (action ->> 'name') || ': ' || (action ->> 'description') 
    when 'settings' then (action ->> 'field') || ': ' || (
      select string_agg(name, ', ' order by position) from jsonb_array_elements_text(action -> 'names') with ordinality as item (name, position))
    else text end as text,
  status, attempts, case when status = 'pending' then ${isoTime("next_attempt_at")} end as "nextAttemptAt", url, problem,
  ${isoTime("created_at")} as "createdAt", ${isoTime("updated_at")} as "updatedAt"`;

/**
 * Lists what was written, or is to be, because of a session, newest first.
 * @throws InvalidInputError if the cursor is malformed
 */
export async function listAnswers(
  database: Database,
  organizationId: string,
  sessionId: string,
  page: PageQuery,
): Promise<Page<Answer>> {
  const after = readCursor(page.cursor);
  const { rows } = await database.pool.query<WithCursor<Answer>>(
    `select ${columns}, ${cursorColumn("answer")} from answer
     where organization_id = $1 and session_id = $5
       and ($3::timestamptz is null or (created_at, id) < ($3::timestamptz, $4::uuid))
     order by created_at desc, id desc limit $2`,
    [organizationId, page.limit + 1, after?.createdAt, after?.id, sessionId],
  );
  return pageOf(rows, page.limit, withoutCursor);
}
