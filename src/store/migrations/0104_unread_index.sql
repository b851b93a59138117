-- works-from: 0027
-- outside a transaction
-- A person's sessions by their end. Of columns that change only with the session's status, or when it is archived.
drop index concurrently if exists session_outcome;
create index concurrently session_outcome on session (requested_by, finished_at desc)
  where requested_by is not null and finished_at is not null and archived_at is null;
