-- works-from: 0027
-- A session that only runs the setups of its repositories: no agent, no pull request. Its message is done from the beginning.
alter table session add column setup_trial boolean not null default false;
