-- works-from: 0027
-- Whose the credential of a connection is, as its forge's deliveries name them: by an id, which stands in the place of a name in comments
-- of Azure DevOps, and by the name that people see. Nodes of the version before leave both as they are.
alter table forge_connection add column account_id text, add column account_name text;
