-- Id of what a request under an Idempotency-Key creates: a server that dies between creating it and keeping its answer
-- leaves the request to be made again, which then finds it there.
alter table idempotency add column created_id uuid not null default gen_random_uuid();
