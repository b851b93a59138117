-- works-from: 0018
-- What is asked in each claim, list and change, in PL/pgSQL and with a generic plan: a connection plans it once, and not each
-- time, which took longer than the rest of it.
create or replace function session_budget_left(asked session) returns numeric language plpgsql stable
  set plan_cache_mode to force_generic_plan as $$
begin
  return (select coalesce(asked.budget_usd,
      case when asked.automation_id is null then organization.session_budget_usd
        else least((select automation.budget_usd from automation where automation.id = asked.automation_id),
          coalesce(organization.run_budget_usd, organization.session_budget_usd)) end)
    - asked.spent_usd
  from organization where organization.id = asked.organization_id);
end $$;

create or replace function month_budget_left(asked session) returns numeric language plpgsql stable
  set plan_cache_mode to force_generic_plan as $$
declare
  budget numeric;
begin
  select monthly_budget_usd into budget from organization where organization.id = asked.organization_id;
  if budget is null then return null; end if;
  return budget
    - coalesce((select spent_usd from model_spend
        where model_spend.organization_id = asked.organization_id and month = this_month()), 0)
    - coalesce((select sum(other.reserved_usd) from session other
        where other.organization_id = asked.organization_id and other.status = 'running' and other.id <> asked.id), 0);
end $$;

create or replace function announce_change(organization uuid, change text, data jsonb) returns void language plpgsql as $$
begin
  insert into webhook_delivery (id, organization_id, webhook_id, type, data)
  select gen_random_uuid(), organization, told.id, change, data from (
    select webhook.id from webhook
    where webhook.organization_id = organization and webhook.enabled and (webhook.events = '{}' or change = any(webhook.events))
    -- A webhook that is being deleted is not told, instead of breaking the change that it would be told of.
    for key share) as told;
end $$;

create or replace function announce_session(changed session) returns void language plpgsql as $$
begin
  perform announce_change(changed.organization_id, 'session.' || changed.status, jsonb_build_object(
    'id', changed.id, 'status', changed.status, 'title', changed.title, 'failure', changed.failure,
    'automationId', changed.automation_id, 'jobId', changed.job_id));
end $$;

create or replace function announce_job(changed job) returns void language plpgsql as $$
begin
  perform announce_change(changed.organization_id, 'job.' || changed.status, jsonb_build_object(
    'id', changed.id, 'status', changed.status, 'automationId', changed.automation_id,
    'sessionId', changed.session_id, 'error', changed.error));
end $$;

-- Leases are renewed all the time: a column that no index holds is changed without touching the indexes.
drop index session_leased;
create index session_held on session (id) where status in ('running', 'waiting');

