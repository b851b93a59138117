-- works-from: 0027
-- What a forge's deliveries last told of a pull request, for its session's page. Checks: {"sha", "failed": [keys], "passed": [keys]} of
-- the newest commit that was spoken of. Review: approved or changesRequested, by the newest that said either.
alter table pull_request add column checks jsonb, add column review text;
