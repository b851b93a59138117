-- works-from: 0027
-- outside a transaction
-- The few sessions that go on before others begin. Of columns that change only when a session's status does: appending an event must
-- not touch an index.
drop index concurrently if exists session_interrupted;
create index concurrently session_interrupted on session (organization_id, priority, interrupted_at)
  where interrupted_at is not null;
