-- works-from: 0027
-- The session's place among those of its job. Nodes of the version before make one alone, which is the first.
alter table session add column job_part integer not null default 0;
