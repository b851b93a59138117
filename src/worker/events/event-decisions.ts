import { createClaimLoop } from "../../lifecycle/claim-loop.ts";
import { withListener } from "../../lifecycle/periodic.ts";
import type { Service } from "../../lifecycle/service.ts";
import { claimEvent, type ClaimedEvent } from "../../store/automations/inbound-events.ts";
import { decideClaimed, type EventDecisions } from "./decide-event.ts";
import { usualLeaseMs } from "./decide-triggers.ts";

/** Interval, in ms, of the poll that finds events if a notification was lost. */
const pollMs = 2_000;

/**
 * Events that a worker decides at once, and of them those of one organization: a slow forge delays no other
 * organization. Most of the time they wait for a forge's answer. With a forge that takes 300 ms, the last of fifty
 * comments had its reaction after 11 s with two of an organization, 2.9 s with eight, and 2.2 s with sixteen.
 */
const atOnce = { all: 32, ofOrganization: 16 };

/** Makes the task that decides, for each event that came in, which of the triggers that listen to it start a run. */
export function createEventDecisions(options: EventDecisions): Service {
  const { database, logger, worker, leaseMs = usualLeaseMs } = options;
  const onFailure = (error: unknown): void => logger.error({ err: error }, "could not decide an event; will retry");
  const loop = createClaimLoop<ClaimedEvent>({
    atOnce: atOnce.all,
    everyMs: pollMs,
    claim: async (underWay) => {
      const event = await claimEvent(database, { worker, leaseMs, without: busyOf(underWay) });
      return event === null ? [] : [event];
    },
    work: (event) => decideClaimed(options, event),
    onClaimFailure: onFailure,
    onWorkFailure: onFailure,
  });
  return withListener(loop, (now) =>
    database.listen("offstage_work", (what) => {
      if (what === "event" || what === "") now();
    }),
  );
}

/** The organizations of which no more events are begun in addition to those under way. */
function busyOf(underWay: readonly ClaimedEvent[]): string[] {
  const counted = Map.groupBy(underWay, ({ organizationId }) => organizationId);
  return [...counted].filter(([, events]) => events.length >= atOnce.ofOrganization).map(([id]) => id);
}

/**
 * Decides an event that waits. What it fired stays the same however often it is repeated.
 * @returns false if none waits
 */
export async function decideNext(options: EventDecisions): Promise<boolean> {
  const { database, worker, leaseMs = usualLeaseMs } = options;
  const event = await claimEvent(database, { worker, leaseMs });
  if (event === null) return false;
  await decideClaimed(options, event);
  return true;
}
