-- works-from: 0027
-- What is said about one pull request or issue, with all that deciding about it remembers, so that the feedback loop ends.
create table conversation (
  id uuid primary key default gen_random_uuid(),
  organization_id uuid not null references organization,
  repository_id uuid not null references repository,
  kind text not null check (kind in ('issue', 'pullRequest')),
  number integer not null,
  -- The newest session that was started for an issue.
  session_id uuid references session on delete set null,
  -- conversationSchema of src/domain/conversations/conversation.ts.
  state jsonb not null,
  -- What the session had cost when it began: the rest counts for its limit.
  spent_before_usd numeric not null default 0,
  -- When something that was gathered is started; null: nothing is gathered.
  due_at timestamptz,
  created_at timestamptz not null default clock_timestamp(),
  updated_at timestamptz not null default clock_timestamp(),
  unique (organization_id, repository_id, kind, number)
);
create index conversation_due on conversation (due_at) where due_at is not null;
create index conversation_of_session on conversation (session_id) where session_id is not null;

-- What was taken up: a comment, a review, red checks or a conflict of one commit, somebody's push. Never twice, however often, in
-- whatever order and by how many connections it is told.
create table conversation_item (
  organization_id uuid not null references organization,
  conversation_id uuid not null references conversation on delete cascade,
  key text not null,
  -- The ledger's entry that told of it first.
  event_id uuid,
  -- The message, session or job that it started, if it did at once.
  run_id uuid,
  -- Why nothing was started.
  reason text,
  created_at timestamptz not null default clock_timestamp(),
  primary key (conversation_id, key)
);
create index conversation_item_of_organization on conversation_item (organization_id);
-- What a conversation has cost is asked for at each decision.
create index conversation_item_run on conversation_item (conversation_id, run_id) where run_id is not null;

-- Runs that are to be answered once they ended: those of the conversation's state, so that a round reads no state to find them.
create table conversation_run (
  -- Of the message, the session or the job.
  id uuid primary key,
  conversation_id uuid not null references conversation on delete cascade,
  -- The session that it is of, without a key: the row says nothing of the session, and outlives it. Null: it is a job's.
  session_id uuid,
  -- When it is looked at: at once after a move of its session, by move_session; else now and then, as nothing tells of what is deleted.
  due_at timestamptz not null
);
create index conversation_run_of on conversation_run (conversation_id);
create index conversation_run_due on conversation_run (due_at);
create index conversation_run_session on conversation_run (session_id) where session_id is not null;
