-- works-from: 0027
-- Labels, archived sessions, and the order of a repository's sessions.
alter table session add column archived_at timestamptz;

-- With what a list needs of the session, so that it reads a label's sessions in their order: neither of both ever changes.
create table session_label (
  session_id uuid not null references session on delete cascade,
  -- By code points, whatever the database sorts by: what begins with a text follows it in the index.
  label text collate "C" not null check (label <> ''),
  organization_id uuid not null references organization,
  session_created_at timestamptz not null,
  primary key (session_id, label)
);
create index session_label_list on session_label (organization_id, label, session_created_at desc, session_id desc);

-- When the session was created: what is inserted with it, by nodes of the version before too, has its very time. Housekeeping fills in
-- what was there before (src/store/sessions/repository-order.ts).
alter table session_repository add column session_created_at timestamptz;
alter table session_repository alter column session_created_at set default now();
