-- needs: enqueue_job_webhooks, is_under_way, move_job, note_received, supersede_runs
-- Decides what comes of a trigger that was accepted, and writes it into the ledger: a job, which is pending or held, or an entry
-- that says why there is none. Idempotent by the entry's id.
--
-- In the database, because a delivery's keys, the runs of its key and the count of the last hour have to be read and written in one
-- go, with the automation locked as little as possible: without a policy nothing is locked, and it is one round trip.
-- Measured: 537 µs, 54 pages: an event of 7 kB that is new, and a trigger without a policy.
-- Callers: fire_triggers, src/store/automations/firings.ts. firings.ts describes the fields.
-- @param fired what is to be decided, as JSON
create or replace function fire_trigger(fired jsonb) returns table (outcome text, entry uuid, why text)
language plpgsql rows 1 set plan_cache_mode to force_generic_plan as $$
#variable_conflict use_column
declare
  own_id constant uuid := fired ->> 'id';
  owner constant uuid := fired ->> 'organizationId';
  automation constant uuid := fired ->> 'automationId';
  by_trigger constant uuid := fired ->> 'triggerId';
  policy constant text := fired ->> 'policy';
  concurrency constant text := fired ->> 'concurrencyKey';
  pause constant interval := (fired ->> 'debounceSeconds')::integer * interval '1 second';
  most constant integer := (fired ->> 'maxPerHour')::integer;
  most_of_subject constant integer := (fired ->> 'mostOfSubject')::integer;
  about constant text := case when most_of_subject is not null then fired ->> 'subject' end;
  works_on constant uuid[] := case when fired ->> 'repositoryIds' is not null
    then array(select jsonb_array_elements_text(fired -> 'repositoryIds'))::uuid[] end;
  original uuid;
  since timestamptz := clock_timestamp();
  hold timestamptz;
  older job;
  made job;
