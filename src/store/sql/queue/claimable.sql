-- needs:
-- Whether a worker may claim the session: it is queued and not waiting for the time of a retry, or it waited and what it waited
-- for is there. The only place of this
-- condition besides the partial indexes, which must have the same one (0033_retry_indexes.sql).
--
-- A function of the row, and not a generated column: a stored one rewrites the table under a lock that stops every node
-- while it is added, and PostgreSQL has virtual ones since 18 only (15 is supported). The planner replaces the call by its
-- body, once for each plan, so that the partial indexes are used and a claim does not pay for it;
-- test/store/definitions.test.ts looks at the plans.
-- Measured: 0.1 µs, 0 pages: a row, of 10,000.
-- Callers: claim_session, fairest_organization, fairest_session, src/store/queue/queue.ts, src/store/sessions/changed-sessions.ts,
-- src/store/sessions/session-record.ts.
-- move_session has it in other words.
create or replace function claimable(asked session) returns boolean language sql immutable parallel safe as $$
  select (asked.status = 'queued' and asked.retry_at is null) or (asked.status = 'waiting' and asked.ready)
$$;
