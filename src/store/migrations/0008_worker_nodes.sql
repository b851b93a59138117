-- Workers as they say of themselves, so that an API node without agents of its own knows what can be asked for.
create table worker_node (
  id text primary key,
  -- As GET /agent/list shows them.
  agents jsonb not null,
  default_agent text,
  started_at timestamptz not null default now(),
  seen_at timestamptz not null default now()
);
