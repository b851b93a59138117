-- needs: claim_job
-- The function for nodes of the version before, which do one job after the other.
-- It goes with a migration of a later version, once no node calls it: `drop function`, and this file.
-- Measured: 185 µs, 29 pages: one automation has fifty pending, nobody has a webhook.
-- Callers: nodes of the version before.
create or replace function claim_job(claimer text, lease interval, fans_out boolean) returns table (
  job_id uuid, organization uuid, attempt integer, payload jsonb, trace_parent text, automation jsonb
) language sql rows 1 as $$
  select * from claim_job(claimer, lease, fans_out, '{}')
$$;
