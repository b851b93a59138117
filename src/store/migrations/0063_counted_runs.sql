-- works-from: 0027
-- How the job's run ended, as far as it was counted for the automation; null: it was not.
alter table job add column counted text check (counted in ('completed', 'failed'));
