-- works-from: 0027
-- outside a transaction
-- By these a key, a user or a session is deleted without reading all of the tables that refer to it. Built without stopping anybody
-- who writes.
drop index concurrently if exists session_created_by;
create index concurrently session_created_by on session (created_by) where created_by is not null;
drop index concurrently if exists pull_request_session;
create index concurrently pull_request_session on pull_request (session_id);
drop index concurrently if exists job_session;
create index concurrently job_session on job (session_id) where session_id is not null;
-- Of columns that change only when a session has ended: appending an event must not touch an index.
drop index concurrently if exists session_events_to_count;
create index concurrently session_events_to_count on session (finished_at)
  where status in ('completed', 'failed', 'cancelled') and (event_bytes_at is null or event_bytes_at < finished_at);
drop index concurrently if exists session_event_bytes;
create index concurrently session_event_bytes on session (finished_at) include (event_bytes)
  where status in ('completed', 'failed', 'cancelled') and event_bytes > 0;
-- Instead of session_words, which 0042_search_words.sql drops: see 0022_search.sql for its form.
drop index concurrently if exists session_lexemes_index;
create index concurrently session_lexemes_index on session
  using gin (session_lexemes(organization_id, created_at, title, description)) with (fastupdate = off) where status <> 'running';
