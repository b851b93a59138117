/**
 * SQL: a session that is over and not archived has an outcome that a person who asked for it has not looked at. The index `session_outcome`
 * has a person's by their end.
 * @param session name of a row of the table
 * @param person SQL of the person's id
 */
export const isUnread = (session: string, person: string): string => `${session}.requested_by = ${person}
  and ${session}.archived_at is null and ${session}.finished_at is not null
  and ${session}.finished_at > (select read_until from user_account where user_account.id = ${person})
  and not exists (select from session_read mark
    where mark.user_id = ${person} and mark.session_id = ${session}.id and mark.read_at >= ${session}.finished_at)`;
