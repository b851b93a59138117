-- works-from: 0027
-- What Offstage writes on forges and in services that take answers back, and by what it knows its own words again.
create table answer (
  -- Also the key of the comment's mark, which nobody knows before it is posted.
  id uuid primary key default gen_random_uuid(),
  organization_id uuid not null references organization,
  -- Null: of none, or of one that was deleted.
  session_id uuid references session on delete set null,
  repository_id uuid references repository,
  -- What asked for it, once: a second request with the key changes nothing.
  key text not null check (key <> ''),
  -- AnswerAction of src/store/answers/answers.ts.
  action jsonb not null,
  text text not null,
  -- Whom it is sent to: the forge's host, or the service's name.
  host text not null,
  -- Answers with one of these go out in the order in which they were queued; null: in any.
  place text,
  number bigint generated always as identity,
  status text not null default 'pending' check (status in ('pending', 'sent', 'refused', 'dead')),
  -- Number of attempts. It is the fence: what an older one writes changes nothing.
  attempts integer not null default 0,
  next_attempt_at timestamptz not null default now(),
  -- The id of what was written, and among which comments of the repository no other has it; null: among all.
  external_id text,
  id_scope text,
  url text,
  -- Why it was refused, given up, or not sent yet.
  problem text,
  created_at timestamptz not null default clock_timestamp(),
  updated_at timestamptz not null default clock_timestamp(),
  unique (organization_id, key),
  check (repository_id is not null or action ->> 'kind' = 'service')
);
create index answer_due on answer (organization_id, next_attempt_at) where status = 'pending';
create index answer_place on answer (organization_id, place, number) where status = 'pending' and place is not null;
create index answer_external on answer (organization_id, repository_id, external_id) where external_id is not null;
create index answer_of_session on answer (session_id, created_at desc, id desc) where session_id is not null;
create index answer_age on answer (updated_at) where status <> 'pending';
