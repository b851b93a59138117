-- needs:
-- Whether an event may steer a session: it calls Offstage by name, or is about a pull request of a session, as far as the delivery tells.
-- What it really is about is decided by a worker.
-- Measured: 178 µs, 48 pages: a comment on a line of a pull request that is no session's.
-- Callers: receive_event.
-- @param hint `steeringHintOf` of src/domain/conversations/steering-hint.ts; null: it steers nothing
create or replace function steers(owner uuid, hint jsonb) returns boolean language plpgsql stable
  set plan_cache_mode to force_generic_plan as $$
begin
  if hint is null then return false; end if;
  if (hint ->> 'isCalled')::boolean then return true; end if;
  -- Most hints name one of the three alone, and each has statements of its own.
  if hint -> 'numbers' <> '[]' and exists (select from pull_request where organization_id = owner
      and number = any(array(select jsonb_array_elements_text(hint -> 'numbers'))::integer[])) then
    return true;
  end if;
  if hint ->> 'branch' is not null and exists (
      select from pull_request where organization_id = owner and head = hint ->> 'branch') then
    return true;
  end if;
  if hint ->> 'sha' is null then return false; end if;
  return exists (select from session_repository part join session on session.id = part.session_id
      where part.pushed_sha = hint ->> 'sha' and session.organization_id = owner)
    -- Its push may not be recorded yet.
    or exists (select from session_commit made join session on session.id = made.session_id
      where made.sha = hint ->> 'sha' and session.organization_id = owner);
end $$;
