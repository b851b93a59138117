import { createHash } from "node:crypto";
import type { Database } from "../../database/database.ts";
import type { Subscription } from "../../database/notifications.ts";
import type { Decision } from "../../domain/automations/ledger.ts";
import type { Verdict } from "../../domain/automations/condition.ts";
import { TooManyRequestsError, UnavailableError } from "../../domain/errors/errors.ts";
import { allowsRepository } from "../../domain/repositories/repository-pattern.ts";
import { isAddressProblem, parseRepositoryUrl, type RepositoryAddress } from "../../domain/repositories/repository.ts";
import { servesAddress } from "../../forges/serves.ts";
import { createPeriodic } from "../../lifecycle/periodic.ts";
import { createService, type Service } from "../../lifecycle/service.ts";
import type { Logger } from "../../observability.ts";
import { fireTrigger } from "../../store/automations/firings.ts";
import {
  claimEvent,
  decideEvent,
  filterEvent,
  findOwnWork,
  listeningTriggers,
  noteOrigin,
  postponeEvent,
  renewEvent,
  type ClaimedEvent,
} from "../../store/automations/inbound-events.ts";
import { expressionOf, noteTriggerProblem, type FireableTrigger } from "../../store/automations/triggers.ts";
import { allowedRepositories } from "../../store/people/organizations.ts";
import { createRepository, findRepositoryByKey, type RepositoryRecord } from "../../store/repositories/repositories.ts";
import { readConnectionAddress } from "../../store/secrets/forge-connections.ts";
import type { Templates } from "../../templates/templates.ts";

/** Interval, in ms, of the poll that finds events if a notification was lost. */
const pollMs = 2_000;
/** Time that a worker has for one event, in ms; then another may decide it. */
const leaseMs = 60_000;
/** Pause of an event that could not be decided for a reason that passes, in ms. */
const postponedMs = 5_000;
/** Runs of which each started the next by an event of Offstage, or by what a forge tells of its work. */
const longestChain = 5;
/** Triggers that are read and evaluated at once. */
const triggersAtOnce = 500;

/** What deciding events needs. */
export interface EventDecisions {
  readonly database: Database;
  readonly logger: Logger;
  readonly templates: Templates;
  /** The worker's id. */
  readonly worker: string;
  /** A key that is equal for all addresses of one repository. */
  readonly keyOf: (address: RepositoryAddress, organizationId: string) => Promise<string>;
}

/** Makes the task that decides, for each event that came in, which of the triggers that listen to it start a run. */
export function createEventDecisions(options: EventDecisions): Service {
  const { database, logger } = options;
  const rounds = createPeriodic({
    everyMs: pollMs,
    round: async (stopping) => {
      while (!stopping.aborted && (await decideNext(options))) continue;
    },
    onFailure: (error) => logger.error({ err: error }, "could not decide an event; will retry"),
  });
  let subscription: Subscription | null = null;
  return createService({
    async start() {
      subscription = await database.listen("offstage_work", (what) => {
        if (what === "event" || what === "") rounds.now();
      });
      await rounds.start();
    },
    async stop() {
      await Promise.all([subscription?.close(), rounds.stop()]);
    },
  });
}

/**
 * Decides an event that waits. What it fired stays the same however often it is repeated.
 * @returns false if none waits
 */
export async function decideNext(options: EventDecisions): Promise<boolean> {
  const { database, logger, worker } = options;
  const event = await claimEvent(database, { worker, leaseMs });
  if (event === null) return false;
  try {
    const origin = await originOf(database, event);
    if (origin.depth > longestChain) {
      await filterEvent(database, event, `it ends a chain of ${longestChain} runs of which each started the next`);
      return true;
    }
    await decideAll(options, { ...event, ...origin });
  } catch (error) {
    if (!(error instanceof TooManyRequestsError) && !(error instanceof UnavailableError)) throw error;
    logger.warn({ err: error, eventId: event.id }, "could not decide an event now; will retry");
    await postponeEvent(database, event, postponedMs);
  }
  return true;
}

