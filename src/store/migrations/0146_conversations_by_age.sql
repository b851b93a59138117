-- works-from: 0027
-- outside a transaction
-- Conversations by their last change: those of long ago are removed.
drop index concurrently if exists conversation_updated;
create index concurrently conversation_updated on conversation (updated_at);
