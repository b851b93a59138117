-- works-from: 0027
-- Of a connection to Azure DevOps: the names of the repositories that work items are about, by their projects; null: they have their
-- project's name. Nodes of the version before hear of work items in no repository.
alter table forge_connection add column work_item_repositories jsonb;
