-- works-from: 0027
-- outside a transaction
-- All accounts of one person.
drop index concurrently if exists user_of_provider;
create index concurrently user_of_provider on user_account (issuer, subject);
-- Invitations to one address, in every organization.
drop index concurrently if exists user_invited_anywhere;
create index concurrently user_invited_anywhere on user_account (lower(email)) where issuer = 'invitation';
