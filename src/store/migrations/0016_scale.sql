-- works-from: 0001
-- Lists by a status that few sessions have, which others of the statuses have indexes for already: a walk through the
-- list in search of them would read all of an organization's sessions.
create index session_ended on session (organization_id, status, created_at desc, id desc)
  where status in ('draft', 'failed', 'cancelled');
create index session_automation on session (automation_id, created_at desc, id desc) where automation_id is not null;
