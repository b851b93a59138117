-- Sessions of one repository that may run at the same time; null: the server's default.
alter table repository add column max_running_sessions integer check (max_running_sessions > 0);

-- The queue as it is taken from: by organizations, and in one by its automations and what people asked for (all zeros), so
-- that each has its turn however much another has queued.
create index session_claimable on session (organization_id, priority, queued_at, id)
  where status = 'queued' or (status = 'waiting' and ready);
create index session_claimable_group
  on session (organization_id, coalesce(automation_id, '00000000-0000-0000-0000-000000000000'), priority, queued_at, id)
  where status = 'queued' or (status = 'waiting' and ready);
drop index session_ready;
create index job_pending on job (organization_id, automation_id, priority, created_at) where status = 'pending';
create index session_repository_of on session_repository (repository_id, session_id);

-- How many sessions each worker carries out at once, to say when a queued one may run.
alter table worker_node add column concurrency integer not null default 1;
