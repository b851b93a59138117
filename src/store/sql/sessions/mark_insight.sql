-- needs:
-- Has the figures of the days counted again that a change concerns, in its transaction (src/store/insight/count.ts). A trigger, so that
-- what a node of the version before writes is counted too.
-- A session counts on the day on which it was created, a pull request on that on which it was opened, and what a model was used for on
-- that day. Which models a session used is part of the figures of its other days.
-- What is deleted for its age (`offstage.keeps_figures`: src/store/sessions/delete-session.ts) leaves the figures of its days as they
-- are, from then on.
-- Measured: 54 µs, 0 pages: a session ends.
-- Callers: the triggers below.
create or replace function mark_insight() returns trigger language plpgsql as $$
declare
  changed record;
  organization uuid;
  days date[];
begin
  if tg_table_name = 'session' and tg_op <> 'DELETE' then
    -- Each session begins and ends, and its day never changes: by the way of all others this took twice as long.
    insert into insight_mark (organization_id, day) values (new.organization_id, (new.created_at at time zone 'UTC')::date);
    return null;
  end if;
  if tg_op = 'DELETE' then changed := old; else changed := new; end if;
  case tg_table_name
  when 'session', 'pull_request' then
    organization := changed.organization_id;
    days := array[(changed.created_at at time zone 'UTC')::date];
    if tg_op = 'UPDATE' and old.created_at <> changed.created_at then
      days := days || (old.created_at at time zone 'UTC')::date;
    end if;
  when 'message' then
    select (array_agg(organization_id))[1], array_agg((created_at at time zone 'UTC')::date) into organization, days
    from pull_request where session_id = changed.session_id;
  when 'session_usage' then
    organization := changed.organization_id;
    days := array[changed.day];
    if tg_op = 'INSERT' then
      days := days || array(
        select (created_at at time zone 'UTC')::date from session where id = changed.session_id
        union select (created_at at time zone 'UTC')::date from pull_request where session_id = changed.session_id);
    end if;
  end case;
  if current_setting('offstage.keeps_figures', true) = 'on' then
    insert into insight_kept_day select organization, unnest(days) on conflict do nothing;
  else
    insert into insight_mark select organization, unnest(days);
  end if;
  return null;
end $$;
create or replace trigger mark_insight after insert or delete on session for each row execute function mark_insight();
create or replace trigger mark_insight_of_end after update of status on session for each row
when (old.finished_at is distinct from new.finished_at) execute function mark_insight();
create or replace trigger mark_insight after insert or delete or update of state, session_id, created_at on pull_request
for each row execute function mark_insight();
create or replace trigger mark_insight after insert or update of withdrawn_at on message for each row
when (new.position > 1) execute function mark_insight();
create or replace trigger mark_insight after insert or delete or update on session_usage for each row execute function mark_insight();
