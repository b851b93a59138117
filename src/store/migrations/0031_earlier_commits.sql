-- works-from: 0027
-- Earlier commits matter to sessions with work that is not pushed yet: the ended ones among them can be retried. Apart from the
-- table's own migration, whose locks on sessions must not be held while this reads events.
insert into session_commit (session_id, position, sha)
select event.session_id, session_repository.position, event.data ->> 'sha'
from session
join session_repository on session_repository.session_id = session.id
join event on event.session_id = session.id and event.type = 'workspace.commit'
  and event.data ->> 'repositoryId' = session_repository.repository_id::text
where session.status in ('queued', 'running', 'waiting')
  or session_repository.head_sha is distinct from coalesce(session_repository.pushed_sha, session_repository.base_sha)
on conflict do nothing;
