-- works-from: 0027
-- The submodules that were fetched for a session's clone, as a list of `path`, `sha` and `url`. Null: none, or a node of the version before made it.
alter table session_repository add column submodules jsonb;
