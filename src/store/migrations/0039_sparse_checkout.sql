-- works-from: 0027
-- Folders that clones of the repository have; empty: everything. A constant default rewrites nothing, and nodes of the version
-- before go on inserting. They make whole clones.
alter table repository add column sparse text[] not null default '{}';
