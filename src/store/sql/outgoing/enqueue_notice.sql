-- needs:
-- Writes that people may want to be told of a change, in its transaction. Whom it concerns is decided later, by a worker
-- (src/store/notices/deliveries.ts). Nothing is written if nobody of the organization wants to be told of anything.
-- Measured: 1.0 µs, 1 pages: nobody of the organization wants to be told of anything.
-- Callers: enqueue_webhooks.
-- @param change the type of a webhook's event; only those that src/domain/notices/notice.ts names are told to people
create or replace function enqueue_notice(organization uuid, change text, data jsonb) returns void language plpgsql as $$
begin
  if change not in ('session.completed', 'session.failed', 'session.waiting', 'pullRequest.opened', 'pullRequest.conflicted',
      'pullRequest.merged', 'automation.paused', 'automation.silent')
    or not exists (select from notice_preference where organization_id = organization) then
    return;
  end if;
  insert into notice (organization_id, kind, session_id, data) values (organization, change,
    case when change like 'session.%' then (data ->> 'id')::uuid when change like 'pullRequest.%' then (data ->> 'sessionId')::uuid end,
    data);
end $$;
