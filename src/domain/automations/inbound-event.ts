import type { EventContext } from "./automation.ts";

/**
 * One thing that happened, as a sender delivered it, in the form that is the same for all senders. A delivery may have
 * several (a Jira issue that was assigned and moved at once), or none that Offstage knows.
 */
export interface InboundEvent {
  /** One of the names that a trigger's `events` may list. */
  readonly name: string;
  /**
   * Equal for two deliveries of the same happening, whatever their sender and delivery id; null if the payload does not
   * identify what happened.
   */
  readonly contentKey: string | null;
  /**
   * Whether another name has its `contentKey`, too: a trigger that listens to that name alone must treat this one as
   * delivered. Omitted: no other has.
   */
  readonly sharesKey?: boolean;
  /**
   * The state of a thing and its beginning, if deliveries have that and not what changed. The same `contentKey` is
   * another happening if the state was another in between. Omitted: the key alone counts.
   */
  readonly state?: { readonly about: string; readonly value: string; readonly at: string } | undefined;
  /** Its subject, as long as that exists, such as an issue's address; null if it has none. */
  readonly subject: string | null;
  /** The `event` of conditions and templates. */
  readonly event: EventContext;
}
