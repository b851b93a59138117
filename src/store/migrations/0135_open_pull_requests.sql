-- works-from: 0027
-- outside a transaction
-- The sessions of an organization whose pull requests are open, for the list of what needs a person.
drop index concurrently if exists pull_request_open_of;
create index concurrently pull_request_open_of on pull_request (organization_id, session_id) include (mergeable) where state = 'open';
