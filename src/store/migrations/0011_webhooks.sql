-- Addresses that are told of what happens in an organization, and everything that they are told: the outbox.
create table webhook (
  id uuid primary key,
  organization_id uuid not null references organization,
  url text not null,
  -- Types that it is told of; empty: all.
  events text[] not null,
  enabled boolean not null default true,
  -- Why Offstage switched it off; null where it did not.
  disabled_reason text,
  sealed bytea not null,
  master_key text not null,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now()
);
create index webhook_list on webhook (organization_id, created_at desc, id desc);

create table webhook_delivery (
  id uuid primary key,
  organization_id uuid not null references organization,
  webhook_id uuid not null references webhook on delete cascade,
  type text not null,
  data jsonb not null,
  status text not null default 'pending' check (status in ('pending', 'delivered', 'dead')),
  -- Since it was last asked for: a replay begins anew.
  attempts integer not null default 0,
  next_attempt_at timestamptz not null default now(),
  created_at timestamptz not null default clock_timestamp(),
  updated_at timestamptz not null default now()
);
create index webhook_delivery_due on webhook_delivery (next_attempt_at) where status = 'pending';
create index webhook_delivery_list on webhook_delivery (organization_id, created_at desc, id desc);
create index webhook_delivery_of on webhook_delivery (webhook_id, created_at desc, id desc);
create index webhook_delivery_age on webhook_delivery (updated_at) where status <> 'pending';

create table webhook_attempt (
  delivery_id uuid not null references webhook_delivery on delete cascade,
  at timestamptz not null default clock_timestamp(),
  duration_ms integer not null,
  -- What was answered; null where nothing was.
  status integer,
  error text
);
create index webhook_attempt_of on webhook_attempt (delivery_id, at);

-- Writes down what is to be told, in the transaction of the change itself.
create function announce_change(organization uuid, change text, data jsonb) returns void language sql as $$
  insert into webhook_delivery (id, organization_id, webhook_id, type, data)
  select gen_random_uuid(), organization, webhook.id, change, data from webhook
  where webhook.organization_id = organization and webhook.enabled and (webhook.events = '{}' or change = any(webhook.events))
$$;

create function announce_session(changed session) returns void language sql as $$
  select announce_change(changed.organization_id, 'session.' || changed.status, jsonb_build_object(
    'id', changed.id, 'status', changed.status, 'title', changed.title, 'failure', changed.failure,
    'automationId', changed.automation_id, 'jobId', changed.job_id))
$$;

create function announce_job(changed job) returns void language sql as $$
  select announce_change(changed.organization_id, 'job.' || changed.status, jsonb_build_object(
    'id', changed.id, 'status', changed.status, 'automationId', changed.automation_id,
    'sessionId', changed.session_id, 'error', changed.error))
$$;

create function announce_pull_request(changed pull_request, change text) returns void language sql as $$
  select announce_change(changed.organization_id, 'pullRequest.' || change, jsonb_build_object(
    'sessionId', changed.session_id, 'repositoryId', changed.repository_id, 'number', changed.number,
    'url', changed.url, 'head', changed.head, 'target', changed.target, 'state', changed.state))
$$;

-- When its forge was last asked how the pull request stands.
alter table pull_request add column checked_at timestamptz not null default now();
create index pull_request_open on pull_request (checked_at) where state = 'open';
