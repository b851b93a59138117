-- works-from: 0027
-- What a worker says of its program and its disk: src/domain/system/health.ts. Workers of the version before say nothing of it.
alter table worker_node add column machine jsonb;
-- With which heartbeat it said so. One that was put back to the version before goes on without: what is older than `seen_at` is nobody's.
alter table worker_node add column machine_at timestamptz;
