-- works-from: 0027
-- How something stood by the newest delivery that a connection had of it, where deliveries say that, and not what changed: it may go back
-- to what it was before. Nodes of the version before note none.
create table told_state (
  organization_id uuid not null references organization,
  scope uuid not null,
  about text not null,
  value text not null,
  -- When it came to stand so, as its sender says.
  at timestamptz not null,
  updated_at timestamptz not null default now(),
  primary key (scope, about)
);
create index told_state_age on told_state (updated_at);
create index told_state_of_organization on told_state (organization_id);
