-- works-from: 0027
-- What decides whether to push and to open a pull request stands in columns: events are for readers, and may be removed for
-- their age.

-- The commits that a session's attempts exported, by which its own pushes are told from others'.
create table session_commit (
  session_id uuid not null references session on delete cascade,
  -- Of the repository in the session.
  position integer not null,
  sha text not null,
  primary key (session_id, position, sha)
);
-- The commit that was pushed when the pull request was last opened or found; null: unknown, written by an earlier version.
alter table pull_request add column head_sha text;

-- Earlier commits matter to sessions whose work is not pushed yet: the ended ones among them can be retried.
insert into session_commit (session_id, position, sha)
select event.session_id, session_repository.position, event.data ->> 'sha'
from session
join session_repository on session_repository.session_id = session.id
join event on event.session_id = session.id and event.type = 'workspace.commit'
  and event.data ->> 'repositoryId' = session_repository.repository_id::text
where session.status in ('queued', 'running', 'waiting') or (session_repository.pushed_sha is null
  and session_repository.head_sha is distinct from session_repository.base_sha)
on conflict do nothing;
