-- works-from: 0027
-- outside a transaction
-- Pushes and mails are claimed apart, and many that wait of the one must not be walked over for the other.
drop index concurrently if exists notice_delivery_due_by_channel;
create index concurrently notice_delivery_due_by_channel on notice_delivery (channel, next_attempt_at) where status = 'pending';
drop index concurrently if exists notice_delivery_due;
