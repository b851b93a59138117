-- works-from: 0011
-- A webhook that is being deleted is not told, instead of breaking the change that it would be told of.
create or replace function announce_change(organization uuid, change text, data jsonb) returns void language sql as $$
  insert into webhook_delivery (id, organization_id, webhook_id, type, data)
  select gen_random_uuid(), organization, told.id, change, data from (
    select webhook.id from webhook
    where webhook.organization_id = organization and webhook.enabled and (webhook.events = '{}' or change = any(webhook.events))
    for key share) as told
$$;
