-- works-from: 0027
-- Package registries of an organization, with credentials that gateways add outside of sandboxes: src/domain/environments/registry.ts.
create table registry (
  id uuid primary key,
  organization_id uuid not null references organization,
  kind text not null,
  url text not null,
  -- Null: everything that its tool installs comes from it.
  scope text,
  -- Null: the token is sent as Bearer.
  username text,
  -- The token, sealed as secrets are.
  sealed bytea not null,
  -- Fingerprint of the master key that sealed it.
  master_key text not null,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now()
);
create unique index registry_scope on registry (organization_id, kind, scope) nulls not distinct;
create index registry_list on registry (organization_id, created_at desc, id desc);
