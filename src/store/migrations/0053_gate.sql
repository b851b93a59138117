-- works-from: 0027
-- The gate of a session, as its automation had it when the session was made, and what it decided. Not columns of the session's row,
-- which is written again at each claim.
create table session_gate (
  session_id uuid primary key references session on delete cascade,
  script text not null,
  -- Null until it has ended by itself; then it is never run again.
  outcome text check (outcome in ('passed', 'filtered')),
  code integer,
  -- What it printed for the agent, masked.
  output text not null default '',
  decided_at timestamptz
);
