-- works-from: 0027
-- outside a transaction
-- The links of a grant, which go with it.
drop index concurrently if exists share_link_grant;
create index concurrently share_link_grant on share_link (grant_id) where grant_id is not null;
