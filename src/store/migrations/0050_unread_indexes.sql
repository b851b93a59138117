-- works-from: 0027
-- outside a transaction
-- No query reads these. `arrival.content_key`, which nothing reads either, is left to the next version: nodes of the one before write it.
drop index concurrently if exists job_of_event;
drop index concurrently if exists trigger_sealed;
