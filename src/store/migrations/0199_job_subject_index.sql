-- works-from: 0027
-- outside a transaction
drop index concurrently if exists job_subject;
create index concurrently job_subject on job (automation_id, subject) where subject is not null;
