-- works-from: 0027
-- Sessions whose thread in Slack or issue in Linear gets a link at the start, and the result at the end.
create table session_reply (
  session_id uuid primary key references session on delete cascade,
  -- Whose token it is written with.
  trigger_id uuid not null,
  -- ReplyTarget of src/domain/automations/reply-target.ts.
  target jsonb not null,
  -- What was said last; null: nothing.
  said text check (said in ('started', 'ended', 'completed')),
  -- When a worker looks whether there is something to say; null: when the session's status changes.
  due_at timestamptz default now()
);
create index session_reply_due on session_reply (due_at) where due_at is not null;
