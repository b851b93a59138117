-- works-from: 0027
-- Commits of which a push began, in order, from the one that is recorded as pushed: a worker may die before it records what it pushed, and
-- the next one pushes more. Nodes of the version before know the last one alone.
alter table session_repository add column begun_pushes text[] not null default '{}';
