-- works-from: 0027
-- outside a transaction
-- The commit on the target branch that a pull request became, or its beginning of 12 characters or more: what a forge tells of that
-- commit follows from the session's work, although nobody's session made it.
alter table pull_request add column if not exists merge_sha text;
drop index concurrently if exists pull_request_merge_sha;
create index concurrently pull_request_merge_sha on pull_request (repository_id, left(merge_sha, 12)) where merge_sha is not null;
