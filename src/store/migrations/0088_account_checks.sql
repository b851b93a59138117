-- works-from: 0027
-- When a worker looks at a person's account next: its token may have ended, or be good again. Nodes of the version before do not look.
alter table forge_account add column next_check_at timestamptz not null default now();
alter table forge_account alter column next_check_at set default now() + interval '1 hour';
create index forge_account_due on forge_account (next_check_at);
