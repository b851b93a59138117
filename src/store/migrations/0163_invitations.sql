-- works-from: 0027
-- A person whom an admin invited, by a link that signs them in as themselves. Nodes of the version before make links for nobody in particular.
alter table user_account add column invited_at timestamptz;
-- Null: they were invited and have not signed in yet.
alter table user_account alter column last_sign_in_at drop not null;
alter table login_link add column user_id uuid references user_account on delete cascade;
