-- works-from: 0027
-- The session that a delivered event steers.
alter table arrival add column session_id uuid;
-- Of an event that may steer a session: when it may be claimed. Until it is decided its lease_until is infinity, so that workers of the
-- version before, which know of triggers alone and would filter it, leave it to those that know of conversations.
alter table arrival add column steers_from timestamptz;
-- How often its decision was put off for a reason that passes: these attempts don't count. `attempt`, the fence, only grows.
alter table arrival add column postponed integer not null default 0;
-- When it was put off first.
alter table arrival add column postponed_since timestamptz;
