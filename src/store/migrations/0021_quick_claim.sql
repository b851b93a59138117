-- works-from: 0020
-- The same claim, with the same promises, by fewer questions: what has only one answer is not asked.

-- The one place where a session's status changes: together with the event that tells of it and what webhooks are told. The
-- caller knows that the life of a session has such a move, and holds the row, but for a claimer: it gets null where
-- somebody else was first.
-- @param keeps_place its run was cut off: it keeps its place in the queue
-- @param claimer, lease the worker that takes it, under a new attempt number, and for how long; null: nobody does
create or replace function move_session(
  moved uuid, to_status text, reason text, new_failure jsonb, new_summary text, keeps_place boolean,
  claimer text default null, lease interval default null, reserved numeric default 0
) returns session language plpgsql as $$
declare
  taken constant boolean := claimer is not null;
  held constant boolean := to_status in ('running', 'waiting');
  from_status text;
  changed session;
begin
  select status into from_status from session where id = moved;
  update session set status = to_status,
    attempt = attempt + taken::integer, claims_without_progress = claims_without_progress + taken::integer,
    queued_at = case when to_status = 'queued' and not keeps_place then now() else queued_at end,
    started_at = case when to_status = 'running' then coalesce(started_at, now()) else started_at end,
    finished_at = case when to_status in ('completed', 'failed', 'cancelled') then now() end,
    failure = new_failure, summary = coalesce(new_summary, summary),
    cancel_requested = cancel_requested and to_status = 'running' and not taken,
    reserved_usd = case when taken then reserved when to_status = 'running' then reserved_usd else 0 end,
    waiting = null, ready = false,
    worker = case when taken then claimer when held then worker end,
    lease_until = case when taken then now() + lease when held then lease_until end,
    last_event = last_event + 1, updated_at = now()
  where id = moved and status = from_status and (not taken or status = 'queued' or (status = 'waiting' and ready))
  returning * into changed;
  if not found then return null; end if;
  insert into event (session_id, seq, type, data) values (moved, changed.last_event, 'session.status',
    jsonb_build_object('from', from_status, 'to', to_status)
      || case when reason is null then '{}' else jsonb_build_object('reason', reason) end
      || case when new_failure is null then '{}' else jsonb_build_object('failure', new_failure) end);
  if exists (select from webhook where organization_id = changed.organization_id and enabled) then
    perform announce_session(changed);
  end if;
  return changed;
end $$;

-- Takes the session whose turn it is, of the organization whose turn it is; no row where there is nothing to take. One
-- organization for each call, so that nobody who holds one waits for another: where it comes back without a session, the
-- caller goes on without it. Here, and not in the program, because each of its questions would be a round trip in which
-- the organization is locked.
-- @param organization_limit, repository_limit sessions at once, where they have no limit of their own; null: any number
-- @param tried organizations that are left out
create or replace function claim_session(
  claimer text, lease interval, organization_limit integer, repository_limit integer, tried uuid[]
) returns table (
  organization uuid, session_id uuid, attempt integer, details jsonb,
  queued_seconds double precision, session_left numeric, month_left numeric
) language plpgsql rows 1 set plan_cache_mode to force_generic_plan as $$
declare
  last_organization uuid;
  held record;
  picked record;
  full_repositories uuid[];
  chosen uuid;
  claimed session;
