-- works-from: 0027
-- outside a transaction
-- By these a key, a user or a session is deleted without reading all of the tables that refer to it. Built without stopping anybody
-- who writes.
drop index concurrently if exists session_created_by;
create index concurrently session_created_by on session (created_by) where created_by is not null;
drop index concurrently if exists pull_request_session;
create index concurrently pull_request_session on pull_request (session_id);
