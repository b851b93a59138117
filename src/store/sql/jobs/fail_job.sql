-- needs: count_run, move_job
-- Ends a job as failed before it came to a session, and counts that for its automation, unless a session of it was counted. The automation is locked before the job, as in
-- fire_trigger, so that nobody waits in a circle.
-- Measured: 177 µs, 37 pages: the first run that fails, nobody has a webhook.
-- Callers: src/store/automations/jobs.ts. Nodes of the version before fail a job by a statement of their own, which counts nothing.
-- @param of_attempt the claim's fence: under an older one nothing changes
-- @param is_dead its workers broke off too often
-- @returns whether it failed now
create or replace function fail_job(failed uuid, of_attempt integer, why text, is_dead boolean) returns boolean
language plpgsql set plan_cache_mode to force_generic_plan as $$
declare
  ended job;
  was_counted boolean;
begin
  perform from automation where id = (select automation_id from job where id = failed) for no key update;
  select counted is not null into was_counted from job where id = failed for no key update;
  ended := move_job(failed, 'running', 'failed', of_attempt => of_attempt, why => why, is_dead => is_dead);
  if ended.id is null then return false; end if;
  if not was_counted then
    perform count_run(ended.automation_id, 'failed', ended.id, null, why);
  end if;
  return true;
end $$;