-- The one place where a session's status changes: together with the event that tells of it and what webhooks are told. The
-- caller holds the row and knows that the life of a session has such a move.
-- @param keeps_place its run was cut off: it keeps its place in the queue
-- @param claimer, lease the worker that takes it, under a new attempt number, and for how long; null: nobody does
create function move_session(
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
  where id = moved returning * into changed;
  insert into event (session_id, seq, type, data) values (moved, changed.last_event, 'session.status',
    jsonb_build_object('from', from_status, 'to', to_status)
      || case when reason is null then '{}' else jsonb_build_object('reason', reason) end
      || case when new_failure is null then '{}' else jsonb_build_object('failure', new_failure) end);
  perform announce_session(changed);
  return changed;
end $$;

-- What a worker must know of a session to carry it out, as src/store/claims.ts declares it.
create function read_claimed(asked session) returns jsonb language plpgsql stable
  set plan_cache_mode to force_generic_plan as $$
begin
  return jsonb_build_object(
    'title', asked.title, 'agent', asked.agent, 'targetBranch', asked.target_branch, 'branchName', asked.branch_name,
    'payload', asked.payload, 'harness', asked.harness, 'summary', asked.summary,
    'workspaceWorker', asked.workspace_worker, 'traceParent', asked.trace_parent,
    'requester', (select jsonb_build_object('name', name) from api_key where api_key.id = asked.created_by),
    'organization', (
      select jsonb_build_object('defaultAgent', default_agent, 'egress', egress, 'models', models)
      from organization where organization.id = asked.organization_id),
    'repositories', coalesce((
      select jsonb_agg(jsonb_build_object('id', repository.id, 'name', repository.name, 'url', repository.url,
        'branch', repository.branch, 'directory', part.directory, 'position', part.position,
        'baseSha', part.base_sha, 'headSha', part.head_sha, 'egress', repository.egress,
        'setupScript', repository.setup_script, 'variables', repository.variables) order by part.position)
      from session_repository part join repository on repository.id = part.repository_id
      where part.session_id = asked.id), '[]'));
end $$;

-- Takes the session whose turn it is, of the organization whose turn it is; no row where there is nothing to take. One
-- organization for each call, so that nobody who holds one waits for another: where it comes back without a session, the
-- caller goes on without it. Here, and not in the program, because each of its questions would be a round trip in which
-- the organization is locked.
-- @param organization_limit, repository_limit sessions at once, where they have no limit of their own; null: any number
-- @param tried organizations that are left out
create function claim_session(
  claimer text, lease interval, organization_limit integer, repository_limit integer, tried uuid[]
) returns table (
  organization uuid, session_id uuid, attempt integer, details jsonb,
  queued_seconds double precision, session_left numeric, month_left numeric
) language plpgsql rows 1 set plan_cache_mode to force_generic_plan as $$
declare
  most integer;
  full_repositories uuid[];
  chosen uuid;
  claimed session;
begin
  -- Organizations that have something to claim and are below their limit: the one that runs the least, then by what it has
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
  if organization is null then return; end if;

  -- Limits hold strictly: what runs is counted while nobody else claims. "no key": a session that is being created refers to
  -- this row, and must not wait.
  select coalesce(max_running_sessions, organization_limit) into most from organization as held
    where held.id = organization for no key update;
  if (select count(*) from session where organization_id = organization and status = 'running') >= most then
    return next;
    return;
  end if;

  select coalesce(array_agg(id), '{}') into full_repositories from (
    select repository.id from session join session_repository part on part.session_id = session.id
      join repository on repository.id = part.repository_id
    where session.organization_id = organization and session.status = 'running'
    group by repository.id having count(*) >= coalesce(repository.max_running_sessions, repository_limit)) as full_repository;

  loop
    -- The most urgent; of the same urgency one of the automation (or of what people asked for) that runs the least; of those
    -- the oldest. Those whose repository runs as many as it may are passed over.
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
    select first.id into chosen from turn left join running on running.automation = turn.automation,
      lateral (select session.id, priority, queued_at from session
        where organization_id = organization and (status = 'queued' or (status = 'waiting' and ready))
          and coalesce(automation_id, '00000000-0000-0000-0000-000000000000') = turn.automation
          and (full_repositories = '{}' or not exists (
            select from session_repository part
            where part.session_id = session.id and part.repository_id = any(full_repositories)))
        order by priority, queued_at, session.id limit 1) as first
    order by first.priority, coalesce(running.count, 0), first.queued_at, first.id limit 1;
    if chosen is null then
      return next;
      return;
    end if;

    -- Held, so that nobody cancels it meanwhile; else whose turn it is now is to be asked anew. What is left of budgets is
    -- counted while the organization is held: no two sessions reserve the same money.
    select case when status = 'queued' then extract(epoch from clock_timestamp() - updated_at) end,
        session_budget_left(session), month_budget_left(session)
      into queued_seconds, session_left, month_left
      from session where id = chosen and (status = 'queued' or (status = 'waiting' and ready)) for no key update;
    continue when not found;
    claimed := move_session(chosen, 'running', null, null, null, false, claimer, lease,
      case when session_left is null or month_left is null then 0 else greatest(0, least(session_left, month_left)) end);
    session_id := claimed.id;
    attempt := claimed.attempt;
    -- Read here: the statement that calls this function sees nothing that came after its own beginning, as a session does
    -- that was created while another claim held the organization.
    details := read_claimed(claimed);
    return next;
    return;
  end loop;
end $$;
