import { methods, type AgentContext, type SessionUpdate } from "@agentclientprotocol/sdk";
import type { Client } from "../../client.ts";
import { createAcpUpdates } from "./acp-updates.ts";

/** An editor, and what it was sent of a session. */
export interface FollowedSession {
  /** As the editor knows the session. */
  readonly name: string;
  /** The server's id of it. */
  readonly id: string;
  /** The checkout's folder; null: there is none. */
  readonly root: string | null;
  /** Number of the last event that the editor was sent. */
  last: number;
}

/** Sends an editor updates of a session. */
export function tell(editor: AgentContext, name: string, update: SessionUpdate): Promise<void> {
  return editor.notify(methods.client.session.update, { sessionId: name, update });
}

/**
 * Sends an editor updates until the session ends.
 * @param options.withPrompts whether messages of the person are sent, too
 * @returns false if the signal aborted before
 */
export async function follow(
  client: Client,
  followed: FollowedSession,
  editor: AgentContext,
  { signal, withPrompts }: { readonly signal: AbortSignal; readonly withPrompts: boolean },
): Promise<boolean> {
  const updatesOf = createAcpUpdates({ root: followed.root, withPrompts });
  try {
    for await (const event of client.streamEvents(followed.id, { after: followed.last, signal })) {
      followed.last = event.seq;
      for (const update of updatesOf(event)) await tell(editor, followed.name, update);
    }
    return !signal.aborted;
  } catch (error) {
    if (signal.aborted) return false;
    throw error;
  }
}

/** Sends an editor all events so far. */
export async function replay(client: Client, followed: FollowedSession, editor: AgentContext): Promise<void> {
  const updatesOf = createAcpUpdates({ root: followed.root, withPrompts: true });
  for (let more = true; more;) {
    const page = await client.session.events(followed.id, { after: String(followed.last), limit: 1_000 });
    for (const event of page.events) {
      followed.last = event.seq;
      for (const update of updatesOf(event)) await tell(editor, followed.name, update);
    }
    more = page.nextCursor !== null;
  }
}
