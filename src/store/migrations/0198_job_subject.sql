-- works-from: 0027
-- What a run of a source's event is about: an automation starts a bounded number of runs about one issue, incident or thread.
alter table job add column subject text;
