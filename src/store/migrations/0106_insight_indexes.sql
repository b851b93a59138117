-- works-from: 0027
-- outside a transaction
-- The pull requests that were opened on a day.
drop index concurrently if exists pull_request_opened;
create index concurrently pull_request_opened on pull_request (organization_id, created_at);
-- What there is already is counted by the first worker. Marked twice is the same as once.
insert into insight_mark (organization_id, day)
select organization.id, each::date
from organization, lateral (
  select (created_at at time zone 'UTC')::date as day from session
  where session.organization_id = organization.id order by created_at limit 1) first,
  generate_series(first.day, (now() at time zone 'UTC')::date, interval '1 day') as each;
