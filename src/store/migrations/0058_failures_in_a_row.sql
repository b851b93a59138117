-- works-from: 0027
-- How many failed runs in a row pause the automation; null or 0: any number may fail.
alter table automation add column failures_before_pause integer default 3 check (failures_before_pause between 0 and 1000);
-- Runs that failed since one was completed, or since a person resumed the automation.
alter table automation add column failed_in_a_row integer not null default 0;
-- Why Offstage paused it itself; null: it did not, or somebody has resumed it. A node of the version before that resumes it leaves it.
alter table automation add column paused_reason text;
