-- The whole schema of the first release. Ids are random UUIDs; times are timestamptz in UTC.
-- Every table that belongs to an organization starts its indexes with organization_id.

create table organization (
  id uuid primary key,
  name text not null unique,
  default_agent text,
  -- Sessions that may run at the same time; null: the server's default.
  max_running_sessions integer check (max_running_sessions > 0),
  created_at timestamptz not null default now()
);

create table api_key (
  id uuid primary key,
  organization_id uuid not null references organization,
  name text not null,
  prefix text not null,
  hash bytea not null unique,
  scopes text[] not null,
  created_at timestamptz not null default now(),
  expires_at timestamptz,
  revoked_at timestamptz,
  last_used_at timestamptz
);
create index api_key_list on api_key (organization_id, created_at desc, id desc);

-- Signs one browser in, once.
create table login_link (
  hash bytea primary key,
  organization_id uuid not null references organization,
  scopes text[] not null,
  expires_at timestamptz not null,
  used_at timestamptz
);

create table browser_session (
  hash bytea primary key,
  organization_id uuid not null references organization,
  -- Where it was signed in by a key: gone when the key is revoked.
  key_id uuid references api_key,
  scopes text[] not null,
  created_at timestamptz not null default now(),
  expires_at timestamptz not null
);

create table repository (
  id uuid primary key,
  organization_id uuid not null references organization,
  name text not null,
  url text not null,
  -- Scheme-less host and path: the same repository by another spelling is the same row.
  address_key text not null,
  branch text,
  description text,
  enabled_at timestamptz not null default now(),
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  deleted_at timestamptz
);
create unique index repository_address on repository (organization_id, address_key) where deleted_at is null;
create index repository_list on repository (organization_id, created_at desc, id desc) where deleted_at is null;

create table automation (
  id uuid primary key,
  organization_id uuid not null references organization,
  name text not null,
  macro text not null,
  instructions text not null,
  agent text,
  repository_ids uuid[] not null,
  target_branch text,
  priority integer not null check (priority between 1 and 9),
  paused boolean not null,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  deleted_at timestamptz
);
create unique index automation_macro on automation (organization_id, macro) where deleted_at is null;
create index automation_list on automation (organization_id, created_at desc, id desc) where deleted_at is null;

-- A trigger's job is its own queue row.
create table job (
  id uuid primary key,
  organization_id uuid not null references organization,
  automation_id uuid not null references automation,
  task text not null default 'RunWorkflow',
  status text not null default 'pending' check (status in ('pending', 'running', 'completed', 'failed', 'cancelled')),
  priority integer not null,
  payload jsonb not null,
  session_id uuid,
  error text,
  worker text,
  lease_until timestamptz,
  attempt integer not null default 0,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now()
);
create index job_queue on job (priority, created_at) where status = 'pending';
create index job_leased on job (lease_until) where status = 'running';
create index job_list on job (organization_id, created_at desc, id desc);
create index job_runs on job (automation_id, created_at desc, id desc);

-- A session is its own queue row: claimed by `worker` until `lease_until`, under the fence `attempt`.
create table session (
  id uuid primary key,
  organization_id uuid not null references organization,
  title text not null,
  description text not null,
  prompt text,
  status text not null check (status in ('draft', 'queued', 'running', 'waiting', 'completed', 'failed', 'cancelled')),
  agent text,
  target_branch text,
  branch_name text not null,
  priority integer not null default 5,
  automation_id uuid references automation,
  job_id uuid unique references job,
  -- The trigger's whole body, given to the agent as untrusted data.
  payload jsonb,
  created_by uuid references api_key,
  sandboxed boolean not null default true,
  summary text,
  failure jsonb,
  -- Where the harness keeps this session, to resume it: {provider, sessionId}.
  harness jsonb,
  cancel_requested boolean not null default false,
  worker text,
  lease_until timestamptz,
  -- Counts the claims: a write under an older number changes nothing.
  attempt integer not null default 0,
  -- Claims since a person last asked for work, to stop what can't be finished.
  claims_without_progress integer not null default 0,
  last_event bigint not null default 0,
  queued_at timestamptz,
  started_at timestamptz,
  finished_at timestamptz,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now()
);
create index session_queue on session (priority, queued_at, id) where status = 'queued';
create index session_running on session (organization_id) where status = 'running';
create index session_leased on session (lease_until) where status in ('running', 'waiting');
create index session_list on session (organization_id, created_at desc, id desc);
create index session_search on session using gin (to_tsvector('simple', title || ' ' || left(description, 20000)));

create table session_repository (
  session_id uuid not null references session on delete cascade,
  repository_id uuid references repository,
  position integer not null,
  -- Folder in the workspace.
  directory text not null,
  base_sha text,
  head_sha text,
  pushed_sha text,
  patch text,
  patch_truncated boolean not null default false,
  primary key (session_id, position)
);

create table message (
  id uuid primary key,
  session_id uuid not null references session on delete cascade,
  position integer not null,
  text text not null,
  status text not null default 'pending' check (status in ('pending', 'running', 'done')),
  created_at timestamptz not null default now(),
  unique (session_id, position)
);

create table event (
  session_id uuid not null references session on delete cascade,
  seq bigint not null,
  type text not null,
  data jsonb not null,
  created_at timestamptz not null default clock_timestamp(),
  primary key (session_id, seq)
);

-- Exactly one pull request for each (repository, head, target).
create table pull_request (
  id uuid primary key,
  organization_id uuid not null references organization,
  session_id uuid not null references session,
  repository_id uuid not null references repository,
  head text not null,
  target text not null,
  number integer not null,
  url text not null,
  state text not null default 'open' check (state in ('open', 'merged', 'closed')),
  created_at timestamptz not null default now(),
  unique (repository_id, head, target)
);

-- First answers of requests sent with an Idempotency-Key.
create table idempotency (
  organization_id uuid not null references organization,
  key text not null,
  request_hash bytea not null,
  -- Null while the first request is under way.
  status integer,
  body text,
  created_at timestamptz not null default now(),
  primary key (organization_id, key)
);
