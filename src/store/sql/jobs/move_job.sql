-- needs: enqueue_job_webhooks
-- The only place that changes a job's status once it is there, claims included. It checks that the move is allowed, sets everything that
-- belongs to the move (who holds the job, its fence, what holds it, what came of it), and writes the webhook deliveries that report it.
-- If the job's status or fence is another by now, nothing changes, and the answer is null: somebody was first.
-- Measured: 100 µs, 10 pages: a job that ran is completed, nobody has a webhook.
-- Callers: claim_job, fail_job, fire_trigger, release_held_jobs, supersede_runs, src/store/automations/jobs.ts,
-- src/store/queue/gate.ts.
-- @param of_attempt the claim's fence; null: whatever it is
-- @param claimer, lease for a claim: the worker, and for how long
-- @param why a sentence for readers, if it does not become completed
-- @param of_session the session that it came to, the first of its run
-- @param is_superseded a newer job took its place
-- @param is_dead its workers broke off too often
create or replace function move_job(
  moved uuid, from_status text, to_status text, of_attempt integer default null, claimer text default null,
  lease interval default null, why text default null, of_session uuid default null, is_superseded boolean default false,
  is_dead boolean default false
) returns job language plpgsql as $$
declare
  changed job;
begin
  if from_status || ' > ' || to_status <> all(array[
      'pending > running', 'pending > cancelled',
      'running > pending', 'running > completed', 'running > failed', 'running > cancelled',
      -- The gate of its session filters the run.
      'completed > cancelled']) then
    raise exception 'a job that is % can''t become %', from_status, to_status;
  end if;
  update job set status = to_status,
    attempt = attempt + (to_status = 'running')::integer,
    worker = coalesce(claimer, worker), lease_until = now() + lease,
    held_until = null, held_since = null,
    -- One that has a session holds its key until all its sessions have ended: release_held_jobs.sql.
    holds_key = holds_key and not (from_status = 'pending' and to_status = 'cancelled' and of_session is null),
    superseded = superseded or is_superseded,
    session_id = coalesce(session_id, of_session),
    error = coalesce(why, error), dead = dead or is_dead,
    counted = case when to_status = 'failed' then coalesce(counted, 'failed') else counted end,
    updated_at = now()
  where id = moved and status = from_status and (of_attempt is null or attempt = of_attempt)
  returning * into changed;
  if not found then return null; end if;
  if exists (select from webhook where organization_id = changed.organization_id and enabled) then
    perform enqueue_job_webhooks(changed);
  end if;
  return changed;
end $$;
