-- works-from: 0027
-- outside a transaction
-- The links of one person, which go with them.
drop index concurrently if exists login_link_user;
create index concurrently login_link_user on login_link (user_id) where user_id is not null;
-- Of two who invite the same address at once, one is told.
drop index concurrently if exists user_invited_address;
create unique index concurrently user_invited_address on user_account (organization_id, lower(email)) where issuer = 'invitation';
