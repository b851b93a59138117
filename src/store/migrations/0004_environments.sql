-- What makes a clone of a repository ready to work in: run before the agent, with variables that both see.
alter table repository add column setup_script text;
alter table repository add column variables jsonb not null default '{}';
