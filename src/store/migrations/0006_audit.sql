-- Who changed what, from where, and what was refused. Rows are added and, when they are old, removed; never changed.
create table audit_entry (
  id uuid primary key,
  -- Null: nobody that an organization is known of.
  organization_id uuid references organization,
  actor text not null check (actor in ('key', 'user', 'browser', 'command', 'nobody')),
  key_id uuid,
  user_id uuid,
  -- Name of the API's operation, or of the command.
  action text not null,
  target text,
  -- As the API answered; 200 for a command.
  status integer not null,
  address text,
  request_id uuid,
  created_at timestamptz not null default clock_timestamp()
);
create index audit_list on audit_entry (organization_id, created_at desc, id desc);
create index audit_age on audit_entry (created_at);
