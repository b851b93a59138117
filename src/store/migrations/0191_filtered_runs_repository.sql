-- works-from: 0027
-- What an event's trigger did not start by its policy can be started by hand: of which event, and where it would have worked.
alter table arrival add column event_id uuid, add column repository_ids uuid[];
