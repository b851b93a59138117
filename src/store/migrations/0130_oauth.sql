-- works-from: 0027
-- Programs that people let act for them, by OAuth 2.1: src/domain/people/grant.ts. Nodes of the version before know none of it.

-- Programs that registered themselves (RFC 7591). Those that name a document of their own are in no table.
create table oauth_client (
  id uuid primary key,
  name text not null,
  redirect_uris text[] not null,
  created_at timestamptz not null default now(),
  -- When somebody last let it act; null: nobody did.
  used_at timestamptz
);
create index oauth_client_unused on oauth_client (created_at) where used_at is null;

-- What a person let a program do.
create table oauth_grant (
  id uuid primary key,
  organization_id uuid not null references organization,
  -- Whose it is: a user, a key that signed a browser in, or, both null, whoever opened a one-time link.
  user_id uuid references user_account,
  key_id uuid references api_key,
  client_id text not null,
  client_name text not null,
  scopes text[] not null,
  -- What its tokens are good for: `api`, or `mcp`.
  resource text not null check (resource in ('api', 'mcp')),
  -- The browser that allowed it.
  address text,
  created_at timestamptz not null default now(),
  last_used_at timestamptz,
  -- Moved on whenever the program asks for a new token.
  expires_at timestamptz not null
);
create index oauth_grant_list on oauth_grant (organization_id, created_at desc, id desc);
create index oauth_grant_user on oauth_grant (user_id) where user_id is not null;
create index oauth_grant_key on oauth_grant (key_id) where key_id is not null;
create index oauth_grant_expiry on oauth_grant (expires_at);

create table oauth_token (
  hash bytea primary key,
  grant_id uuid not null references oauth_grant on delete cascade,
  kind text not null check (kind in ('access', 'refresh')),
  expires_at timestamptz not null,
  -- Of a refresh token: when it was exchanged for the next one.
  replaced_at timestamptz
);
create index oauth_token_grant on oauth_token (grant_id);
create index oauth_token_expiry on oauth_token (expires_at);

-- A program asks a person, until its code is exchanged. What was exchanged stays until it expires, so that a second exchange is known.
create table oauth_request (
  -- Of the token in the address of the page that asks.
  hash bytea primary key,
  client_id text not null,
  client_name text not null,
  redirect_uri text not null,
  state text,
  scopes text[] not null,
  resource text not null check (resource in ('api', 'mcp')),
  -- Challenge of PKCE by S256 (RFC 7636).
  challenge text not null,
  -- The address of this server that the program knows (RFC 9207).
  issuer text not null,
  expires_at timestamptz not null,
  -- From here on null until a person allowed it.
  code_hash bytea,
  organization_id uuid references organization,
  user_id uuid references user_account,
  key_id uuid references api_key,
  granted text[],
  address text,
  -- Null until its code was exchanged.
  grant_id uuid
);
create unique index oauth_request_code on oauth_request (code_hash);
create index oauth_request_expiry on oauth_request (expires_at);
