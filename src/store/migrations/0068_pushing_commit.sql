-- works-from: 0027
-- The commit that is being pushed, or was last: a forge may tell of its checks before the push is recorded.
alter table session_repository add column pushing_sha text;
