-- works-from: 0027
-- Sandboxes that workers keep ready. One is taken by a session, for ever: `session_id` is set once and never changed.
create table warm_sandbox (
  id uuid primary key,
  worker text not null,
  -- Digest of all that its harness was started with.
  key text not null,
  session_id uuid,
  attempt integer,
  created_at timestamptz not null default now(),
  check ((session_id is null) = (attempt is null))
);
create index warm_sandbox_worker on warm_sandbox (worker);
