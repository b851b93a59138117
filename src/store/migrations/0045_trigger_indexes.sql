-- works-from: 0027
-- outside a transaction
-- Built without stopping anybody who writes. Held jobs are not pending for anybody who looks for one to claim.
drop index concurrently if exists job_to_claim;
create index concurrently job_to_claim on job (organization_id, automation_id, priority, created_at)
  where status = 'pending' and held_until is null;
drop index concurrently if exists job_held;
create index concurrently job_held on job (held_until) where held_until is not null;
drop index concurrently if exists job_held_of_organization;
create index concurrently job_held_of_organization on job (organization_id) where held_until is not null;
drop index concurrently if exists job_holding_key;
create index concurrently job_holding_key on job (automation_id, concurrency_key) where holds_key;
drop index concurrently if exists job_of_trigger;
create index concurrently job_of_trigger on job (trigger_id, created_at desc) where trigger_id is not null;
drop index concurrently if exists job_of_event;
create index concurrently job_of_event on job (event_id) where event_id is not null;
drop index concurrently if exists arrival_to_decide;
create index concurrently arrival_to_decide on arrival (organization_id, created_at) where outcome is null;
-- By these a delivery of a forge is known to tell of a session's own work.
drop index concurrently if exists session_repository_pushed;
create index concurrently session_repository_pushed on session_repository (pushed_sha) where pushed_sha is not null;
drop index concurrently if exists session_commit_sha;
create index concurrently session_commit_sha on session_commit (sha);
alter table arrival validate constraint arrival_outcome;
-- job_pending stays for nodes of the version before, and for the time until the definitions are applied: a later version drops it.
