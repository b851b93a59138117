-- works-from: 0027
-- By which id the forge knows the account of a person, as its deliveries name whoever says something; null: it was not checked since, or
-- the forge does not say.
alter table forge_account add column forge_user_id text;