begin
  -- Mostly one organization alone has something to claim: the first is the last.
  select
    (select organization_id from session where status = 'queued' or (status = 'waiting' and ready)
      order by organization_id limit 1),
    (select organization_id from session where status = 'queued' or (status = 'waiting' and ready)
      order by organization_id desc limit 1)
    into organization, last_organization;
  if organization = any(tried) or organization <> last_organization then
    -- Those that have something to claim and are below their limit: the one that runs the least, then by what it has
    -- waiting. It costs the same however much is queued.
    with recursive queued (id) as (
      (select organization_id from session where status = 'queued' or (status = 'waiting' and ready)
        order by organization_id limit 1)
      union all
      select (select organization_id from session
          where (status = 'queued' or (status = 'waiting' and ready)) and organization_id > queued.id
          order by organization_id limit 1)
        from queued where queued.id is not null)
    select candidate.id into organization from queued join organization candidate on candidate.id = queued.id,
      lateral (select count(*) as running from session
        where session.organization_id = candidate.id and status = 'running') as counted,
      lateral (select priority, queued_at, session.id from session
        where session.organization_id = candidate.id and (status = 'queued' or (status = 'waiting' and ready))
        order by priority, queued_at, session.id limit 1) as first
    where counted.running < coalesce(candidate.max_running_sessions, organization_limit) and not candidate.id = any(tried)
    order by counted.running, first.priority, first.queued_at, first.id limit 1;
  end if;
  if organization is null then return; end if;

  -- Limits hold strictly: what runs is counted while nobody else claims. "no key": a session that is being created refers to
  -- this row, and must not wait.
  select coalesce(max_running_sessions, organization_limit) as most,
      coalesce(session_budget_usd, run_budget_usd, monthly_budget_usd) is not null as has_budget
    into held from organization as own where own.id = organization for no key update;

  loop
    -- The most urgent of the first of the automations (all zeros: of what people asked for) that have something to claim.
    -- Where that is the last of them too, and no repository has a limit, it is its turn.
    select session.id, session.automation_id, budget_usd,
        case when session.status = 'queued' then extract(epoch from clock_timestamp() - updated_at) end as queued_seconds,
        (select count(*) from session as other
          where other.organization_id = organization and other.status = 'running') as running,
        coalesce(session.automation_id, '00000000-0000-0000-0000-000000000000') <> (
          select coalesce(automation_id, '00000000-0000-0000-0000-000000000000') from session
          where organization_id = organization and (status = 'queued' or (status = 'waiting' and ready))
          order by coalesce(automation_id, '00000000-0000-0000-0000-000000000000') desc limit 1)
        or exists (
          select from session_repository part join repository on repository.id = part.repository_id
          where part.session_id = session.id and coalesce(repository.max_running_sessions, repository_limit) is not null)
        as has_rivals
      into picked from session
      where organization_id = organization and (status = 'queued' or (status = 'waiting' and ready))
      order by coalesce(automation_id, '00000000-0000-0000-0000-000000000000'), priority, queued_at, id limit 1;
    chosen := picked.id;
    if picked.running >= held.most then chosen := null; end if;

    if chosen is not null and picked.has_rivals then
      select coalesce(array_agg(id), '{}') into full_repositories from (
        select repository.id from session join session_repository part on part.session_id = session.id
          join repository on repository.id = part.repository_id
        where session.organization_id = organization and session.status = 'running'
        group by repository.id having count(*) >= coalesce(repository.max_running_sessions, repository_limit)) as full_repository;
      -- The most urgent; of the same urgency one of the automation that runs the least; of those the oldest. Those whose
      -- repository runs as many as it may are passed over.
      with recursive turn (automation) as (
        (select coalesce(automation_id, '00000000-0000-0000-0000-000000000000') from session
          where organization_id = organization and (status = 'queued' or (status = 'waiting' and ready))
          order by 1 limit 1)
        union all
        select (select coalesce(automation_id, '00000000-0000-0000-0000-000000000000') from session
            where organization_id = organization and (status = 'queued' or (status = 'waiting' and ready))
              and coalesce(automation_id, '00000000-0000-0000-0000-000000000000') > turn.automation
            order by 1 limit 1)
          from turn where turn.automation is not null),
      running as (
        select coalesce(automation_id, '00000000-0000-0000-0000-000000000000') as automation, count(*) as count from session
        where organization_id = organization and status = 'running' group by 1)
      select candidate.id, candidate.automation_id, candidate.budget_usd, candidate.queued_seconds
        into picked from turn left join running on running.automation = turn.automation,
        lateral (select session.id, automation_id, budget_usd, priority, queued_at,
            case when status = 'queued' then extract(epoch from clock_timestamp() - updated_at) end as queued_seconds from session
          where organization_id = organization and (status = 'queued' or (status = 'waiting' and ready))
            and coalesce(automation_id, '00000000-0000-0000-0000-000000000000') = turn.automation
            and (full_repositories = '{}' or not exists (
              select from session_repository part
              where part.session_id = session.id and part.repository_id = any(full_repositories)))
          order by priority, queued_at, session.id limit 1) as candidate
      order by candidate.priority, coalesce(running.count, 0), candidate.queued_at, candidate.id limit 1;
      chosen := picked.id;
    end if;
    if chosen is null then
      return next;
      return;
    end if;

    -- What is left of budgets is counted while the organization is held: no two sessions reserve the same money.
    session_left := null;
    month_left := null;
    if held.has_budget or picked.budget_usd is not null or picked.automation_id is not null then
      select session_budget_left(session), month_budget_left(session) into session_left, month_left
        from session where id = chosen for no key update;
    end if;
    claimed := move_session(chosen, 'running', null, null, null, false, claimer, lease,
      case when session_left is null or month_left is null then 0 else greatest(0, least(session_left, month_left)) end);
    -- Somebody cancelled it meanwhile: whose turn it is now is to be asked anew.
    continue when claimed.id is null;
    session_id := claimed.id;
    attempt := claimed.attempt;
    queued_seconds := picked.queued_seconds;
    -- Read here: the statement that calls this function sees nothing that came after its own beginning, as a session does
    -- that was created while another claim held the organization.
    details := read_claimed(claimed);
    return next;
    return;
  end loop;
