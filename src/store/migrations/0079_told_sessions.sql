-- works-from: 0027
-- Sessions of runs whose event a forge told: about which of their repositories, by which connection. Only such an event is believed
-- when a worker reads a log for it, fetches the pull request that it is about, or answers there. Not columns of the session's row, which
-- is written again at each claim.
create table session_told (
  session_id uuid primary key references session on delete cascade,
  -- Without keys: the row says nothing of either, which may be gone when it is read.
  repository_id uuid not null,
  connection_id uuid not null
);
