import type { Database } from "../../database/database.ts";
import type { Subscription } from "../../database/notifications.ts";
import { idScopesOf } from "../../domain/answers/answer.ts";
import type { ForgeEvent } from "../../domain/automations/forge-event.ts";
import type { Decision } from "../../domain/automations/ledger.ts";
import type { Verdict } from "../../domain/automations/condition.ts";
import { listsRepository } from "../../domain/automations/listening.ts";
import { TooManyRequestsError, UnavailableError } from "../../domain/errors/errors.ts";
import { commentMarkKey } from "../../domain/repositories/comment-mark.ts";
import { readMark } from "../../domain/repositories/pull-request-mark.ts";
import type { Calling } from "../../domain/repositories/calling.ts";
import { allowsRepository } from "../../domain/repositories/repository-pattern.ts";
import { isAddressProblem, parseRepositoryUrl, type RepositoryAddress } from "../../domain/repositories/repository.ts";
import { backoffMs } from "../../domain/time/backoff.ts";
import { servesAddress } from "../../forges/serves.ts";
import { createClaimLoop } from "../../lifecycle/claim-loop.ts";
import { createService, type Service } from "../../lifecycle/service.ts";
import type { Logger } from "../../observability.ts";
import { isOwnComment } from "../../store/answers/answers.ts";
import { derivedId } from "../../store/automations/derived-id.ts";
import { fireTrigger, noteVerdict, refusalOfVerdict } from "../../store/automations/firings.ts";
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
  type Steered,
} from "../../store/automations/inbound-events.ts";
import { expressionOf, type FireableTrigger } from "../../store/automations/triggers.ts";
import { allowedRepositories } from "../../store/people/organizations.ts";
import { createRepository, findRepositoryByKey, type RepositoryRecord } from "../../store/repositories/repositories.ts";
import { readConnectionOfEvent } from "../../store/secrets/forge-connections.ts";
import type { Templates } from "../../templates/templates.ts";
import { decideInConversation, type ConversationServices } from "../conversations/decide-conversation.ts";

/** Interval, in ms, of the poll that finds events if a notification was lost. */
const pollMs = 2_000;
/** Time that a worker has for one event, in ms; then another may decide it. */
const leaseMs = 60_000;
/** Pauses of an event that could not be decided for a reason that passes, in ms. */
const pauses = { fromMs: 5_000, toMs: 300_000, jitter: 0.2 };
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
  /** What steers sessions; omitted: nothing does. */
  readonly conversations?: ConversationServices;
}

/**
 * Events that a worker decides at once, and of them those of one organization: whose forge is slow holds up nobody else. Most of the time
 * they wait for a forge's answer. With two of an organization, and a forge that takes 300 ms, the last of fifty comments was decided after
 * 11 s.
 */
const atOnce = { all: 16, ofOrganization: 8 };

/** Makes the task that decides, for each event that came in, which of the triggers that listen to it start a run. */
export function createEventDecisions(options: EventDecisions): Service {
  const { database, logger, worker } = options;
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
  let subscription: Subscription | null = null;
  return createService({
    async start() {
      subscription = await database.listen("offstage_work", (what) => {
        if (what === "event" || what === "") loop.now();
      });
      await loop.start();
    },
    async stop() {
      await Promise.all([subscription?.close(), loop.stop()]);
    },
  });
}

/** The organizations of which no more events are begun beside those under way. */
function busyOf(underWay: readonly ClaimedEvent[]): string[] {
  const counted = Map.groupBy(underWay, ({ organizationId }) => organizationId);
  return [...counted].filter(([, events]) => events.length >= atOnce.ofOrganization).map(([id]) => id);
}

/**
 * Decides an event that waits. What it fired stays the same however often it is repeated.
 * @returns false if none waits
 */
export async function decideNext(options: EventDecisions): Promise<boolean> {
  const { database, worker } = options;
  const event = await claimEvent(database, { worker, leaseMs });
  if (event === null) return false;
  await decideClaimed(options, event);
  return true;
}

