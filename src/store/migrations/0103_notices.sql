-- works-from: 0027
-- What people want to be told of, and by which channel. Nobody of an organization without a row is told anything, and nothing is written.
create table notice_preference (
  user_id uuid primary key references user_account on delete cascade,
  organization_id uuid not null references organization,
  -- By kind and channel: off, mine or all; what is not in it is as src/domain/notices/notice.ts says.
  settings jsonb not null default '{}',
  updated_at timestamptz not null default now()
);
create index notice_preference_of on notice_preference (organization_id);

-- A browser that takes web push. Its address and keys let anybody write to it.
create table push_subscription (
  id uuid primary key,
  organization_id uuid not null references organization,
  user_id uuid not null references user_account on delete cascade,
  -- By which the browser is known when it subscribes again.
  endpoint_hash bytea not null unique,
  host text not null,
  user_agent text,
  sealed bytea not null,
  master_key text not null,
  created_at timestamptz not null default now(),
  sent_at timestamptz
);
create index push_subscription_list on push_subscription (organization_id, user_id, created_at desc, id desc);

-- Something that people may want to be told of: written with the change itself, and gone once it is known whom it concerns.
create table notice (
  id uuid primary key default gen_random_uuid(),
  organization_id uuid not null references organization,
  kind text not null,
  session_id uuid references session on delete cascade,
  data jsonb not null,
  created_at timestamptz not null default clock_timestamp()
);
create index notice_age on notice (created_at);
create index notice_of_organization on notice (organization_id);
create index notice_of_session on notice (session_id) where session_id is not null;

-- One message to one person by one channel.
create table notice_delivery (
  id uuid primary key default gen_random_uuid(),
  organization_id uuid not null references organization,
  user_id uuid not null references user_account on delete cascade,
  channel text not null check (channel in ('email', 'push')),
  subscription_id uuid references push_subscription on delete cascade,
  kind text not null,
  session_id uuid references session on delete cascade,
  data jsonb not null,
  status text not null default 'pending' check (status in ('pending', 'sent', 'dead')),
  attempts integer not null default 0,
  next_attempt_at timestamptz not null default now(),
  problem text,
  created_at timestamptz not null default clock_timestamp(),
  updated_at timestamptz not null default clock_timestamp()
);
create index notice_delivery_due on notice_delivery (next_attempt_at) where status = 'pending';
create index notice_delivery_age on notice_delivery (updated_at) where status <> 'pending';
create index notice_delivery_of_organization on notice_delivery (organization_id);
create index notice_delivery_of_user on notice_delivery (user_id);
create index notice_delivery_of_session on notice_delivery (session_id) where session_id is not null;
create index notice_delivery_of_subscription on notice_delivery (subscription_id) where subscription_id is not null;

-- The keys of this installation, such as the pair by which push services know it.
create table server_key (
  id uuid primary key,
  name text not null unique,
  public text not null,
  sealed bytea not null,
  master_key text not null,
  created_at timestamptz not null default now()
);

-- When a person looked at an outcome. What was over before `read_until` counts as looked at.
create table session_read (
  user_id uuid not null references user_account on delete cascade,
  session_id uuid not null references session on delete cascade,
  read_at timestamptz not null default now(),
  primary key (user_id, session_id)
);
create index session_read_of_session on session_read (session_id);
alter table user_account add column read_until timestamptz not null default now();
