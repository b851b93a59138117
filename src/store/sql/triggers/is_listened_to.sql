-- needs:
-- Whether an enabled trigger of the organization lists an event's name.
-- Measured: 67 µs, 4 pages: one of a hundred triggers lists the event.
-- Callers: receive_event, tell_triggers. src/store/automations/listening-triggers.ts finds these triggers by the same condition.
-- @param connection that delivered it; null: it is an event of Offstage itself, which a trigger hears whatever connection it names
create or replace function is_listened_to(owner uuid, happened text, connection text) returns boolean language plpgsql stable
  set plan_cache_mode to force_generic_plan as $$
begin
  return exists (
    select from trigger join automation on automation.id = trigger.automation_id and automation.deleted_at is null
    where trigger.organization_id = owner and type = 'forge' and enabled and trigger.deleted_at is null
      and settings -> 'events' ? happened
      and (connection is null or settings ->> 'connectionId' is null or settings ->> 'connectionId' = connection));
end $$;
