-- works-from: 0027
alter table automation
  -- {"atLeast", "everyHours"}: so many runs are expected in any so many hours; null: none are.
  add column expect jsonb,
  -- Since when they are.
  add column expect_since timestamptz,
  -- Since when what is expected of it has not happened, as far as its owner was told of it; null: nothing is overdue.
  add column silent_since timestamptz,
  add column silent_reason text,
  -- Whether each run has a session for each repository, instead of one with all.
  add column fan_out boolean not null default false;
