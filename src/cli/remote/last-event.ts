import type { Client } from "../../client.ts";

/** Number of a session's newest event. */
export async function lastEvent(client: Client, id: string): Promise<number> {
  let seq = 0;
  let after: string | undefined;
  for (;;) {
    const { events, nextCursor } = await client.session.events(id, {
      limit: 1_000,
      ...(after !== undefined && { after }),
    });
    seq = events.at(-1)?.seq ?? seq;
    if (nextCursor === null) return seq;
    after = nextCursor;
  }
}
