-- People, as their identity provider names them. What one may do follows from the role, looked up at each request.
create table user_account (
  id uuid primary key,
  organization_id uuid not null references organization,
  issuer text not null,
  subject text not null,
  -- Verified by the provider.
  email text,
  name text not null,
  role text not null check (role in ('admin', 'member', 'viewer')),
  created_at timestamptz not null default now(),
  last_sign_in_at timestamptz not null default now(),
  disabled_at timestamptz,
  unique (organization_id, issuer, subject)
);
create index user_list on user_account (organization_id, created_at desc, id desc);
alter table browser_session add column user_id uuid references user_account;
create index browser_session_user on browser_session (user_id) where user_id is not null;

-- A sign-in that went to a provider and has not come back: any node can finish it, once.
create table sign_in (
  state_hash bytea primary key,
  method text not null,
  verifier text not null,
  nonce text not null,
  next text not null,
  expires_at timestamptz not null
);