async function decideClaimed(options: EventDecisions, event: ClaimedEvent): Promise<void> {
  const { database, logger } = options;
  try {
    const place = await placeOf(options, event);
    const steered = await steer(options, event, place);
    if (await isOwnWords(database, event, place)) {
      await decideEvent(database, event, [], steered ?? { outcome: "filtered", reason: ownWords, sessionId: null });
      return;
    }
    const origin = await originOf(database, event);
    if (origin.depth > longestChain && steered?.outcome !== "fired") {
      await filterEvent(database, event, `it ends a chain of ${longestChain} runs of which each started the next`);
      return;
    }
    const { isOwnDeed, ...led } = origin;
    const payload = isOwnDeed ? asOfOffstage(event) : event.payload;
    if (led.depth > longestChain) await decideEvent(database, event, [], steered);
    else await decideAll(options, { ...event, ...led, payload }, place, steered);
  } catch (error) {
    if (!(error instanceof TooManyRequestsError) && !(error instanceof UnavailableError)) throw error;
    const pauseMs = Math.max(backoffMs(event.postponed + 1, pauses), (error.retryAfterSeconds ?? 0) * 1_000);
    const isDead = await postponeEvent(database, event, { pauseMs, why: error.message });
    const will = isDead ? "it is given up" : "will retry";
    logger.warn(
      { err: error, eventId: event.id, postponed: event.postponed },
      `could not decide an event now; ${will}`,
    );
  }
}

const ownWords = "an Offstage wrote it";

/**
 * Whether an event tells of what an Offstage said: by the id that the forge gave it, or by its mark, as of another Offstage's. No
 * automation hears of that: it could answer its own answer.
 */
async function isOwnWords(database: Database, event: ClaimedEvent, place: Place | null): Promise<boolean> {
  const { connectionId, organizationId, payload } = event;
  const told = connectionId === null ? null : (payload as unknown as ForgeEvent);
  const comment = told?.comment;
  if (told === null || comment === undefined) return false;
  if (commentMarkKey(comment.body) !== null) return true;
  if (place === null || place.known === null) return false;
  const idScopes = idScopesOf(told.pullRequest === undefined ? "issue" : "pullRequest", comment);
  const { id: commentId, body } = comment;
  return isOwnComment(database.pool, { organizationId, repositoryId: place.known.id, commentId, body, idScopes });
}

/** What comes of an event in the conversation that it belongs to; null: it belongs to none. */
async function steer(
  { conversations }: EventDecisions,
  event: ClaimedEvent,
  place: Place | null,
): Promise<Steered | null> {
  if (conversations === undefined || place === null || !place.isAllowed || place.known === null) return null;
  return decideInConversation(conversations, event, place.known, place.calling);
}

async function decideAll(
  options: EventDecisions,
  event: ClaimedEvent,
  place: Place | null,
  steered: Steered | null,
): Promise<void> {
  const { database } = options;
  const decisions: Decision[] = [];
  const faults: unknown[] = [];
  let after: string | null = null;
  for (;;) {
    const triggers: FireableTrigger[] = await listeningTriggers(database, event, { after, limit: triggersAtOnce });
    const concerned = triggers.filter((each) => concerns(each, place));
    decisions.push(...(await decide(options, event, { place, triggers: concerned, faults })));
    after = triggers.at(-1)?.id ?? null;
    if (triggers.length < triggersAtOnce) break;
    if (!(await renewEvent(database, event, leaseMs))) return;
  }
  // The others have been decided, and a repetition changes nothing of them.
  if (faults.length > 0) throw faults[0];
  await decideEvent(database, event, decisions, steered);
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
): Promise<Pick<ClaimedEvent, "causedBy" | "rootId" | "depth"> & { readonly isOwnDeed: boolean }> {
  const { connectionId, name, payload, causedBy, rootId, depth } = event;
  const sha = ownDeeds.has(name) || consequences.has(name) ? commitOf(payload) : null;
  const work = connectionId === null || sha === null ? null : await findOwnWork(database, event.organizationId, sha);
  if (work === null) return { causedBy, rootId, depth, isOwnDeed: false };
  // Checks may start one run after the other, as often as a chain is long; of a deed each trigger fires once.
  const origin = { rootId: ownDeeds.has(name) ? work.rootId : null, depth: work.depth + 1 };
  await noteOrigin(database, event, origin);
  const isOwnDeed = ownDeeds.has(name);
  return { ...origin, causedBy: isOwnDeed ? work.automationId : null, isOwnDeed };
}

