-- A job is the ledger's entry of what started it. Its outcome follows from its status, and from this.
alter table job
  -- Given up, since its worker died again and again.
  add column dead boolean not null default false,
  -- The entry that it repeats, where somebody asked for that.
  add column replay_of uuid;

-- What came in and started no job of its own: the ledger's other half.
create table arrival (
  id uuid primary key,
  organization_id uuid not null references organization,
  automation_id uuid references automation,
  outcome text not null check (outcome in ('duplicate', 'filtered', 'missed')),
  reason text not null,
  -- The entry that it is a duplicate of.
  original_id uuid,
  created_at timestamptz not null default clock_timestamp()
);
create index arrival_list on arrival (organization_id, created_at desc, id desc);
create index arrival_age on arrival (created_at);
