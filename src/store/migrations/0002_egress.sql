-- Hosts that sandboxes of sessions on a repository may reach, beside those that the server allows.
alter table repository add column egress text[] not null default '{}';
