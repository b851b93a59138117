import { createHash } from "node:crypto";
import type { InboundEvent } from "../domain/automations/inbound-event.ts";

/** A request of a sender of events, as it came. */
export interface InboundDelivery {
  /** Names in lower case. */
  readonly headers: Readonly<Record<string, string | undefined>>;
  /** The raw body: signatures are over these bytes. */
  readonly body: Buffer;
}

/**
 * The id of a delivery by a sender's id of what set it off, such as GitLab's `X-Gitlab-Event-UUID`: one request there can set off several
 * deliveries (a comment that closes an issue), so the body counts too.
 */
export function idWithBody(setOffBy: string, body: Buffer): string {
  return `${setOffBy} ${createHash("sha256").update(body).digest("hex").slice(0, 32)}`;
}

/** The content of a delivery, after its signature was verified. */
export interface ReadDelivery {
  /** The sender's id of the delivery, equal if it is sent again; null if it sends none. */
  readonly deliveryId: string | null;
  /** Its events; empty: none that triggers can listen to. */
  readonly events: readonly InboundEvent[];
}

/** How one kind of sender signs its deliveries, and what they say. */
export interface DeliveryReader {
  /**
   * Whether the delivery was signed with one of the secrets (two while a secret is being replaced). Compares in constant time.
   * @param now ms since the epoch, for signatures that hold for a time
   */
  verify(delivery: InboundDelivery, secrets: readonly string[], now: number): boolean;
  /**
   * Reads a verified delivery.
   * @throws InvalidInputError if it is not what the sender documents; the message names the field
   */
  read(delivery: InboundDelivery): ReadDelivery;
  /**
   * The answer that the sender wants instead of the usual one, such as the challenge by which an address is confirmed; null for
   * the usual one.
   */
  handshake?(delivery: InboundDelivery): { readonly contentType: string; readonly body: string } | null;
}
