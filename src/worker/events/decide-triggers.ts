import type { Decision } from "../../domain/automations/ledger.ts";
import type { Verdict } from "../../domain/automations/condition.ts";
import { listsRepository } from "../../domain/automations/listening.ts";
import type { Database } from "../../database/database.ts";
import type { Logger } from "../../observability.ts";
import type { Templates } from "../../templates/templates.ts";
import { derivedId } from "../../store/automations/derived-id.ts";
import { fireTrigger, noteVerdict, refusalOfVerdict } from "../../store/automations/firings.ts";
import {
  automationKeysOf,
  contentKeysOf,
  renewEvent,
  type ClaimedEvent,
} from "../../store/automations/claimed-events.ts";
import { listeningTriggers } from "../../store/automations/listening-triggers.ts";
import { expressionOf, type FireableTrigger } from "../../store/automations/triggers.ts";
import { createRepository, type RepositoryRecord } from "../../store/repositories/repositories.ts";
import type { EventPlace } from "./event-place.ts";

/** Time that a worker has for one event, in ms, unless it renews it; then another may decide it. */
export const usualLeaseMs = 60_000;
/** Reason in the ledger why a trigger that has fired does not fire. */
const firedBefore =
  "it, or another trigger of its automation, has decided already: about the same event, of which another connection told, or in what came of the same first event";
/** Reason in the ledger why a further trigger of an automation is not asked. */
const decidedByEarlier = "an earlier trigger of its automation has decided what comes of the event";
/** Reason in the ledger why no trigger of an automation is asked that is called by its macro. */
const calledByMacro = "its automation was called by its macro";
/** Triggers that are read and evaluated at once. */
const triggersAtOnce = 500;

/** Dependencies for deciding about triggers. */
export interface TriggerDecisions {
  readonly database: Database;
  readonly logger: Logger;
  readonly templates: Templates;
  /** Time that a worker has for one event, in ms; omitted: a minute. */
  readonly leaseMs?: number;
}

/**
 * Decides which of the triggers that listen to an event start a run. The first of an automation's triggers whose
 * condition holds decides, whatever its policy then allows: one event starts one run of an automation at most, however
 * often it is decided.
 * @param calledId the automation that is called by its macro, of which no trigger decides; null: none
 * @returns null if another worker has claimed the event meanwhile
 * @throws the first trigger's error, after the others were decided: the event is to be decided again
 */
export async function decideAll(
  options: TriggerDecisions,
  event: ClaimedEvent,
  place: EventPlace | null,
  calledId: string | null = null,
): Promise<Decision[] | null> {
  const { database, leaseMs = usualLeaseMs } = options;
  const decisions: Decision[] = [];
  const faults: unknown[] = [];
  const taken = new Set<string>();
  let after: string | null = null;
  for (;;) {
    const triggers: FireableTrigger[] = await listeningTriggers(database, event, { after, limit: triggersAtOnce });
    const concerned = triggers.filter((each) => concerns(each, place));
    decisions.push(...(await decide(options, event, { place, triggers: concerned, calledId, taken, faults })));
    after = triggers.at(-1)?.id ?? null;
    if (triggers.length < triggersAtOnce) break;
    if (!(await renewEvent(database, event, leaseMs))) return null;
  }
  // The others have been decided, and a repetition does not change them.
  if (faults.length > 0) throw faults[0];
  return decisions;
}

/** Whether a trigger listens to an event of this place. One of a file listens only to the file's own repository. */
function concerns({ trigger, fileRepositoryId = null }: FireableTrigger, place: EventPlace | null): boolean {
  if (fileRepositoryId !== null && place?.known?.id !== fileRepositoryId) return false;
  return listsRepository(trigger, place?.address ?? null) !== false;
}