end $$;

-- Takes a pending job: of any organization alike, and of it the most urgent; of the same urgency of any automation alike. So
-- whoever triggers a thousand times holds up nobody else. No row where there is nothing to take.
create function claim_job(claimer text, lease interval) returns table (
  job_id uuid, organization uuid, attempt integer, payload jsonb, trace_parent text, automation jsonb
) language plpgsql rows 1 set plan_cache_mode to force_generic_plan as $$
declare
  first_automation uuid;
  last_automation uuid;
  chosen uuid;
  claimed job;
begin
  -- Mostly one automation alone has something to claim: the first is the last.
  select
    (select automation_id from job where status = 'pending' order by organization_id, automation_id limit 1),
    (select automation_id from job where status = 'pending' order by organization_id desc, automation_id desc limit 1)
    into first_automation, last_automation;
  if first_automation = last_automation then
    select id into chosen from job where status = 'pending'
      order by organization_id, automation_id, priority, created_at for update skip locked limit 1;
  else
    with recursive waiting (organization_id) as (
      (select organization_id from job where status = 'pending' order by organization_id limit 1)
      union all
      select (select organization_id from job where status = 'pending' and organization_id > waiting.organization_id
        order by organization_id limit 1) from waiting where waiting.organization_id is not null),
    drawn as (select organization_id from waiting where organization_id is not null order by random() limit 1),
    turn (organization_id, automation_id) as (
      (select organization_id, automation_id from job
        where status = 'pending' and organization_id = (select organization_id from drawn) order by automation_id limit 1)
      union all
      select turn.organization_id, (select automation_id from job
        where status = 'pending' and organization_id = turn.organization_id and automation_id > turn.automation_id
        order by automation_id limit 1) from turn where turn.automation_id is not null)
    select candidate.id into chosen from turn, lateral (
        select id, priority from job where status = 'pending' and organization_id = turn.organization_id
          and automation_id = turn.automation_id
        order by priority, created_at for update skip locked limit 1) as candidate
      order by candidate.priority, random() limit 1;
  end if;
  if chosen is null then return; end if;

  update job set status = 'running', worker = claimer, lease_until = now() + lease, attempt = job.attempt + 1, updated_at = now()
    where id = chosen returning * into claimed;
  if exists (select from webhook where organization_id = claimed.organization_id and enabled) then
    perform announce_job(claimed);
  end if;
  return query select claimed.id, claimed.organization_id, claimed.attempt, claimed.payload, claimed.trace_parent,
    jsonb_build_object('id', kept.id, 'name', kept.name, 'instructions', kept.instructions,
      'agent', kept.agent, 'targetBranch', kept.target_branch, 'priority', claimed.priority,
      'repositories', coalesce((
        select jsonb_agg(jsonb_build_object('id', repository.id, 'name', repository.name, 'url', repository.url)
          order by array_position(kept.repository_ids, repository.id))
        from repository where repository.id = any(kept.repository_ids)), '[]'))
    from automation as kept where kept.id = claimed.automation_id;
end $$;
