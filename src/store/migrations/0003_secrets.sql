-- Values for setup scripts and agents, sealed with AES-256-GCM: 12 bytes of nonce, 16 of tag, then the ciphertext.
-- The row's id is the associated data, so that a sealed value is worth nothing in another row.
create table secret (
  id uuid primary key,
  organization_id uuid not null references organization,
  -- Null: for every repository of the organization.
  repository_id uuid references repository,
  name text not null,
  phases text[] not null,
  sealed bytea not null,
  -- Fingerprint of the master key that sealed it.
  master_key text not null,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now()
);
create unique index secret_name on secret (organization_id, repository_id, name) nulls not distinct;
create index secret_list on secret (organization_id, created_at desc, id desc);
