-- needs:
-- Notes by which keys a delivery is known, if none of them came to the same place before.
-- Measured: 117 µs, 32 pages: a delivery with two keys that is new.
-- Callers: fire_trigger, receive_event.
-- @param place the trigger or the connection that it came to
-- @param keys as JSON, a list of texts
-- @returns the ledger's entry of the first delivery; null if this is it, also if an earlier request of this one ended before its answer
create or replace function note_received(owner uuid, place uuid, keys jsonb, own_id uuid) returns uuid language plpgsql as $$
declare
  given constant text[] := array(select jsonb_array_elements_text(keys));
  added integer;
  original uuid;
begin
  if given = '{}' then return null; end if;
  -- In one order, so that two deliveries at once do not wait for each other.
  insert into received_key (organization_id, scope, key, ledger_id)
    select owner, place, each_key, own_id from unnest(given) as each_key order by each_key on conflict do nothing;
  get diagnostics added = row_count;
  if added = cardinality(given) then return null; end if;
  -- By the primary key and sorted afterwards: for the first by its time the planner would walk through the times of all.
  select ledger_id into original from (
      select ledger_id, created_at from received_key where scope = place and key = any(given) offset 0) as known
    where ledger_id <> own_id order by created_at limit 1;
  if original is not null then
    delete from received_key where scope = place and key = any(given) and ledger_id = own_id;
  end if;
  return original;
end $$;
