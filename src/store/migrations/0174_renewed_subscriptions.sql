-- works-from: 0027
-- SHA-256 of a secret that only the subscribed browser has: with it, and nothing else, its new address takes the place of the old one.
-- Null: it has none, as one that a node of the version before subscribed.
alter table push_subscription add column renewal_hash bytea;
