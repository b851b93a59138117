-- needs: enqueue_job_webhooks
-- Lets jobs go whose time has come: those that waited for quiet (debounce), and the oldest of each key that no run holds any more.
-- One caller at a time does it; the others return at once. The automation is locked as in fire_trigger, so that no trigger is
-- decided meanwhile.
-- Caller: src/store/automations/firings.ts, once a second.
-- @returns how many were let go
create or replace function release_held_jobs() returns integer language plpgsql set plan_cache_mode to force_generic_plan as $$
declare
  held record;
  is_busy boolean;
  released integer := 0;
  ended job;
begin
  if not pg_try_advisory_xact_lock(4747011) then return 0; end if;

  update job set holds_key = false
    where holds_key and status in ('completed', 'failed', 'cancelled')
      and not exists (select from session where session.id = job.session_id
        and session.status not in ('completed', 'failed', 'cancelled'));

  for held in
    select job.id, job.automation_id, job.concurrency_key, job.held_until < 'infinity' as was_quiet,
        coalesce(trigger.concurrency ->> 'policy', case when job.concurrency_key is not null then 'queue' end) as policy
      from job left join trigger on trigger.id = job.trigger_id
      where job.held_until <= clock_timestamp() or (job.held_until = 'infinity' and job.id = (
        select first.id from job as first where first.automation_id = job.automation_id
          and first.concurrency_key = job.concurrency_key and first.holds_key and first.held_until = 'infinity'
        order by first.created_at, first.id limit 1))
      order by job.created_at limit 1000
  loop
    perform from automation where id = held.automation_id for no key update;
    is_busy := held.policy is not null and held.concurrency_key is not null and exists (
      select from job left join session on session.id = job.session_id
      where job.automation_id = held.automation_id and job.concurrency_key = held.concurrency_key and job.holds_key
        and job.id <> held.id and job.held_until is null
        and (job.status in ('pending', 'running') or session.status not in ('completed', 'failed', 'cancelled')));
    if is_busy and held.was_quiet and held.policy = 'skip' then
      update job set status = 'cancelled', held_until = null, holds_key = false, updated_at = now(),
          error = 'a run of "' || left(held.concurrency_key, 200) || '" is under way (concurrency: skip)'
        where id = held.id and status = 'pending' returning * into ended;
      if ended.id is not null then perform enqueue_job_webhooks(ended); end if;
    elsif is_busy then
      update job set held_until = 'infinity', held_since = null where id = held.id and held.was_quiet;
      if held.was_quiet and held.policy = 'cancelOlder' then
        update job set superseded = true, updated_at = now(),
            error = coalesce(error, 'a newer trigger took its place (concurrency: cancelOlder)')
          where automation_id = held.automation_id and concurrency_key = held.concurrency_key and holds_key and id <> held.id
            and not superseded and status in ('running', 'completed');
      end if;
    else
      update job set held_until = null, held_since = null where id = held.id and status = 'pending';
      if found then released := released + 1; end if;
    end if;
  end loop;
  return released;
end $$;
