import type { Database } from "../../database/database.ts";
import type { EventContext } from "../../domain/automations/automation.ts";
import type { Received } from "../../domain/automations/trigger.ts";
import type { InboundEvent } from "../../domain/automations/inbound-event.ts";
import type { SteeringHint } from "../../domain/conversations/steering-hint.ts";
import { storableJson } from "../../domain/fields/text.ts";

/** An event that several triggers may answer, as it came. */
export interface ReceivedEvent {
  /** Id of its ledger entry: the same event has the same id, however often it is written. */
  readonly id: string;
  readonly organizationId: string;
  /** The connection that delivered it; null: Offstage itself. */
  readonly connectionId: string | null;
  /** The scope within which `keys` identify a second delivery of the same. */
  readonly scope: string;
  readonly keys: readonly string[];
  /** Null: no trigger can listen to it. */
  readonly name: string | null;
  readonly deliveryId: string | null;
  /**
   * Equal for all deliveries of the same happening, whichever connection they come by; at most 500 characters. Null or omitted: it is
   * another happening each time, as of a replay.
   */
  readonly contentKey?: string | null;
  /**
   * The current state of a thing, if the sender reports that and not what changed: see `InboundEvent`. Omitted: it does
   * not.
   */
  readonly state?: InboundEvent["state"];
  /** Whether `keys` count even if nothing listens to its name, since events of another name have them; omitted: false. */
  readonly sharesKey?: boolean;
  readonly subject: string | null;
  /** The database must be able to store it as it is. */
  readonly payload: EventContext;
  readonly traceParent: string | null;
  /** The entry that it repeats. */
  readonly originalId?: string;
  /** The hint that it may steer a session; null or omitted: it does not. */
  readonly steering?: SteeringHint | null;
  /** False: another entry of the same delivery keeps it, if nothing listens to this one. Default: true. */
  readonly keepsPayload?: boolean;
}

/** Receives an event: it waits for a worker to decide, unless it was delivered before or no trigger listens to it. */
export async function receiveEvent(database: Database, received: ReceivedEvent): Promise<Received> {
  const [answer] = await receiveEvents(database, [prepareReceived(received)]);
  if (answer === undefined) throw new Error("an event got no outcome");
  return answer;
}

/** An event that is to be taken in together with others. */
export interface Receiving {
  /** The input of `receive_event`, as JSON, except its `order`. */
  readonly json: string;
  /** The first of what is noted of it, with the scope. */
  readonly turn: string;
}

/** Prepares an event. */
export function prepareReceived(received: ReceivedEvent): Receiving {
  const least = received.keys.reduce((one, key) => (key < one ? key : one), received.keys[0] ?? "");
  // Its first recorded state.
  const first = received.state?.about ?? least;
  const { payload, ...head } = received;
  // The payload can be stored as it is, and `storableJson` processes each of its texts.
  const json = `${storableJson(head).slice(0, -1)},"payload":${JSON.stringify(payload)}}`;
  return { json, turn: `${received.scope} ${first}` };
}

/**
 * Receives events in one statement and commit.
 * @returns the outcome of each
 */
export async function receiveEvents(database: Database, all: readonly Receiving[]): Promise<Received[]> {
  // In the order of their keys, so that two batches at once that have some in common do not wait for each other; of equal ones the first
  // is the original.
  const turns = [...all.entries()].toSorted(
    ([, one], [, other]) => Number(one.turn > other.turn) - Number(one.turn < other.turn),
  );
  const { rows } = await database.pool.query<{ outcome: Received["outcome"]; entry: string }>({
    name: "receive_events",
    text: `select outcome, entry from jsonb_array_elements($1::jsonb) with ordinality as given (each, place)
           cross join lateral receive_event(each) order by place`,
    values: [`[${turns.map(([index, { json }]) => `${json.slice(0, -1)},"order":${index}}`).join(",")}]`],
  });
  if (rows.length !== all.length) throw new Error(`${all.length} events got ${rows.length} outcomes`);
  if (rows.some(({ outcome }) => outcome === "accepted")) database.notify("offstage_work", "event");
  const byIndex = new Map(turns.map(([index], place) => [index, rows[place]]));
  return all.map((_, index) => {
    const row = byIndex.get(index);
    if (row === undefined) throw new Error(`event ${index + 1} of ${all.length} got no outcome`);
    return { outcome: row.outcome, ledgerId: row.entry };
  });
}
