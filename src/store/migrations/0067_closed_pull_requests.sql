-- works-from: 0027
-- When a pull request was closed: one that was closed lately may be open again without anybody having told of it.
alter table pull_request add column closed_at timestamptz;
