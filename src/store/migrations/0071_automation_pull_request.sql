-- works-from: 0027
-- How the pull requests of its runs are opened, as session.pull_request has it.
alter table automation add column pull_request jsonb;
