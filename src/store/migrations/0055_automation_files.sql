-- works-from: 0027
-- Repositories whose automations are files in them (.offstage/automations): src/store/automations/file-sync.ts.
create table automation_sync (
  repository_id uuid primary key references repository,
  organization_id uuid not null references organization,
  enabled boolean not null,
  -- When a worker is to look next; earlier if a push is told of.
  due_at timestamptz not null default now(),
  lease_until timestamptz,
  claimed_at timestamptz,
  -- The fence: a write of an older claim changes nothing.
  attempt integer not null default 0,
  -- What was read last; null: nothing was.
  branch text,
  commit text,
  synced_at timestamptz,
  -- Why the branch could not be read; null: it could.
  problem text,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now()
);
create index automation_sync_due on automation_sync (due_at) where enabled;
create index automation_sync_of_organization on automation_sync (organization_id);

-- The files, as they were when they were read last.
create table automation_file (
  repository_id uuid not null references automation_sync,
  path text not null,
  organization_id uuid not null references organization,
  -- What its last good version made; null: there was none.
  automation_id uuid references automation,
  -- git's id of the content; null: it must be read again.
  blob text,
  -- Its address on the forge; null: the forge has no pages.
  url text,
  problem text,
  updated_at timestamptz not null default now(),
  primary key (repository_id, path)
);
create unique index automation_file_of_automation on automation_file (automation_id);
create index automation_file_of_organization on automation_file (organization_id);
