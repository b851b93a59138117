-- works-from: 0027
-- What API nodes ask workers of sessions' files, and what these answer: src/store/sessions/file-requests.ts. A row lives for seconds, and
-- whoever asked asks again, so it need not outlive a crash of the database.
create unlogged table file_request (
  id uuid primary key,
  session_id uuid not null references session on delete cascade,
  -- Which worker is asked.
  worker text not null,
  question jsonb not null,
  asked_at timestamptz not null default now(),
  claimed_at timestamptz,
  answer jsonb
);
create index file_request_open on file_request (worker, asked_at) where claimed_at is null;
create index file_request_session on file_request (session_id);
create index file_request_age on file_request (asked_at);
