-- works-from: 0027
-- Whether an organization uses what the operator configured for all: credentials of forges, ssh keys, repositories on the server's
-- machine. Nodes of the version before let every organization use it; make none with this withheld until they are gone.
alter table organization add column uses_server_forges boolean not null default true;