begin
  if exists (select from job where job.id = own_id and job.status <> 'cancelled') then
    return query select 'accepted', own_id, null::text;
    return;
  end if;
  return query select arrival.outcome, coalesce(arrival.original_id, own_id), arrival.reason from arrival
    where arrival.id = own_id and arrival.outcome is not null
    union all select 'filtered', own_id, job.error from job where job.id = own_id;
  if found then return; end if;

  if fired ->> 'refusal' is not null then
    why := fired ->> 'refusal';
    outcome := 'filtered';
  end if;

  -- What starts nothing whatever came before leaves no keys: of one happening another name may start something.
  if outcome is null then
    original := note_received(owner, by_trigger, fired -> 'keys', own_id);
    if original is not null then
      why := 'it was delivered before';
      outcome := 'duplicate';
    end if;
  end if;
  -- Another trigger of the automation may have answered it.
  if outcome is null and fired -> 'automationKeys' is not null then
    original := note_received(owner, automation, fired -> 'automationKeys', own_id);
    if original is not null then
      why := 'another trigger of its automation has decided about it before';
      -- The trigger of the API is answered with a job.
      outcome := case when by_trigger = automation then 'filtered' else 'duplicate' end;
    end if;
  end if;

  if outcome is null and (policy is not null or pause is not null or most is not null or about is not null) then
    -- One after the other, so that two triggers at once do not both find nothing under way. "no key": jobs refer to this row.
    perform from automation as locked where locked.id = automation for no key update;
    -- Another worker may have decided the same meanwhile, whose run is no other one.
    return query
      select case job.status when 'cancelled' then 'filtered' else 'accepted' end, own_id,
          case job.status when 'cancelled' then job.error end from job where job.id = own_id
      union all select arrival.outcome, coalesce(arrival.original_id, own_id), arrival.reason from arrival
        where arrival.id = own_id and arrival.outcome is not null;
    if found then return; end if;
    -- Neither what started nothing (a run that its gate filtered did), nor what this one takes the place of.
    if most is not null and most <= (select count(*) from (
        select from job where job.trigger_id = by_trigger and created_at > now() - interval '1 hour'
          and (job.status <> 'cancelled' or job.session_id is not null)
          and not (pause is not null and job.status = 'pending' and job.held_since is not null
            and job.concurrency_key is not distinct from concurrency)
        limit most) as counted) then
      why := 'its trigger has started ' || most || ' runs within the hour (maxPerHour)';
      outcome := 'filtered';
    -- What a run does may come back as the next event of the same, whoever seems to have done it: so it comes to an end.
    elsif most_of_subject <= (select count(*) from (
        select from job where job.automation_id = automation and job.subject = about
          and (job.status <> 'cancelled' or job.session_id is not null)
          and not (pause is not null and job.status = 'pending' and job.held_since is not null
            and job.trigger_id = by_trigger and job.concurrency_key is not distinct from concurrency)
        limit most_of_subject) as counted) then
      why := 'its automation has started ' || most_of_subject || ' runs about the same issue, incident or thread, as many as it may';
      outcome := 'filtered';
    -- Of a quick succession the newest runs; whether it may is asked when it is quiet.
    elsif policy = 'skip' and pause is null and exists (
        select from job where job.automation_id = automation and job.concurrency_key = concurrency and holds_key and is_under_way(job)) then
      why := 'a run of "' || left(concurrency, 200) || '" is under way (concurrency: skip)';
      outcome := 'filtered';
    end if;
  end if;

  if outcome = 'filtered' and by_trigger = automation then
    insert into job (id, organization_id, automation_id, trigger_id, priority, payload, task, status, error)
      values (own_id, owner, automation, by_trigger, (fired ->> 'priority')::integer, fired -> 'payload',
        coalesce(fired ->> 'task', 'RunWorkflow'), 'cancelled', why)
      returning * into made;
    perform enqueue_job_webhooks(made);
    return query select outcome, own_id, why;
    return;
  end if;
  if outcome is not null then
    -- What is delivered again is not kept again.
    insert into arrival (id, organization_id, automation_id, trigger_id, connection_id, outcome, reason, original_id, name,
        delivery_id, subject, payload, event_id, repository_ids)
      values (own_id, owner, automation, by_trigger, (fired ->> 'connectionId')::uuid, outcome, why, original, fired ->> 'name',
        fired ->> 'deliveryId', fired ->> 'subject', case when outcome <> 'duplicate' then fired -> 'payload' end,
        (fired ->> 'eventId')::uuid, works_on)
      on conflict (id) do nothing;
    return query select outcome, coalesce(original, own_id), why;
    return;
  end if;

  if pause is not null then
    -- The newest of a quick succession runs, once it is quiet; not later than after ten pauses.
    for older in
      select * from job
        where job.trigger_id = by_trigger and job.status = 'pending' and job.held_until is not null
          and job.held_since is not null and job.concurrency_key is not distinct from concurrency
        for no key update
    loop
      since := least(since, older.held_since);
      perform move_job(older.id, 'pending', 'cancelled', why => 'a newer trigger took its place (debounce)', is_superseded => true);
    end loop;
    hold := least(clock_timestamp() + pause, since + 10 * pause);
  elsif policy in ('queue', 'cancelOlder') then
    if policy = 'cancelOlder' then perform supersede_runs(automation, concurrency, own_id, false); end if;
    if exists (
        select from job where job.automation_id = automation and job.concurrency_key = concurrency and holds_key and is_under_way(job)) then
      hold := 'infinity';
    end if;
  end if;

  insert into job (id, organization_id, automation_id, trigger_id, event_id, priority, payload, trace_parent, task,
      concurrency_key, holds_key, held_until, held_since, repository_ids, subject)
    values (own_id, owner, automation, by_trigger, (fired ->> 'eventId')::uuid, (fired ->> 'priority')::integer, fired -> 'payload',
      fired ->> 'traceParent', coalesce(fired ->> 'task', 'RunWorkflow'),
      case when policy is not null or pause is not null then concurrency end, policy is not null, hold,
      case when pause is not null then since end,
      works_on, about)
    on conflict (id) do nothing returning * into made;
  -- None: another worker decided the same event at the same moment.
  if made.id is not null then perform enqueue_job_webhooks(made); end if;
  return query select 'accepted', own_id, null::text;
end $$;
