-- needs: enqueue_job_webhooks, fire_trigger, receiving_version
-- Does what fire_trigger does for many deliveries at once, in one statement for all that have no policy: those that are new, and those
-- whose first delivery is known already, which leave no key. The others go through fire_trigger, in the order of the list: those that
-- repeat another of the same list or of a statement at the same moment, and one with a policy, which must come alone, because its
-- automation is locked. One that comes alone and has no policy is written by statements of its own: the one for many takes longer to
-- start and to end than to write the rows of one.
--
-- A delivery names the version of its trigger by which it was found to be rightly signed. If the trigger is another by now, or gone, it
-- is stale and nothing of it is written: so a secret that was replaced counts no longer than until that was committed, although nodes
-- keep triggers in memory.
-- Measured: 183 µs, 49 pages: each of ten deliveries of 7 kB that are new, to a trigger without a policy.
-- Callers: src/store/automations/firings.ts. firings.ts describes the fields.
-- @param fired a JSON list of what fire_trigger takes, each with `version`; null: whatever the trigger is by now
-- @returns a row for each, by its place in the list from 1; an outcome may also be `stale`
create or replace function fire_triggers(fired jsonb) returns table (place bigint, outcome text, entry uuid, why text)
language plpgsql rows 100 set plan_cache_mode to force_generic_plan as $$
#variable_conflict use_column
declare
  one record;
  made uuid[] := '{}';
  redone bigint[] := '{}';
  undone bigint[] := '{}';
  sole constant jsonb := case when jsonb_array_length(fired) = 1 and coalesce(fired -> 0 ->> 'policy', fired -> 0 ->> 'debounceSeconds',
    fired -> 0 ->> 'maxPerHour', fired -> 0 ->> 'mostOfSubject') is null then fired -> 0 end;
  sole_id constant uuid := sole ->> 'id';
  sole_owner constant uuid := sole ->> 'organizationId';
  sole_trigger constant uuid := sole ->> 'triggerId';
  sole_original uuid;
  is_told boolean;
