-- works-from: 0016
-- Position of the last message whose work has left the worker: pushed, or found to be none. What was answered after it is
-- only as safe as the folders and the checkpoint are.
alter table session add column settled_messages integer not null default 0;
update session set settled_messages = coalesce((
  select max(position) from message where message.session_id = session.id and message.status = 'done'), 0)
where status in ('completed', 'failed', 'cancelled');
-- Whether a checkpoint has what the agent had done when it was over with the message.
alter table message add column kept boolean not null default true;
