-- works-from: 0022
-- Keys for triggering alone: the automations that one may trigger; null: all. A column without a default is no rewrite.
alter table api_key add column automation_ids uuid[];
