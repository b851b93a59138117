-- works-from: 0027
-- People's own accounts at forges, with which their pull requests are opened: src/domain/people/account.ts.
create table forge_account (
  id uuid primary key,
  organization_id uuid not null references organization,
  user_id uuid not null references user_account,
  kind text not null,
  -- What it serves, as an address of a connection does.
  web_url text not null,
  -- Where its token was checked, and the only address that it is sent to.
  api_url text not null,
  -- Of the kinds that have one; null: none.
  username text,
  -- Whose the token is, in the forge's words.
  name text not null,
  -- The token, sealed as secrets are.
  sealed bytea not null,
  -- Fingerprint of the master key that sealed it.
  master_key text not null,
  -- `broken`: it is not used until it is replaced or checked again.
  state text not null check (state in ('ok', 'degraded', 'broken')),
  -- What is missing: a list of connectionProblemSchema.
  problems jsonb not null default '[]',
  checked_at timestamptz not null default now(),
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now()
);
create unique index forge_account_address on forge_account (user_id, web_url);
create index forge_account_list on forge_account (organization_id, user_id, created_at desc, id desc);

-- Repositories on which a forge did not let an account open a pull request.
create table forge_account_refusal (
  account_id uuid not null references forge_account on delete cascade,
  repository_id uuid not null references repository on delete cascade,
  -- The forge's words.
  words text not null,
  refused_at timestamptz not null default now(),
  primary key (account_id, repository_id)
);
create index forge_account_refusal_repository on forge_account_refusal (repository_id);
