-- works-from: 0027
-- Organizations that were asked to be erased. A row stays as the record that it happened; it has nothing of the organization but
-- its id, which nothing else has any more. Without a reference, since it outlives the organization.
create table erasure (
  organization_id uuid primary key,
  asked_at timestamptz not null default now(),
  -- When the last row was gone; null: it is under way, and whoever finds it continues.
  finished_at timestamptz
);

-- What the events of a session that has ended take in the database, and when that was counted; null: not yet. Housekeeping counts
-- it once for each time that the session ends, so that appending an event costs nothing more.
alter table session add column event_bytes bigint;
alter table session add column event_bytes_at timestamptz;
