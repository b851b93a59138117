-- works-from: 0027
-- outside a transaction
-- The indexes of what may be claimed, without the sessions whose time has not come: 0013_fairness.sql has those of before. Built
-- without stopping anybody who writes.
drop index concurrently if exists session_to_claim;
create index concurrently session_to_claim on session (organization_id, priority, queued_at, id)
  where (status = 'queued' and retry_at is null) or (status = 'waiting' and ready);
drop index concurrently if exists session_to_claim_by_lane;
create index concurrently session_to_claim_by_lane
  on session (organization_id, coalesce(automation_id, '00000000-0000-0000-0000-000000000000'), priority, queued_at, id)
  where (status = 'queued' and retry_at is null) or (status = 'waiting' and ready);
drop index concurrently if exists session_to_retry;
create index concurrently session_to_retry on session (retry_at) where retry_at is not null;
drop index concurrently if exists session_claimable;
drop index concurrently if exists session_claimable_group;