begin
  if sole is not null and (sole ->> 'version' is null or sole ->> 'version' is not distinct from receiving_version(sole_trigger)) then
    why := sole ->> 'refusal';
    if why is not null then
      outcome := 'filtered';
    else
      select first.ledger_id into sole_original from jsonb_array_elements_text(sole -> 'keys') as each_key cross join lateral (
          select ledger_id, created_at from received_key where scope = sole_trigger and key = each_key limit 1) as first
        order by first.ledger_id <> sole_id, first.created_at limit 1;
      if sole_original <> sole_id then
        outcome := 'duplicate';
        why := 'it was delivered before';
      end if;
    end if;
    if outcome is not null then
      insert into arrival (id, organization_id, automation_id, trigger_id, connection_id, outcome, reason, original_id, name, delivery_id,
          subject, payload)
        values (sole_id, sole_owner, (sole ->> 'automationId')::uuid, sole_trigger, (sole ->> 'connectionId')::uuid, outcome, why,
          sole_original, sole ->> 'name', sole ->> 'deliveryId', sole ->> 'subject',
          -- What is delivered again is not kept again.
          case when outcome <> 'duplicate' then sole -> 'payload' end)
        on conflict (id) do nothing;
      return query select 1::bigint, outcome, coalesce(sole_original, sole_id), why;
      return;
    elsif sole_original is null then
      with noted as (
        insert into received_key (organization_id, scope, key, ledger_id)
          select sole_owner, sole_trigger, each_key, sole_id from jsonb_array_elements_text(sole -> 'keys') as each_key order by each_key
          on conflict do nothing returning key)
      insert into job (id, organization_id, automation_id, trigger_id, event_id, priority, payload, trace_parent, task)
        select sole_id, sole_owner, (sole ->> 'automationId')::uuid, sole_trigger, (sole ->> 'eventId')::uuid,
          (sole ->> 'priority')::integer, sole -> 'payload', sole ->> 'traceParent', coalesce(sole ->> 'task', 'RunWorkflow')
        where (select count(*) from noted) = jsonb_array_length(sole -> 'keys') on conflict (id) do nothing
        returning exists (select from webhook where enabled) into is_told;
      if found then
        if is_told then perform enqueue_job_webhooks(job) from job where id = sole_id; end if;
        return query select 1::bigint, 'accepted', sole_id, null::text;
        return;
      end if;
      -- Another has come at the same moment, which is known by now.
      delete from received_key using jsonb_array_elements_text(sole -> 'keys') as each_key
        where scope = sole_trigger and key = each_key and ledger_id = sole_id;
    end if;
  end if;
  for one in
    with item as materialized (
      select given.place, each, (each ->> 'id')::uuid as id, (each ->> 'organizationId')::uuid as owner,
        (each ->> 'triggerId')::uuid as by_trigger, each ->> 'refusal' as refusal,
        coalesce(each ->> 'policy', each ->> 'debounceSeconds', each ->> 'maxPerHour', each ->> 'mostOfSubject') is null as is_plain,
        each ->> 'version' is not null
          and each ->> 'version' is distinct from receiving_version((each ->> 'triggerId')::uuid) as is_stale
      from jsonb_array_elements(fired) with ordinality as given (each, place)),
    given_key as materialized (
      select item.place, id, owner, by_trigger, key from item, jsonb_array_elements_text(each -> 'keys') as key
      where is_plain and not is_stale and refusal is null),
    earlier as materialized (
      -- Asked for each key by itself, by the primary key, however many rows the planner expects.
      select id, first.ledger_id, first.created_at from given_key cross join lateral (
        select ledger_id, created_at from received_key where scope = by_trigger and received_key.key = given_key.key limit 1) as first),
    -- An earlier request of this one has noted them, and ended before its answer.
    own as materialized (select id from earlier where ledger_id = id),
    repeated as materialized (
      select distinct on (id) id, ledger_id as original from earlier where id not in (select id from own) order by id, created_at),
    news as materialized (select * from given_key where id not in (select id from repeated)),
    noted as (
      -- In one order, so that two batches at once do not wait for each other; of two equal deliveries the first is the original.
      insert into received_key (organization_id, scope, key, ledger_id)
        select owner, by_trigger, key, id from news order by by_trigger, key, news.place
        on conflict do nothing returning ledger_id),
    known as (
      select news.id from (select id, count(*) as given from news group by id) as news
        left join (select ledger_id, count(*) as added from noted group by ledger_id) as noted on noted.ledger_id = news.id
      where given > coalesce(added, 0)),
    decided as materialized (
      select item.*, original, id in (select id from own) as is_own,
        case when is_stale then 'stale' when not is_plain then 'redone' when refusal is not null then 'filtered'
          when original is not null then 'duplicate' when id in (select id from known) then 'redone' else 'accepted' end as state,
        case when original is null then refusal else 'it was delivered before' end as reason
      from item left join repeated using (id)),
    queued as (
      insert into job (id, organization_id, automation_id, trigger_id, event_id, priority, payload, trace_parent, task)
        select id, owner, (each ->> 'automationId')::uuid, by_trigger, (each ->> 'eventId')::uuid, (each ->> 'priority')::integer,
          each -> 'payload', each ->> 'traceParent', coalesce(each ->> 'task', 'RunWorkflow')
        from decided where state = 'accepted' on conflict (id) do nothing returning id),
    refused as (
      -- What is delivered again is not kept again.
      insert into arrival (id, organization_id, automation_id, trigger_id, connection_id, outcome, reason, original_id, name, delivery_id,
          subject, payload)
        select id, owner, (each ->> 'automationId')::uuid, by_trigger, (each ->> 'connectionId')::uuid, state, reason, original,
          each ->> 'name', each ->> 'deliveryId', each ->> 'subject', case when state <> 'duplicate' then each -> 'payload' end
        from decided where state in ('filtered', 'duplicate') on conflict (id) do nothing)
    select decided.place, state, decided.id, original, reason, is_plain and not is_own as has_noted, queued.id is not null as is_made
    from decided left join queued on queued.id = decided.id order by decided.place
  loop
    if one.state = 'redone' then
      redone := redone || one.place;
      if one.has_noted then undone := undone || one.place; end if;
    else
      if one.is_made then made := made || one.id; end if;
      place := one.place;
      outcome := one.state;
      entry := coalesce(one.original, one.id);
      why := one.reason;
      return next;
    end if;
  end loop;
  if made <> '{}' and exists (select from webhook where enabled) then
    perform enqueue_job_webhooks(job) from job where id = any(made) order by id;
  end if;
  if undone <> '{}' then
    -- The keys that they have noted would stand against each other.
    delete from received_key using unnest(undone) as again, jsonb_array_elements_text(fired -> (again::integer - 1) -> 'keys') as each_key
      where scope = (fired -> (again::integer - 1) ->> 'triggerId')::uuid and key = each_key
        and ledger_id = (fired -> (again::integer - 1) ->> 'id')::uuid;
  end if;
  if redone <> '{}' then
    return query select again, did.outcome, did.entry, did.why
      from unnest(redone) with ordinality as list (again, number), fire_trigger(fired -> (again::integer - 1)) as did
      order by number;
  end if;
end $$;