async function decideAll(options: EventDecisions, event: ClaimedEvent): Promise<void> {
  const { database } = options;
  const place = await placeOf(options, event);
  const decisions: Decision[] = [];
  const faults: unknown[] = [];
  let after: string | null = null;
  for (;;) {
    const triggers: FireableTrigger[] = await listeningTriggers(database, event, { after, limit: triggersAtOnce });
    const concerned = triggers.filter((each) => concerns(each, place?.address ?? null));
    decisions.push(...(await decide(options, event, { place, triggers: concerned, faults })));
    after = triggers.at(-1)?.id ?? null;
    if (triggers.length < triggersAtOnce) break;
    if (!(await renewEvent(database, event, leaseMs))) return;
  }
  // The others have been decided, and a repetition changes nothing of them.
  if (faults.length > 0) throw faults[0];
  await decideEvent(database, event, decisions);
}

/** Names of events by which a forge tells of what a session itself did, if the commit is the session's. */
const ownDeeds: ReadonlySet<string> = new Set(["push", "pullRequest.opened", "pullRequest.updated"]);
/** Names of events that follow from what a session did. */
const consequences: ReadonlySet<string> = new Set(["checks.failed", "checks.passed"]);

/**
 * What led to an event: a forge tells of a session's own pushes and pull requests as of anybody's, and of the checks of its commits. The
 * first never start the session's own automation again; both lengthen the chain that the session's run stands in.
 */
async function originOf(
  database: Database,
  event: ClaimedEvent,
): Promise<Pick<ClaimedEvent, "causedBy" | "rootId" | "depth">> {
  const { connectionId, name, payload, causedBy, rootId, depth } = event;
  const sha = ownDeeds.has(name) || consequences.has(name) ? commitOf(payload) : null;
  const work = connectionId === null || sha === null ? null : await findOwnWork(database, event.organizationId, sha);
  if (work === null) return { causedBy, rootId, depth };
  // Checks may start one run after the other, as often as a chain is long; of a deed each trigger fires once.
  const origin = { rootId: ownDeeds.has(name) ? work.rootId : null, depth: work.depth + 1 };
  await noteOrigin(database, event, origin);
  return { ...origin, causedBy: ownDeeds.has(name) ? work.automationId : null };
}

/** The commit that an event is about; null if it is about none. */
function commitOf(payload: ClaimedEvent["payload"]): string | null {
  const told = payload as {
    readonly push?: { readonly after?: unknown };
    readonly pullRequest?: { readonly head?: { readonly sha?: unknown } };
    readonly checks?: { readonly sha?: unknown };
  };
  const sha = told.push?.after ?? told.pullRequest?.head?.sha ?? told.checks?.sha;
  return typeof sha === "string" && sha !== "" ? sha : null;
}

/** The repository that an event is about, as it was when the event was taken up. */
interface Place {
  readonly address: RepositoryAddress;
  readonly key: string;
  /** Whether the organization allows it. */
  readonly isAllowed: boolean;
  /** Null: it is not connected. */
  readonly known: RepositoryRecord | null;
}

async function placeOf({ database, keyOf }: EventDecisions, event: ClaimedEvent): Promise<Place | null> {
  const { organizationId } = event;
  const address = await addressOf(database, event);
  if (address === null) return null;
  const key = await keyOf(address, organizationId);
  const isAllowed = allowsRepository(await allowedRepositories(database, organizationId), address);
  return { address, key, isAllowed, known: await findRepositoryByKey(database, organizationId, key) };
}

/**
 * The address of the repository that an event is about; null if it is about none, or about one that is not of the connection's forge,
 * of which it can tell nothing.
 */
async function addressOf(
  database: Database,
  { organizationId, connectionId, payload }: ClaimedEvent,
): Promise<RepositoryAddress | null> {
  const { url } = (payload["repository"] ?? {}) as { readonly url?: unknown };
  if (typeof url !== "string") return null;
  const address = parseRepositoryUrl(url);
  // A delivery must not name a folder of this machine.
  if (isAddressProblem(address) || address.local) return null;
  if (connectionId === null) return address;
  const webUrl = await readConnectionAddress(database, organizationId, connectionId);
  return webUrl !== null && servesAddress(webUrl, address, true) ? address : null;
}

