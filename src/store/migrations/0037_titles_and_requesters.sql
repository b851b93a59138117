-- works-from: 0027
-- Columns without a default: nothing is rewritten, and nodes of the version before go on inserting.

-- A Liquid template of the titles of an automation's sessions; null: the first line of the instructions as rendered.
alter table automation add column title text;

-- The user who made the key while signed in; null: it was made otherwise.
alter table api_key add column user_id uuid references user_account;
-- The user who asked for the session, signed in or by a key of their own; null: nobody known. Without a constraint, whose check
-- would read the whole table under a lock.
alter table session add column requested_by uuid;
