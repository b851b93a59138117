-- works-from: 0027
-- Links that show one session to whoever has them: src/domain/sessions/share.ts. Nodes of the version before know none of them, and
-- refuse their tokens.

create table share_link (
  id uuid primary key,
  organization_id uuid not null references organization,
  session_id uuid not null references session on delete cascade,
  -- SHA-256 of the token: it is shown once, and kept nowhere.
  hash bytea not null unique,
  -- Who made it; both null: whoever opened a one-time link of the server's.
  user_id uuid references user_account,
  key_id uuid references api_key,
  created_at timestamptz not null default now(),
  expires_at timestamptz not null,
  revoked_at timestamptz,
  last_used_at timestamptz
);
create index share_link_list on share_link (session_id, created_at desc, id desc);
create index share_link_organization on share_link (organization_id, created_at desc, id desc);
create index share_link_user on share_link (user_id) where user_id is not null;
create index share_link_key on share_link (key_id) where key_id is not null;
create index share_link_end on share_link (least(expires_at, revoked_at));
