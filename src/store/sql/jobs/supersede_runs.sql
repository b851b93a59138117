-- needs: is_under_way, move_job
-- A newer run takes the place of those of its key that are under way (concurrency: cancelOlder): what has not begun is cancelled, and
-- the worker cancels the sessions of the others. A pending job has begun if it has a session, whose worker died before it completed the
-- job. The caller has locked the automation.
-- Measured: 286 µs, 23 pages: one older run of the key is pending.
-- Callers: fire_trigger, release_held_jobs.
-- @param newer the job that takes their place
-- @param is_quiet it has waited for quiet: others that still do may be newer than it, and stay
create or replace function supersede_runs(automation uuid, key text, newer uuid, is_quiet boolean) returns void
language plpgsql set plan_cache_mode to force_generic_plan as $$
declare
  older job;
begin
  for older in
    update job set superseded = true, updated_at = now(), held_until = null, held_since = null,
        error = coalesce(error, 'a newer trigger took its place (concurrency: cancelOlder)')
      where automation_id = automation and concurrency_key = key and holds_key and id <> newer
        and not superseded and not (is_quiet and held_since is not null) and is_under_way(job)
        -- What failed or was cancelled has no session that goes on.
        and status in ('pending', 'running', 'completed')
      returning job.*
  loop
    if older.status = 'pending' and not exists (select from session where session.job_id = older.id) then
      perform move_job(older.id, 'pending', 'cancelled');
    end if;
  end loop;
end $$;
