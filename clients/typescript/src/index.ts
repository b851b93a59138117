import { streamEvents, type EventOptions } from "./events.ts";
import { createOperations, type Operations } from "./operations.ts";
import type { SessionEvent } from "./schema.ts";
import { createSend, type OffstageOptions } from "./send.ts";

export type { EventOptions } from "./events.ts";
export type * from "./schema.ts";
export { OffstageError, type CallOptions, type OffstageOptions } from "./send.ts";
export { verifyWebhook, WebhookVerificationError } from "./webhooks.ts";

/** A client of one Offstage server: each operation of the API, and events as they happen. */
export interface Offstage extends Operations {
  /**
   * A session's events in order, each once, until it has ended. A lost connection is made again from the last event.
   * @throws OffstageError if the server refuses
   */
  events(sessionId: string, options?: EventOptions): AsyncGenerator<SessionEvent, void, undefined>;
}

/** Makes a client. Without options it takes OFFSTAGE_SERVER and OFFSTAGE_API_KEY. */
export function createOffstage(options: OffstageOptions = {}): Offstage {
  const send = createSend(options);
  return {
    ...createOperations(send),
    events: (sessionId, eventOptions) => streamEvents<SessionEvent>(send, sessionId, eventOptions),
  };
}

/**
 * All items of a list, page by page, as they are asked for.
 * @example for await (const session of everyItem(offstage.session.list, { status: "running" })) …
 */
export async function* everyItem<
  Query extends { readonly cursor?: string | undefined },
  Page extends { readonly nextCursor: string | null },
>(list: (query?: Query) => Promise<Page>, query?: Query): AsyncGenerator<ItemOf<Page>, void, undefined> {
  let cursor: string | null | undefined = query?.cursor;
  do {
    const page: Page = await list({ ...query, ...(cursor != null && { cursor }) } as Query);
    // A page has one list beside its cursor.
    for (const value of Object.values(page) as unknown[]) if (Array.isArray(value)) yield* value as ItemOf<Page>[];
    cursor = page.nextCursor;
  } while (cursor !== null);
}

/** What a page's list has. */
type ItemOf<Page> = { [Name in keyof Page]: Page[Name] extends readonly (infer Item)[] ? Item : never }[keyof Page];
