-- works-from: 0027
-- Who calls Offstage by what in the events of a connection (Calling of src/domain/repositories/calling.ts); null: as the server is set.
-- Nodes of the version before go by the server's settings for all.
alter table forge_connection add column mention text, add column allowed_bots text[];
