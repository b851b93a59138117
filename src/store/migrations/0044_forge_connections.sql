-- works-from: 0027
-- Forges that an organization connected itself, with credentials of its own: src/domain/repositories/connection.ts.
create table forge_connection (
  id uuid primary key,
  organization_id uuid not null references organization,
  kind text not null,
  name text not null,
  -- What it serves: a server, or one owner on it (https://github.com/acme).
  web_url text not null,
  -- Null: the kind has no API.
  api_url text,
  credential text not null check (credential in ('token', 'app', 'configured')),
  -- Whose credential it is, in the forge's words; null: the forge does not say.
  account text,
  -- Where the App is installed on further accounts; null unless it is an App.
  install_url text,
  -- The credential and the secrets of its webhook, as JSON, sealed as secrets are; null once it is deleted.
  sealed bytea,
  -- Fingerprint of the master key that sealed it.
  master_key text,
  -- Until when deliveries signed with the secret before are accepted.
  previous_secret_until timestamptz,
  state text not null check (state in ('ok', 'degraded', 'broken')),
  -- What is missing: a list of connectionProblemSchema.
  problems jsonb not null default '[]',
  checked_at timestamptz not null default now(),
  next_check_at timestamptz not null default now() + interval '1 hour',
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  -- The row stays for what refers to it, without anything secret.
  deleted_at timestamptz,
  check (deleted_at is not null or (sealed is not null and master_key is not null))
);
create unique index forge_connection_address on forge_connection (organization_id, web_url) where deleted_at is null;
create index forge_connection_list on forge_connection (organization_id, created_at desc, id desc);
create index forge_connection_due on forge_connection (next_check_at) where deleted_at is null and credential <> 'configured';
create index forge_connection_state on forge_connection (state) where deleted_at is null;
