-- works-from: 0027
-- The thread in which a result is said that not everybody may read; null: it is a comment on the issue or pull request itself.
alter table session_reply add column thread_id text;
