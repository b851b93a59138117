-- works-from: 0027
-- Whether the pull requests of its repositories are opened together, or none is. Nodes of the version before push all first, and open
-- none if a push is refused: they do so for each session.
alter table session add column pull_requests_together boolean not null default false;
