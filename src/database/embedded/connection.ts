import pg from "pg";
import type { Place } from "./place.ts";

/** Held by the process that owns the server; PostgreSQL lets go of it when that process dies, however it dies. */
export const ownerLock = 4_747_001;

/** @throws the driver's error where the server does not answer, or does not take connections */
export async function connect(place: Place): Promise<pg.Client> {
  const client = new pg.Client({ connectionString: place.url });
  // The server ends its connections when it goes down: the next query tells.
  client.on("error", () => undefined);
  await client.connect();
  return client;
}

/** Whether a server answered that it starts up or shuts down. https://www.postgresql.org/docs/current/errcodes-appendix.html */
export function isBetweenStates(error: unknown): boolean {
  return error instanceof pg.DatabaseError && error.code === "57P03";
}
