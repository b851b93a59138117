-- needs: count_run
-- A session of a job has ended: if it is the last of its run to do so, counts the run for its automation, once for each end of another
-- kind. A run that was counted as failed and is completed after all, because a person had it tried again, begins the count anew; what
-- comes of a completed one's follow-ups is no run of the automation, and a cancelled or filtered one is not counted. Of a run with
-- several sessions the outcome is that of `runStatusOf` in src/domain/automations/run.ts.
-- Measured: 123 µs, 16 pages: a completed run, and none failed before.
-- Callers: move_session. It has locked the session's row. Nobody who has locked an automation or a job waits for a session.
create or replace function note_run_end(ended session) returns void language plpgsql set plan_cache_mode to force_generic_plan as $$
declare
  -- First, as in fire_trigger, so that of two sessions that end at once one sees both. Mostly a run has one, which is completed, and
  -- none failed before: then nobody is held up.
  is_locked constant boolean := ended.status = 'failed'
    or exists (select from session where job_id = ended.job_id and id <> ended.id)
    or exists (select from automation where id = ended.automation_id and failed_in_a_row > 0);
  outcome text;
  run job;
  failed session;
begin
  if is_locked then
    perform from automation where id = ended.automation_id for no key update;
  end if;
  select case when bool_or(status not in ('completed', 'failed', 'cancelled')) then null
      when bool_or(status = 'failed') then 'failed' when bool_and(status = 'completed') then 'completed' end
    into outcome from session where job_id = ended.job_id;
  if outcome is null then return; end if;
  -- Before its job is: the worker that made the session may have died since. Of another status: its gate filtered it, or it failed.
  update job set counted = outcome where id = ended.job_id and status in ('pending', 'running', 'completed')
    and counted is distinct from 'completed' and counted is distinct from outcome returning * into run;
  -- Not locked: none had failed when this run ended, so there is nothing to begin anew. One that fails only now counts after it. The
  -- automation may not be locked here any more: fire_trigger locks it before its jobs, and each would wait for the other.
  if run.id is null or not is_locked then return; end if;
  if outcome = 'failed' then
    select * into failed from session where job_id = ended.job_id and status = 'failed' order by job_part limit 1;
  end if;
  perform count_run(ended.automation_id, outcome, run.id, failed.id, failed.failure ->> 'reason');
end $$;
