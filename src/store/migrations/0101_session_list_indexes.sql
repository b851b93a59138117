-- works-from: 0027
-- outside a transaction
-- The lists of sessions, each newest first. Of columns that change only with the session's status, or when it is archived: appending an
-- event must not touch an index.
drop index concurrently if exists session_shown;
create index concurrently session_shown on session (organization_id, created_at desc, id desc) where archived_at is null;
drop index concurrently if exists session_archived;
create index concurrently session_archived on session (organization_id, created_at desc, id desc) where archived_at is not null;
drop index concurrently if exists session_ended_shown;
create index concurrently session_ended_shown on session (organization_id, status, created_at desc, id desc)
  where status in ('draft', 'failed', 'cancelled') and archived_at is null;
drop index concurrently if exists session_ended;
-- A user who asked, else the key that is no user's.
drop index concurrently if exists session_person;
create index concurrently session_person on session (coalesce(requested_by, created_by), created_at desc, id desc)
  where coalesce(requested_by, created_by) is not null;
drop index concurrently if exists session_repository_list;
create index concurrently session_repository_list on session_repository (repository_id, session_created_at desc, session_id desc);
-- Those that housekeeping has still to fill in.
drop index concurrently if exists session_repository_unfilled;
create index concurrently session_repository_unfilled on session_repository (repository_id) where session_created_at is null;
-- What needs a person (src/store/sessions/attention.ts).
drop index concurrently if exists session_failed_lately;
create index concurrently session_failed_lately on session (organization_id, finished_at) where status = 'failed' and archived_at is null;
drop index concurrently if exists pull_request_open_of;
create index concurrently pull_request_open_of on pull_request (organization_id, created_at) where state = 'open';
