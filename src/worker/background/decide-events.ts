import { createHash } from "node:crypto";
import type { Database } from "../../database/database.ts";
import type { Subscription } from "../../database/notifications.ts";
import type { Decision } from "../../domain/automations/ledger.ts";
import type { Verdict } from "../../domain/automations/condition.ts";
import { allowsRepository } from "../../domain/repositories/repository-pattern.ts";
import { isAddressProblem, parseRepositoryUrl, type RepositoryAddress } from "../../domain/repositories/repository.ts";
import { createPeriodic } from "../../lifecycle/periodic.ts";
import { createService, type Service } from "../../lifecycle/service.ts";
import type { Logger } from "../../observability.ts";
import { fireTrigger } from "../../store/automations/firings.ts";
import {
  claimEvent,
  decideEvent,
  listeningTriggers,
  type ClaimedEvent,
} from "../../store/automations/inbound-events.ts";
import { expressionOf, noteTriggerProblem, type FireableTrigger } from "../../store/automations/triggers.ts";
import { allowedRepositories } from "../../store/people/organizations.ts";
import { createRepository, type RepositoryRecord } from "../../store/repositories/repositories.ts";
import type { Templates } from "../../templates/templates.ts";

/** Interval, in ms, of the poll that finds events if a notification was lost. */
const pollMs = 2_000;
/** Time that a worker has for one event, in ms; then another may decide it. */
const leaseMs = 60_000;
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
 * Decides the oldest event that waits. What it fired stays the same however often it is repeated.
 * @returns false if none waits
 */
export async function decideNext(options: EventDecisions): Promise<boolean> {
  const { database, worker } = options;
  const event = await claimEvent(database, { worker, leaseMs });
  if (event === null) return false;
  const address = addressOf(event);
  const decisions: Decision[] = [];
  let after: string | null = null;
  for (;;) {
    const triggers: FireableTrigger[] = await listeningTriggers(database, event, { after, limit: triggersAtOnce });
    decisions.push(
      ...(await decide(
        options,
        event,
        address,
        triggers.filter((each) => concerns(each, address)),
      )),
    );
    after = triggers.at(-1)?.id ?? null;
    if (triggers.length < triggersAtOnce) break;
  }
  await decideEvent(database, event, decisions);
  return true;
}

/** The address of the repository that an event is about; null if it is about none that Offstage can reach. */
function addressOf({ payload }: ClaimedEvent): RepositoryAddress | null {
  const { url } = (payload["repository"] ?? {}) as { readonly url?: unknown };
  if (typeof url !== "string") return null;
  const address = parseRepositoryUrl(url);
  // A delivery must not name a folder of this machine.
  return isAddressProblem(address) || address.local ? null : address;
}

/** Whether a trigger's list of repositories has the event's; an empty list has all. */
function concerns({ trigger }: FireableTrigger, address: RepositoryAddress | null): boolean {
  if (trigger.type !== "forge" || trigger.repositories.length === 0) return true;
  return address !== null && allowsRepository(trigger.repositories, address);
}

async function decide(
  options: EventDecisions,
  event: ClaimedEvent,
  address: RepositoryAddress | null,
  triggers: readonly FireableTrigger[],
): Promise<Decision[]> {
  const [first] = triggers;
  if (first === undefined) return [];
  const repository = address === null ? null : { name: address.name, url: address.cloneUrl };
  const decisions: Decision[] = [];
  const verdicts = await options.templates.evaluate(
    triggers.map(({ trigger }) => expressionOf(trigger)),
    { event: event.payload, repository },
    { organizationId: event.organizationId, id: "events" },
  );
  for (const [index, trigger] of triggers.entries()) {
    decisions.push(await decideOne(options, event, address, trigger, verdicts[index] ?? { passes: true, key: null }));
  }
  return decisions;
}

async function decideOne(
  options: EventDecisions,
  event: ClaimedEvent,
  address: RepositoryAddress | null,
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
  const repository = fireable.hasRepositories || address === null ? null : await connect(options, event, address);
  if (repository === "forbidden") return filtered("the organization does not allow the event's repository");
  const fired = await fireTrigger(database, fireable, verdict, {
    id: idOf(event.id, triggerId),
    payload: event.payload,
    name: event.name,
    subject: event.subject,
    eventId: event.id,
    connectionId: event.connectionId,
    traceParent: event.traceParent,
    repositoryIds: repository === null ? null : [repository.id],
  });
  if (fired.outcome === "accepted") return { triggerId, automationId, outcome: "fired", reason: null };
  return filtered(fired.reason ?? fired.outcome);
}

/** The event's repository, which is connected if it is not yet. */
async function connect(
  { database, keyOf }: EventDecisions,
  { organizationId }: ClaimedEvent,
  address: RepositoryAddress,
): Promise<RepositoryRecord | "forbidden"> {
  if (!allowsRepository(await allowedRepositories(database, organizationId), address)) return "forbidden";
  const { cloneUrl: url, name } = address;
  const key = await keyOf(address, organizationId);
  return createRepository(database, organizationId, {
    url,
    name,
    key,
    branch: null,
    description: null,
  });
}

/** The job's id: always the same for one trigger and one event (RFC 9562, version 8). */
function idOf(eventId: string, triggerId: string): string {
  const hash = createHash("sha256").update(`${eventId} ${triggerId}`).digest();
  hash[6] = ((hash[6] ?? 0) & 0x0f) | 0x80;
  hash[8] = ((hash[8] ?? 0) & 0x3f) | 0x80;
  const hex = hash.toString("hex", 0, 16);
  return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join("-");
}
