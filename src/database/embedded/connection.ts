import pg from "pg";
import type { EmbeddedPaths } from "./paths.ts";

/** Advisory lock of the process that owns the server. PostgreSQL releases it when that process dies. */
export const ownerLock = 4_747_001;

/**
 * Connects to an embedded server.
 * @throws the driver's error if the server does not answer or does not accept connections
 */
export async function connectEmbedded(paths: EmbeddedPaths): Promise<pg.Client> {
  const client = new pg.Client({ connectionString: paths.url });
  // The server closes its connections when it stops; the next query fails then.
  client.on("error", () => undefined);
  await client.connect();
  return client;
}

/**
 * Whether a server answered that it is starting or stopping.
 * https://www.postgresql.org/docs/current/errcodes-appendix.html
 */
export function isBetweenStates(error: unknown): boolean {
  return error instanceof pg.DatabaseError && error.code === "57P03";
}
