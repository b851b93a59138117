-- What a session's agent has made so far and what its harness remembers: another worker goes on from there.
create table checkpoint (
  session_id uuid primary key references session on delete cascade,
  -- Which pieces belong to what; see store/checkpoints.ts.
  content jsonb not null,
  -- The session's own key, under which the pieces are sealed; itself sealed with the master key.
  sealed_key bytea not null,
  master_key text not null,
  bytes bigint not null,
  taken_at timestamptz not null default now()
);

create table checkpoint_piece (
  session_id uuid not null references session on delete cascade,
  id uuid not null,
  position integer not null,
  sealed bytea not null,
  primary key (session_id, id, position)
);
alter table checkpoint_piece alter column sealed set storage external;

-- The worker whose disk has the session's folders as they were left last; null: none has.
alter table session add column workspace_worker text;
