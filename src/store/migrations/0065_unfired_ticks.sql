-- works-from: 0027
-- Of a schedule: its oldest tick that did not fire, since one did; null: there is none.
alter table trigger add column unfired_at timestamptz;
