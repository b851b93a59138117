-- works-from: 0022
-- Which repositories an organization's sessions may name, as patterns; null: every one.
alter table organization add column repositories text[];