/** Whether a trigger's list of repositories has the event's; an empty list has all. */
function concerns({ trigger }: FireableTrigger, address: RepositoryAddress | null): boolean {
  if (trigger.type !== "forge" || trigger.repositories.length === 0) return true;
  return address !== null && allowsRepository(trigger.repositories, address);
}

async function decide(
  options: EventDecisions,
  event: ClaimedEvent,
  {
    place,
    triggers,
    faults,
  }: {
    readonly place: Place | null;
    readonly triggers: readonly FireableTrigger[];
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
    const verdict = verdicts[index] ?? { passes: true, key: null };
    try {
      decisions.push(await decideOne(options, event, place, trigger, verdict));
    } catch (error) {
      options.logger.warn({ err: error, eventId: event.id, triggerId: trigger.id }, "could not decide a trigger");
      faults.push(error);
    }
  }
  return decisions;
}

async function decideOne(
  options: EventDecisions,
  event: ClaimedEvent,
  place: Place | null,
  fireable: FireableTrigger,
  verdict: Verdict,
): Promise<Decision> {
  const { database } = options;
  const { id: triggerId, automationId, trigger } = fireable;
  const filtered = (reason: string): Decision => ({ triggerId, automationId, outcome: "filtered", reason });
  const problem = "problem" in verdict ? verdict.problem : null;
  if (problem !== trigger.problem) await noteTriggerProblem(database.pool, triggerId, problem);
  if ("problem" in verdict) return filtered(verdict.problem);
  // Of these the ledger has the event alone: with many listeners there would be as many rows for each event.
  if (!verdict.passes) return filtered("its condition does not hold");
  const isListed = trigger.type === "forge" && trigger.repositories.length > 0;
  const repository =
    fireable.hasRepositories || place === null ? null : await repositoryOf(options, event, place, isListed);
  if (typeof repository === "string") return filtered(repository);
  const fired = await fireTrigger(database, fireable, verdict, {
    id: idOf(event.id, triggerId),
    payload: event.payload,
    name: event.name,
    subject: event.subject,
    eventId: event.id,
    // In what came of one first event each trigger fires once.
    keys: [`root:${event.rootId ?? event.id}`],
    connectionId: event.connectionId,
    traceParent: event.traceParent,
    repositoryIds: repository === null ? null : [repository.id],
  });
  if (fired.outcome === "accepted") return { triggerId, automationId, outcome: "fired", reason: null };
  if (fired.outcome === "duplicate") return filtered("it has fired in what came of the same first event already");
  return filtered(fired.reason ?? fired.outcome);
}

/**
 * The event's repository. One that is not connected is connected only for a trigger that lists it: else whoever may deliver an event
 * could choose what sessions work on.
 * @returns a reason if there is none to work on
 */
async function repositoryOf(
  { database }: EventDecisions,
  { organizationId }: ClaimedEvent,
  { address, key, isAllowed, known }: Place,
  isListed: boolean,
): Promise<RepositoryRecord | string> {
  if (!isAllowed) return "the organization does not allow the event's repository";
  if (known !== null) return known;
  if (!isListed) return "the event's repository is not connected: connect it, or list it in the trigger's repositories";
  const { cloneUrl: url, name } = address;
  return createRepository(database, organizationId, { url, name, key, branch: null, description: null });
}

/** The job's id: always the same for one trigger and one event (RFC 9562, version 8). */
function idOf(eventId: string, triggerId: string): string {
  const hash = createHash("sha256").update(`${eventId} ${triggerId}`).digest();
  hash[6] = ((hash[6] ?? 0) & 0x0f) | 0x80;
  hash[8] = ((hash[8] ?? 0) & 0x3f) | 0x80;
  const hex = hash.toString("hex", 0, 16);
  return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join("-");
}
