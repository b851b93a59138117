-- works-from: 0027
-- What an automation's runs remember from one to the next: written by agents through a tool, and by people.
create table automation_state (
  automation_id uuid not null references automation,
  organization_id uuid not null references organization,
  key text not null,
  value jsonb not null,
  -- Another one after each write, and never one that the key has had before: a writer names the one that it has read.
  version bigint not null,
  -- The session that wrote it last; null: a person or a program did, by the API.
  session_id uuid references session on delete set null,
  updated_at timestamptz not null default clock_timestamp(),
  primary key (automation_id, key)
);
create index automation_state_of_organization on automation_state (organization_id);
create index automation_state_of_session on automation_state (session_id) where session_id is not null;
create sequence automation_state_version;
