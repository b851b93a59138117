-- works-from: 0027
-- What a worker is about to ask a forge for, written before it asks: a worker that dies between the forge's answer and its row
-- leaves a pull request that the forge may list only later, so the next worker looks for a while before it asks again.
-- Both columns are without a default, so that no row is rewritten.
alter table session_repository add column asked_sha text;
alter table session_repository add column asked_at timestamptz;
