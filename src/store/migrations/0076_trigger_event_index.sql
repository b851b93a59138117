-- works-from: 0027
-- outside a transaction
-- By the names of events that triggers list: whether any listens to one is asked at each delivery.
drop index concurrently if exists trigger_of_event;
create index concurrently trigger_of_event on trigger using gin ((settings -> 'events'))
  where type = 'forge' and enabled and deleted_at is null;