/**
 * The event of what a session did at its pull request, as triggers get it: a program opened it, also if it did so in the name of the
 * person whom the forge names.
 */
function asOfOffstage({ name, payload }: ClaimedEvent): ClaimedEvent["payload"] {
  const { actor, transition, pullRequest } = payload as unknown as Pick<ForgeEvent, "actor" | "transition"> & {
    readonly pullRequest?: Partial<NonNullable<ForgeEvent["pullRequest"]>>;
  };
  const isOpening = name === "pullRequest.opened" && transition === "opened";
  const isOurs = pullRequest !== undefined && readMark(pullRequest.body ?? "") !== null;
  return {
    ...payload,
    ...(isOpening && actor !== null && { actor: { ...actor, isBot: true } }),
    ...(isOurs && {
      pullRequest: { ...pullRequest, author: pullRequest.author && { ...pullRequest.author, isBot: true } },
    }),
  };
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
  readonly calling: Calling;
}

async function placeOf({ database, keyOf }: EventDecisions, event: ClaimedEvent): Promise<Place | null> {
  const { organizationId } = event;
  const found = await addressOf(database, event);
  if (found === null) return null;
  const { address, calling } = found;
  const key = await keyOf(address, organizationId);
  const isAllowed = allowsRepository(await allowedRepositories(database, organizationId), address);
  return { address, key, isAllowed, known: await findRepositoryByKey(database, organizationId, key), calling };
}

const asTheServer: Calling = { mention: null, allowedBots: null };

/**
 * The address of the repository that an event is about, and who calls Offstage there by what; null if it is about none, or about one that
 * is not of the connection's forge, of which it can tell nothing.
 */
async function addressOf(
  database: Database,
  { organizationId, connectionId, payload }: ClaimedEvent,
): Promise<{ readonly address: RepositoryAddress; readonly calling: Calling } | null> {
  const { url } = (payload["repository"] ?? {}) as { readonly url?: unknown };
  if (typeof url !== "string") return null;
  const address = parseRepositoryUrl(url);
  // A delivery must not name a folder of this machine.
  if (isAddressProblem(address) || address.local) return null;
  if (connectionId === null) return { address, calling: asTheServer };
  const connection = await readConnectionOfEvent(database, organizationId, connectionId);
  return connection !== null && servesAddress(connection.webUrl, address, true)
    ? { address, calling: connection }
    : null;
}

/** Whether an event of this place is any business of a trigger. One of a file hears of the file's own repository alone. */
function concerns({ trigger, fileRepositoryId = null }: FireableTrigger, place: Place | null): boolean {
  if (fileRepositoryId !== null && place?.known?.id !== fileRepositoryId) return false;
  return listsRepository(trigger, place?.address ?? null) !== false;
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
    try {
      const verdict = verdicts[index];
      if (verdict === undefined) throw new Error(`trigger ${trigger.id} got no verdict`);
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
  const isListed = trigger.type === "forge" && trigger.repositories.length > 0;
  const needsRepository = !fireable.hasRepositories && place !== null;
  const refusal = refusalOfVerdict(verdict);
  const repository =
    refusal === null && needsRepository ? await repositoryOf(options, event, place, isListed) : refusal;
  if (typeof repository === "string") {
    // Of these the ledger has the event alone: with many listeners there would be as many rows for each event.
    await noteVerdict(database.pool, fireable, verdict);
    return filtered(repository);
  }
  const fired = await fireTrigger(database, fireable, verdict, {
    id: derivedId(`${event.id} ${triggerId}`),
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
