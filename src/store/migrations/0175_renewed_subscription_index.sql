-- works-from: 0027
-- outside a transaction
drop index concurrently if exists push_subscription_renewal;
create unique index concurrently push_subscription_renewal on push_subscription (renewal_hash) where renewal_hash is not null;
