-- works-from: 0027
-- outside a transaction
-- By these a delivery is known to be about a session's pull request.
drop index concurrently if exists pull_request_number;
create index concurrently pull_request_number on pull_request (organization_id, number);
drop index concurrently if exists pull_request_head;
create index concurrently pull_request_head on pull_request (organization_id, head);
drop index concurrently if exists arrival_of_session;
create index concurrently arrival_of_session on arrival (session_id) where session_id is not null;
drop index concurrently if exists pull_request_closed;
create index concurrently pull_request_closed on pull_request (closed_at) where state = 'closed';
