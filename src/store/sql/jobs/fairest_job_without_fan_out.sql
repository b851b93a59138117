-- needs: claimable_job
-- As fairest_job, of the jobs whose automation does not fan out: those are all that nodes of the version before get. What they can't run
-- must not be in the way of the rest. One jump in the index for each automation that has something pending.
-- It goes with claim_job.without_fan_out.
-- Measured: 180 µs, 38 pages: thirty automations of twenty organizations have five jobs each.
-- Callers: claim_job.
create or replace function fairest_job_without_fan_out() returns uuid language plpgsql set plan_cache_mode to force_generic_plan as $$
declare
  chosen uuid;
begin
  with recursive waiting (organization_id, automation_id) as (
    (select organization_id, automation_id from job where claimable_job(job)
      order by organization_id, automation_id limit 1)
    union all
    select next.organization_id, next.automation_id from waiting, lateral (
      select organization_id, automation_id from job where claimable_job(job)
        and (organization_id, automation_id) > (waiting.organization_id, waiting.automation_id)
      order by organization_id, automation_id limit 1) as next),
  plain as (
    select waiting.organization_id, waiting.automation_id from waiting join automation on automation.id = waiting.automation_id
    where not automation.fan_out),
  drawn as (select organization_id from (select distinct organization_id from plain) as each order by random() limit 1)
  select candidate.id into chosen from drawn join plain using (organization_id), lateral (
      select id, priority from job where claimable_job(job) and organization_id = plain.organization_id
        and automation_id = plain.automation_id
      order by priority, created_at for update skip locked limit 1) as candidate
    order by candidate.priority, random() limit 1;
  return chosen;
end $$;
