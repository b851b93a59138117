-- works-from: 0027
-- Organizations that were asked to be erased. A row stays as the record that it happened; it has nothing of the organization but
-- its id, which nothing else has any more. Without a reference, since it outlives the organization.
create table erasure (
  organization_id uuid primary key,
  asked_at timestamptz not null default now(),
  -- When the last row was gone; null: it is under way, and whoever finds it continues.
  finished_at timestamptz
);
