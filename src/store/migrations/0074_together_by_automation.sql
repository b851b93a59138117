-- works-from: 0027
-- What its runs' sessions have of it.
alter table automation add column pull_requests_together boolean not null default false;
