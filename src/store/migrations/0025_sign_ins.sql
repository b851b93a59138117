-- works-from: 0022
-- Sign-ins of browsers can be listed and revoked. Columns without a default and a default for new rows alone: nothing is
-- rewritten, and nodes of the version before go on inserting.
alter table browser_session add column id uuid;
alter table browser_session add column last_used_at timestamptz;
alter table browser_session add column address text;
alter table browser_session add column user_agent text;
alter table browser_session alter column id set default gen_random_uuid();
update browser_session set id = gen_random_uuid() where id is null;
create unique index browser_session_id on browser_session (id);
create index browser_session_list on browser_session (organization_id, created_at desc, id desc);
