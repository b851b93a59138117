-- works-from: 0027
-- outside a transaction
-- By this a worker counts what was answered in one place.
drop index concurrently if exists session_reply_target;
create index concurrently session_reply_target on session_reply using hash (target);
