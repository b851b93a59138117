-- needs: claimable_job, fairest_job, fairest_job_without_fan_out, move_job
-- Claims a pending job that nothing holds, with its automation as it is now; no row: there is nothing to claim. Mostly one automation alone has
-- something pending; then there is no fairness to decide, and fairest_job is not called.
--
-- In the database, so that claim, webhooks and automation are one round trip: from a commit to its handler a job takes
-- 0.88 ms at the median, a bare loop of SKIP LOCKED 0.70 (docs/operating.md, `npm run bench:pickup`).
-- Measured: 169 µs, 29 pages: one automation has fifty pending, nobody has a webhook.
-- Callers: claim_job.without_busy, claim_job.without_fan_out, src/store/automations/jobs.ts.
-- @param fans_out whether the claimer makes a session for each repository if the automation says so: else it gets no such job
-- @param busy ids of organizations and automations of which it wants no more now
create or replace function claim_job(claimer text, lease interval, fans_out boolean, busy uuid[]) returns table (
  job_id uuid, organization uuid, attempt integer, payload jsonb, trace_parent text, automation jsonb
) language plpgsql rows 1 set plan_cache_mode to force_generic_plan as $$
declare
  first_automation uuid;
  last_automation uuid;
  chosen uuid;
  claimed job;
begin
  select
    (select automation_id from job where claimable_job(job) order by organization_id, automation_id limit 1),
    (select automation_id from job where claimable_job(job) order by organization_id desc, automation_id desc limit 1)
    into first_automation, last_automation;
  if not fans_out then
    chosen := fairest_job_without_fan_out();
  elsif busy = '{}' and first_automation = last_automation then
    select id into chosen from job where claimable_job(job)
      order by organization_id, automation_id, priority, created_at for update skip locked limit 1;
  else
    chosen := fairest_job(busy);
  end if;
  if chosen is null then return; end if;

  claimed := move_job(chosen, 'pending', 'running', claimer => claimer, lease => lease);
  return query select claimed.id, claimed.organization_id, claimed.attempt, claimed.payload, claimed.trace_parent,
    jsonb_build_object('id', kept.id, 'name', kept.name, 'instructions', kept.instructions,
      'agent', kept.agent, 'fanOut', kept.fan_out, 'targetBranch', kept.target_branch, 'priority', claimed.priority,
      'repositories', coalesce((
        select jsonb_agg(jsonb_build_object('id', repository.id, 'name', repository.name, 'url', repository.url)
          order by array_position(works_on, repository.id))
        from repository where repository.id = any(works_on)), '[]'))
    -- An automation without repositories of its own works on those that the event is about.
    from automation as kept, lateral (
      select case when kept.repository_ids = '{}' then coalesce(claimed.repository_ids, '{}') else kept.repository_ids end as works_on)
    where kept.id = claimed.automation_id;
end $$;
