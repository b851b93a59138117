/**
 * TCP keep-alive for every connection to the database: a server or network path that disappears silently, as in the
 * failover of a managed database, is noticed within half a minute. Otherwise queries would wait without end.
 */
export const keepAlive = { keepAlive: true, keepAliveInitialDelayMillis: 10_000 } as const;
