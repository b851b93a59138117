-- works-from: 0027
-- What decides whether to push and to open a pull request stands in columns: events are for readers, and may be removed for
-- their age. 0031_earlier_commits.sql fills them, apart from the locks that these statements take.

-- The commits that a session's attempts exported, by which its own pushes are told from others'.
create table session_commit (
  session_id uuid not null references session on delete cascade,
  -- Of the repository in the session.
  position integer not null,
  sha text not null,
  primary key (session_id, position, sha)
);

-- The commit that was pushed when the pull request was last opened or found; null: unknown, written by a node of the version
-- before, and taken for the last one that was pushed.
alter table pull_request add column head_sha text;
