-- works-from: 0027
-- Which handling of a request holds its place: only that one keeps its answer, and makes a secret. Null: a node of the version before began it.
alter table idempotency add column holder uuid;
