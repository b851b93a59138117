/**
 * Of every connection to the database: a server or a way to it that went away without a word, as in the failover of a managed
 * database, is noticed within half a minute. Else what was asked of it would be waited for without end.
 */
export const keepAlive = { keepAlive: true, keepAliveInitialDelayMillis: 10_000 } as const;
