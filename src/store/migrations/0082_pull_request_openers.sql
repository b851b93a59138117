-- works-from: 0027
-- Columns without a default: nothing is rewritten, and nodes of the version before go on inserting. They refer to user_account
-- without a constraint, whose check would read the whole table under a lock.

-- In whose name a pull request was last asked for; null: in Offstage's own.
alter table session_repository add column asked_by uuid;
-- In whose name it was opened; null: in Offstage's own, or somebody else opened it.
alter table pull_request add column opened_by uuid;
