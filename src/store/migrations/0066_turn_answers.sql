-- works-from: 0027
-- What the turn of a message answered, with no secret in it; null: it has not ended, or ended before this was kept.
alter table message add column answer text;
-- Whether it left the clones' files otherwise than it found them; null: unknown.
alter table message add column changed boolean;
-- What was pushed with its work first, by the position of the repository: the commit.
alter table message add column pushed jsonb;
