-- needs: claim_job
-- The function of 0021_quick_claim.sql, for nodes of the version before: they would make one session of all repositories, so that they
-- get no job of an automation that fans out. Nodes of this version take it.
-- It goes with a migration of a later version, once no node calls it: `drop function`, and this file.
-- Measured: 242 µs, 34 pages: one automation has fifty pending, nobody has a webhook.
-- Callers: nodes of the version before.
create or replace function claim_job(claimer text, lease interval) returns table (
  job_id uuid, organization uuid, attempt integer, payload jsonb, trace_parent text, automation jsonb
) language sql rows 1 as $$
  select * from claim_job(claimer, lease, false, '{}')
$$;
