-- works-from: 0027
-- A script that runs in the sandbox of each run before the agent, and decides whether the run goes on; null: there is none.
alter table automation add column gate text;
