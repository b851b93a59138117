-- works-from: 0027
-- How long a session was in the queue before it first began, in ms. Null: it has not begun, or did before this was counted.
alter table session add column queue_wait_ms bigint;

-- What a session used of each model, by the day (UTC) on which it did.
create table session_usage (
  session_id uuid not null references session on delete cascade,
  day date not null,
  provider text not null,
  model text not null,
  organization_id uuid not null,
  requests integer not null default 1,
  input_tokens bigint not null,
  output_tokens bigint not null,
  cache_read_tokens bigint not null,
  cache_write_tokens bigint not null,
  reasoning_tokens bigint not null,
  cost_usd numeric not null,
  primary key (session_id, day, provider, model)
);
create index session_usage_day on session_usage (organization_id, day);

-- Days (UTC) whose figures are to be counted again. Rows are only ever added and deleted, so that nothing waits for another.
create table insight_mark (
  organization_id uuid not null,
  day date not null
);
create index insight_mark_day on insight_mark (organization_id, day);

-- Days some of whose sessions were deleted for their age (OFFSTAGE_SESSION_DAYS): their figures stay as they are.
create table insight_kept_day (
  organization_id uuid not null references organization,
  day date not null,
  primary key (organization_id, day)
);

-- An organization's figures of one day (UTC): in all, and for each repository, automation, agent, model and person.
-- src/store/insight/count.ts counts them, and nothing else writes them.
create table insight_day (
  organization_id uuid not null references organization,
  -- The id of a repository: of the work on it alone; empty: of all work.
  scope text not null,
  dimension text not null check (dimension in ('all', 'repository', 'automation', 'agent', 'model', 'person')),
  day date not null,
  key text not null,
  sessions integer not null,
  completed integer not null,
  failed integer not null,
  cancelled integer not null,
  pull_requests integer not null,
  merged integer not null,
  closed integer not null,
  review_rounds integer not null,
  input_tokens bigint not null,
  output_tokens bigint not null,
  cache_read_tokens bigint not null,
  cache_write_tokens bigint not null,
  reasoning_tokens bigint not null,
  cost_usd numeric not null,
  -- How many times were of which length: src/domain/insight/histogram.ts.
  wait_buckets integer[] not null,
  wait_counts integer[] not null,
  opening_buckets integer[] not null,
  opening_counts integer[] not null,
  merging_buckets integer[] not null,
  merging_counts integer[] not null,
  primary key (organization_id, scope, dimension, day, key)
);
-- A day is counted again as a whole.
create index insight_day_day on insight_day (organization_id, day);
