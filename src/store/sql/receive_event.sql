-- needs:
-- Takes in an event that several triggers may answer: it waits in the ledger for a worker, unless it was delivered before, or no
-- trigger listens to its name. Idempotent by the entry's id.
-- Caller: src/store/automations/inbound-events.ts, which describes the fields.
-- @param received the event, as JSON
create or replace function receive_event(received jsonb) returns table (outcome text, entry uuid)
language plpgsql rows 1 set plan_cache_mode to force_generic_plan as $$
#variable_conflict use_column
declare
  own_id constant uuid := received ->> 'id';
  owner constant uuid := received ->> 'organizationId';
  place constant uuid := received ->> 'scope';
  happened constant text := received ->> 'name';
  keys text[];
  added integer;
  original uuid;
  decided text;
  why text;
begin
  if exists (select from arrival where id = own_id) then
    return query select coalesce(arrival.outcome, 'accepted'), own_id from arrival where id = own_id;
    return;
  end if;
  -- First, so that what nothing listened to is news once something does.
  if not exists (
      select from trigger join automation on automation.id = trigger.automation_id and automation.deleted_at is null
      where trigger.organization_id = owner and type = 'forge' and enabled and trigger.deleted_at is null
        and settings -> 'events' ? happened
        and (settings ->> 'connectionId' is null or settings ->> 'connectionId' = received ->> 'connectionId')) then
    decided := 'filtered';
    why := case when happened is null then 'it tells of nothing that triggers can listen to' else 'no trigger listens to ' || happened end;
  end if;
  keys := array(select jsonb_array_elements_text(received -> 'keys'));
  if decided is null and keys <> '{}' then
    insert into received_key (organization_id, scope, key, ledger_id) select owner, place, given, own_id from unnest(keys) as given order by given
      on conflict do nothing;
    get diagnostics added = row_count;
    if added < cardinality(keys) then
      select ledger_id into original from received_key
        where scope = place and key = any(keys) and ledger_id <> own_id order by created_at limit 1;
      if original is not null then
        delete from received_key where scope = place and key = any(keys) and ledger_id = own_id;
        decided := 'duplicate';
        why := 'it was delivered before';
      end if;
    end if;
  end if;
  insert into arrival (id, organization_id, connection_id, outcome, reason, original_id, name, delivery_id, content_key, subject,
      payload, trace_parent)
    values (own_id, owner, (received ->> 'connectionId')::uuid, decided, why, coalesce(original, (received ->> 'originalId')::uuid), happened, received ->> 'deliveryId',
      received ->> 'contentKey', received ->> 'subject',
      case when decided is null or (decided = 'filtered' and (received ->> 'keepsPayload')::boolean is not false) then received -> 'payload' end,
      received ->> 'traceParent')
    on conflict (id) do nothing;
  return query select coalesce(decided, 'accepted'), coalesce(original, own_id);
end $$;
