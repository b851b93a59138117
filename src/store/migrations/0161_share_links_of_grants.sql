-- works-from: 0027
-- A link that a program made goes with what a person lets it do. Nodes of the version before make links without a grant, as until now.

alter table share_link add column grant_id uuid references oauth_grant on delete cascade;