async function decide(
  options: TriggerDecisions,
  event: ClaimedEvent,
  {
    place,
    triggers,
    calledId,
    taken,
    faults,
  }: {
    readonly place: EventPlace | null;
    readonly triggers: readonly FireableTrigger[];
    readonly calledId: string | null;
    /** Gets the automations of which a trigger has decided, or was to. */
    readonly taken: Set<string>;
    /** Gets the errors of single triggers, so that the others are decided all the same. */
    readonly faults: unknown[];
  },
): Promise<Decision[]> {
  if (triggers.length === 0) return [];
  const repository = place === null ? null : { name: place.address.name, url: place.address.cloneUrl };
  const decisions: Decision[] = [];
  const verdicts = await options.templates.evaluate(
    triggers.map(({ trigger }) => expressionOf(trigger)),
    { event: event.payload, repository },
    { organizationId: event.organizationId, id: "events" },
  );
  for (const [index, trigger] of triggers.entries()) {
    const { id: triggerId, automationId } = trigger;
    if (automationId === calledId || taken.has(automationId)) {
      const reason = automationId === calledId ? calledByMacro : decidedByEarlier;
      decisions.push({ triggerId, automationId, outcome: "filtered", reason });
      continue;
    }
    try {
      const verdict = verdicts[index];
      if (verdict === undefined) throw new Error(`trigger ${triggerId} got no verdict`);
      const { isLast, ...decision } = await decideOne(options, event, place, trigger, verdict);
      decisions.push(decision);
      if (isLast) taken.add(automationId);
    } catch (error) {
      options.logger.warn({ err: error, eventId: event.id, triggerId }, "could not decide a trigger");
      faults.push(error);
      // It may start the run when the event is decided again.
      taken.add(automationId);
    }
  }
  return decisions;
}

/** @returns with `isLast`: whether it has decided for its automation, since its condition holds */
async function decideOne(
  options: TriggerDecisions,
  event: ClaimedEvent,
  place: EventPlace | null,
  fireable: FireableTrigger,
  verdict: Verdict,
): Promise<Decision & { readonly isLast: boolean }> {
  const { database } = options;
  const { id: triggerId, automationId, trigger } = fireable;
  const decision = { triggerId, automationId } as const;
  const isListed = trigger.type === "forge" && trigger.repositories.length > 0;
  const needsRepository = !fireable.hasRepositories && place !== null;
  const refusal = refusalOfVerdict(verdict);
  const repository =
    refusal === null && needsRepository ? await repositoryOf(options, event, place, isListed) : refusal;
  if (typeof repository === "string") {
    // For these the ledger has only the event: with many listeners there would be as many rows for each event.
    await noteVerdict(database.pool, fireable, verdict);
    return { ...decision, outcome: "filtered", reason: repository, isLast: false };
  }
  const fired = await fireTrigger(database, fireable, verdict, {
    id: derivedId(`${event.id} ${triggerId}`),
    payload: event.payload,
    name: event.name,
    subject: event.subject,
    eventId: event.id,
    // Among the consequences of one first event each trigger fires once, and once for an event of several connections.
    keys: [`root:${event.rootId ?? event.id}`, ...contentKeysOf(event)],
    automationKeys: automationKeysOf(event),
    connectionId: event.connectionId,
    traceParent: event.traceParent,
    repositoryIds: repository === null ? null : [repository.id],
  });
  if (fired.outcome === "accepted") return { ...decision, outcome: "fired", reason: null, isLast: true };
  const reason = fired.outcome === "duplicate" ? firedBefore : (fired.reason ?? fired.outcome);
  return { ...decision, outcome: "filtered", reason, isLast: refusal === null };
}

/**
 * The event's repository. One that is not connected is connected only for a trigger that lists it: else a sender of
 * events could choose what sessions work on.
 * @returns a reason if there is none to work on
 */
async function repositoryOf(
  { database }: TriggerDecisions,
  { organizationId }: ClaimedEvent,
  { address, key, isAllowed, known }: EventPlace,
  isListed: boolean,
): Promise<RepositoryRecord | string> {
  if (!isAllowed) return "the organization does not allow the event's repository";
  if (known !== null) return known;
  if (!isListed) return "the event's repository is not connected: connect it, or list it in the trigger's repositories";
  const { cloneUrl: url, name } = address;
  return createRepository(database, organizationId, { url, name, key, branch: null, description: null });
}
