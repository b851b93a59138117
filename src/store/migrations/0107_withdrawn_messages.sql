-- works-from: 0027
-- A message that its sender took back before a turn took it; its status is `done`.
alter table message add column withdrawn_at timestamptz;
