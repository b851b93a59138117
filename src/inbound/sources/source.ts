import type { SourceEvent, SourceName } from "../../domain/automations/source-event.ts";
import type { InboundDelivery, DeliveryReader, ReadDelivery } from "../delivery.ts";

/** A delivery as its sender documents it, for people to look at and for templates to be tried with. */
export interface SourceSample {
  /** The name of the event that it becomes. */
  readonly event: string;
  /** Its event, in a few words. */
  readonly title: string;
  /** Names in lower case; without those of the signature. */
  readonly headers: Readonly<Record<string, string>>;
  readonly payload: Readonly<Record<string, unknown>>;
}

/** A service whose deliveries triggers can read. */
export interface Source {
  readonly name: SourceName;
  readonly reader: DeliveryReader;
  readonly samples: readonly SourceSample[];
}

/** One happening of a delivery, before it is one of all senders' events. */
export interface SourceHappening {
  readonly event: SourceEvent;
  readonly contentKey: string | null;
  readonly subject: string | null;
}

/** The delivery that a sample is, as it arrives, without its signature. */
export function sampleDelivery({ headers, payload }: SourceSample): InboundDelivery {
  return { headers, body: Buffer.from(JSON.stringify(payload)) };
}

/** A delivery of these happenings. An event's name is what it says of itself. */
export function deliveryOf(deliveryId: string | null, happenings: readonly SourceHappening[]): ReadDelivery {
  return { deliveryId, events: happenings.map((happening) => ({ ...happening, name: happening.event.name })) };
}
