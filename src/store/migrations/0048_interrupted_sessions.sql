-- works-from: 0027
-- Since when a queued session has been waiting that was under way when its worker died, stopped or lost the database; null: it was
-- not, or works. Nodes of the version before set it too: move_session does.
alter table session add column interrupted_at timestamptz;
-- When it was last found that this one had died: a session's lease ran out, or it was started again without having stopped in order.
-- Null: never.
alter table worker_node add column lost_at timestamptz;
