-- needs: is_under_way, move_job, supersede_runs
-- Lets jobs go whose time has come: those that waited for quiet (debounce), and the oldest of each key that no run holds any more.
-- Those of a paused automation stay held; those of an automation or a trigger that is gone or disabled start nothing. One caller at a
-- time does it; the others return at once. The automations are locked before their jobs, as in fire_trigger, and in the order of their
-- ids, as by others who lock several, so that no trigger is decided meanwhile and nobody waits in a circle: which runs are over is written by a statement of its own before.
-- Measured: 374 µs, 42 pages: one job has waited for quiet.
-- Callers: src/store/automations/firings.ts. A worker calls it once a second.
-- @returns how many were let go
create or replace function release_held_jobs() returns integer language plpgsql set plan_cache_mode to force_generic_plan as $$
declare
  due uuid[];
  held record;
  is_busy boolean;
  released integer := 0;
begin
  if not pg_try_advisory_xact_lock(4747011) then return 0; end if;
  due := array(
    select job.id
      from job join automation on automation.id = job.automation_id left join trigger on trigger.id = job.trigger_id
      where job.held_until is not null and (
        automation.deleted_at is not null or trigger.enabled is false or trigger.deleted_at is not null
        or (not automation.paused and job.held_until <= clock_timestamp())
        -- Only heads that are free: busy ones of one organization must not fill the round of all.
        or (not automation.paused and job.held_until = 'infinity' and job.id = (
          select first.id from job as first where first.automation_id = job.automation_id
            and first.concurrency_key = job.concurrency_key and first.holds_key and first.held_until = 'infinity'
          order by first.created_at, first.id limit 1)
        and not exists (
          select from job as other
          where other.automation_id = job.automation_id and other.concurrency_key = job.concurrency_key and other.holds_key
            and other.id <> job.id and other.held_until is null and is_under_way(other))))
      order by job.created_at limit 1000);
  if due = '{}' then return 0; end if;
  perform from automation where id in (select automation_id from job where id = any(due)) order by id for no key update;
  for held in
    select job.id, job.automation_id, job.concurrency_key, job.holds_key, job.held_until < 'infinity' as was_quiet,
        automation.deleted_at is not null or trigger.enabled is false or trigger.deleted_at is not null as is_gone,
        coalesce(trigger.concurrency ->> 'policy', 'queue') as policy
      from job join automation on automation.id = job.automation_id left join trigger on trigger.id = job.trigger_id
      -- As it is now that nobody can change it: it may have been paused since.
      where job.id = any(due) and job.held_until is not null
        and (not automation.paused or automation.deleted_at is not null or trigger.enabled is false or trigger.deleted_at is not null)
      order by job.created_at
  loop
    -- The key of one that holds none only tells it from others that wait for quiet.
    is_busy := held.holds_key and exists (
      select from job
      where job.automation_id = held.automation_id and job.concurrency_key = held.concurrency_key and job.holds_key
        and job.id <> held.id and job.held_until is null and is_under_way(job));
    if held.is_gone or (is_busy and held.was_quiet and held.policy = 'skip') then
      perform move_job(held.id, 'pending', 'cancelled', why => case
        when held.is_gone then 'its automation or its trigger was deleted or disabled while it waited'
        else 'a run of "' || left(held.concurrency_key, 200) || '" is under way (concurrency: skip)' end);
    elsif is_busy then
      update job set held_until = 'infinity', held_since = null where id = held.id and held.was_quiet and status = 'pending';
      if found and held.policy = 'cancelOlder' then
        perform supersede_runs(held.automation_id, held.concurrency_key, held.id, true);
      end if;
    else
      update job set held_until = null, held_since = null, updated_at = now() where id = held.id and status = 'pending';
      if found then released := released + 1; end if;
    end if;
  end loop;
  return released;
end $$;
