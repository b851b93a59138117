-- works-from: 0027
-- outside a transaction
-- Since jobs can be held, job_to_claim finds those that may be claimed: these two were written with each job, and nothing reads them.
drop index concurrently if exists job_pending;
drop index concurrently if exists job_queue;
