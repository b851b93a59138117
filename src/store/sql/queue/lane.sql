-- needs:
-- The lane of an organization's queue that the session is in: its automation, or all zeros if a person asked for it. Each
-- lane has its turn, however much another has queued. As `claimable`, this is a function that the planner replaces by its
-- body, so that the index session_to_claim_by_lane is used, which has the same expression (0033_retry_indexes.sql).
-- Measured: 0.0 µs, 0 pages: a row, of 10,000.
-- Callers: claim_session, fairest_session.
create or replace function lane(asked session) returns uuid language sql immutable parallel safe as $$
  select coalesce(asked.automation_id, '00000000-0000-0000-0000-000000000000'::uuid)
$$;
