import type { Client } from "../../client.ts";
import { InvalidInputError } from "../../domain/errors/errors.ts";
import { isUuid } from "../../domain/fields/uuid.ts";

/** Fewest digits of a part of an id. */
const fewest = 4;
/** Pages of sessions that are looked through, of 100 each. */
const mostPages = 10;

/**
 * Finds a session's id as people write it: whole, its last digits as `offstage list` shows them, its first ones, or its page's address.
 * @throws InvalidInputError if it is none, or matches several sessions
 */
export async function findSession(client: Client, given: string): Promise<string> {
  const text = (/\/sessions\/([^/?#]+)/u.exec(given)?.[1] ?? given).toLowerCase();
  if (isUuid(text)) return text;
  if (!/^[0-9a-f-]+$/u.test(text) || text.length < fewest) {
    throw new InvalidInputError(
      `"${given}" is no session: give its id, at least ${fewest} of its last digits, or the address of its page`,
    );
  }
  const found: string[] = [];
  let cursor: string | undefined;
  for (let page = 0; page < mostPages; page += 1) {
    const { sessions, nextCursor } = await client.session.list({ limit: 100, cursor, archived: "all" });
    found.push(...sessions.map(({ id }) => id).filter((id) => id.endsWith(text) || id.startsWith(text)));
    if (nextCursor === null) break;
    cursor = nextCursor;
  }
  const [id] = found;
  if (found.length === 1 && id !== undefined) return id;
  throw new InvalidInputError(
    found.length === 0
      ? `no session among the newest ${mostPages * 100} has an id that ends or begins with "${text}": give the whole id`
      : `"${text}" stands for ${found.length} sessions: ${found.slice(0, 5).join(", ")}`,
  );
}
