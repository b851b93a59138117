-- works-from: 0027
-- What starts an automation's runs, beside the trigger of the API, which every automation has. Rows of the type `api` are written
-- only if somebody has set one; their id is the automation's.
create table trigger (
  id uuid primary key,
  organization_id uuid not null references organization,
  automation_id uuid not null references automation,
  type text not null check (type in ('api', 'schedule', 'webhook', 'forge', 'source')),
  -- Its place in the automation's list.
  position integer not null,
  enabled boolean not null default true,
  -- CEL; empty: always.
  condition text not null default '',
  -- {"key", "policy"}; null: runs do not wait for each other.
  concurrency jsonb,
  debounce_seconds integer check (debounce_seconds between 1 and 86400),
  max_per_hour integer check (max_per_hour > 0),
  -- The fields of its type.
  settings jsonb not null default '{}',
  -- What its deliveries are signed with, as JSON: the secret, and the one before it with the time until which it counts.
  sealed bytea,
  master_key text,
  -- Of a schedule: its next tick.
  next_at timestamptz,
  -- Why its last evaluation failed, if it did; the condition's author has to mend it.
  problem text,
  created_at timestamptz not null default clock_timestamp(),
  updated_at timestamptz not null default clock_timestamp(),
  deleted_at timestamptz
);
create index trigger_of_automation on trigger (automation_id) where deleted_at is null;
create index trigger_listening on trigger (organization_id, type) where enabled and deleted_at is null;
create index trigger_due on trigger (next_at) where next_at is not null and enabled and deleted_at is null;
create index trigger_sealed on trigger (master_key) where sealed is not null;

-- What a sender has delivered before: by its own delivery id, and by what it says. A second delivery refers to the first.
create table received_key (
  organization_id uuid not null references organization,
  -- The trigger or the connection that it came to.
  scope uuid not null,
  key text not null,
  -- The ledger's entry of the first.
  ledger_id uuid not null,
  created_at timestamptz not null default clock_timestamp(),
  primary key (scope, key)
);
create index received_key_age on received_key (created_at);
create index received_key_of_organization on received_key (organization_id);

alter table job
  add column trigger_id uuid,
  -- The ledger's entry of the event that several triggers may have answered.
  add column event_id uuid,
  -- Runs with one key of one automation do not run at once.
  add column concurrency_key text,
  -- Whether its run still counts for its key: cleared once it is over.
  add column holds_key boolean not null default false,
  -- Not to be claimed before: `infinity` while it waits for an older run of its key.
  add column held_until timestamptz,
  -- Since when triggers in quick succession have put it off.
  add column held_since timestamptz,
  -- A newer trigger took its place.
  add column superseded boolean not null default false,
  -- What sessions work on if the automation names no repositories: those that the event is about.
  add column repository_ids uuid[];

-- Events that several triggers may answer wait here for a worker, which decides for each; then they have an outcome.
alter table arrival
  alter column outcome drop not null,
  alter column reason drop not null,
  drop constraint arrival_outcome_check,
  add constraint arrival_outcome check (outcome in ('fired', 'duplicate', 'filtered', 'superseded', 'missed', 'failed', 'dead-lettered')) not valid,
  add column trigger_id uuid,
  add column connection_id uuid,
  -- The event's name, such as `issue.opened`.
  add column name text,
  add column delivery_id text,
  add column content_key text,
  add column subject text,
  -- What conditions and templates see as `event`.
  add column payload jsonb,
  -- What each listening trigger made of it, up to a bound.
  add column decisions jsonb,
  -- How many runs led to it, each started by an event of the one before: events of Offstage itself end such a chain.
  add column depth integer not null default 0,
  -- The first event of such a chain; null: it is that itself.
  add column root_id uuid,
  add column updated_at timestamptz,
  add column worker text,
  add column lease_until timestamptz,
  add column attempt integer not null default 0,
  add column trace_parent text;
