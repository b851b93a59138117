-- needs: claimable, fairest_organization, fairest_session, lane, month_budget_left, move_session, place_is_kept, read_claimed, session_budget_left
-- Claims the session whose turn it is, of the organization whose turn it is, and reserves its budget; no row: there is nothing
-- to claim. It tries one organization, so that nobody who has locked one waits for another: if it returns no session, the
-- caller asks again without that organization.
--
-- In the database, because each of its questions would be a round trip with the organization locked: as one call it brought
-- the time from a commit to its handler from 6.2 ms to 1.5. Mostly one organization and one lane have something queued;
-- then there is no fairness to decide, and fairest_organization and fairest_session are not called.
-- Splitting them off and naming the condition (`claimable`) cost at most 2 % of a claim, which takes some 0.7 ms on a busy
-- machine (medians of 1,800 interleaved claims).
-- Measured: 360 µs, 67 pages: one lane of one organization has fifty queued, nobody has a webhook.
-- Callers: src/store/queue/claims.ts.
-- @param organization_limit, repository_limit sessions at once, if they have no limit of their own; null: any number
-- @param tried organizations to leave out
create or replace function claim_session(
  claimer text, lease interval, organization_limit integer, repository_limit integer, tried uuid[]
) returns table (
  organization uuid, session_id uuid, attempt integer, details jsonb,
  queued_seconds double precision, session_left numeric, month_left numeric
) language plpgsql rows 1 set plan_cache_mode to force_generic_plan as $$
declare
  last_organization uuid;
  -- How many sessions the organization runs, and how many of them have a lease that should have been renewed by now.
  counted bigint[];
  -- Whether it has sessions that were interrupted, claimable or not.
  has_interrupted boolean;
  held record;
  picked record;
  claimed session;
begin
  select
    (select organization_id from session where claimable(session) order by organization_id limit 1),
    (select organization_id from session where claimable(session) order by organization_id desc limit 1)
    into organization, last_organization;
  if organization = any(tried) or organization <> last_organization then
    organization := fairest_organization(organization_limit, tried);
  end if;
  if organization is null then return; end if;

  -- Limits hold strictly: nobody else claims while the running sessions are counted. "no key": a session that is being created
  -- refers to this row, and must not wait.
  select coalesce(max_running_sessions, organization_limit) as most,
      coalesce(session_budget_usd, run_budget_usd, monthly_budget_usd) is not null as has_budget
    into held from organization as own where own.id = organization for no key update;

  loop
    -- The most urgent of the first lane. If that is the last lane too, and no repository of the session has a limit, it is
    -- this session's turn.
    select session.id, automation_id, budget_usd,
        case when status = 'queued' then extract(epoch from clock_timestamp() - updated_at)::float8 end as queued_seconds,
        (select array[count(*), count(*) filter (where other.lease_until < now() + lease / 2)] from session as other
          where other.organization_id = organization and other.status = 'running') as counted,
        exists (select from session as other where other.organization_id = organization and interrupted_at is not null)
          as has_interrupted,
        lane(session) <> (
          select lane(other) from session as other where other.organization_id = organization and claimable(other)
          order by lane(other) desc limit 1)
        or exists (
          select from session_repository part join repository on repository.id = part.repository_id
          where part.session_id = session.id and coalesce(repository.max_running_sessions, repository_limit) is not null)
        as has_rivals
      into picked from session
      where organization_id = organization and claimable(session)
      order by lane(session), priority, queued_at, id limit 1;
    counted := picked.counted;
    has_interrupted := picked.has_interrupted;
    if picked.id is not null and counted[1] >= held.most then
      return next;
      return;
    end if;
    if picked.has_rivals or has_interrupted then
      -- The same types as above: the plans that read `picked` are made once.
      select * into picked from fairest_session(organization, repository_limit);
    end if;
    -- Only if something is about to go on is there a question whether its place is this one.
    if picked.id is null or ((counted[2] > 0 or has_interrupted) and place_is_kept(picked.id, claimer, lease)) then
      return next;
      return;
    end if;

    -- What is left of budgets is counted while the organization is locked: no two sessions reserve the same money.
    session_left := null;
    month_left := null;
    if held.has_budget or picked.budget_usd is not null or picked.automation_id is not null then
      select session_budget_left(session), month_budget_left(session) into session_left, month_left
        from session where id = picked.id for no key update;
    end if;
    claimed := move_session(picked.id, 'running', null, null, null, false, waits_for => null,
      claimer => claimer, lease => lease, reserved => case when session_left is null or month_left is null then 0
        else greatest(0, least(session_left, month_left)) end);
    -- Somebody cancelled it meanwhile: the question whose turn it is must be asked again.
    continue when claimed.id is null;
    session_id := claimed.id;
    attempt := claimed.attempt;
    queued_seconds := picked.queued_seconds;
    -- Read here and not by the caller's statement, which sees nothing that was committed after its own beginning: the session
    -- may have been created while this claim waited for the organization.
    details := read_claimed(claimed);
    return next;
    return;
  end loop;
end $$;
