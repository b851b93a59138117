-- works-from: 0027
-- The answer of a request whose answer has a secret that is shown once: sealed, in the place of `body`. Nodes of the version before make none.
alter table idempotency add column sealed bytea, add column master_key text;
