-- W3C trace context of the request that made it, where traces are on: the run's spans go on from there, on any node.
alter table session add column trace_parent text;
alter table job add column trace_parent text;
-- Beside the indexes of what is queued, runs and waits, so that drafts are counted as cheaply.
create index session_draft on session (organization_id) where status = 'draft';
