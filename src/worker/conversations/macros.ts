import type { Database, Queryable } from "../../database/database.ts";
import type { EventContext } from "../../domain/automations/automation.ts";
import type { Verdict } from "../../domain/automations/condition.ts";
import { getAutomation } from "../../store/automations/automations.ts";
import { fireTriggerIn } from "../../store/automations/firings.ts";
import { automationKeysOf, type ClaimedEvent } from "../../store/automations/claimed-events.ts";
import { expressionOf, type FireableTrigger } from "../../store/automations/triggers.ts";
import type { RepositoryRecord } from "../../store/repositories/repositories.ts";
import type { Templates } from "../../templates/templates.ts";

/** An automation that a comment called, with the result of its condition for the event. */
export interface CalledMacro {
  readonly fireable: FireableTrigger;
  readonly verdict: Verdict;
}

/**
 * An automation that may be started by name, with what its condition makes of the event. One that works on another repository, or that
 * another one's file describes, is none: who may write here has no rights there.
 */
export async function findMacro(
  { database, templates }: { readonly database: Database; readonly templates: Templates },
  { organizationId, payload }: ClaimedEvent,
  repository: RepositoryRecord,
  macro: string,
): Promise<CalledMacro | null> {
  const automation = await getAutomation(database, organizationId, macro.toLowerCase());
  const trigger = automation?.triggers.find(({ type }) => type === "api");
  if (automation == null || trigger === undefined || !trigger.enabled || automation.paused) return null;
  const { id, priority, paused, repositories, file } = automation;
  const fileRepositoryId = file?.repositoryId ?? null;
  const isElsewhere = (repositoryId: string): boolean => repositoryId !== repository.id;
  if (repositories.some((each) => isElsewhere(each.id))) return null;
  if (fileRepositoryId !== null && isElsewhere(fileRepositoryId)) return null;
  const fireable: FireableTrigger = {
    id: trigger.id,
    organizationId,
    automationId: id,
    priority,
    paused,
    trigger,
    hasRepositories: repositories.length > 0,
    fileRepositoryId,
  };
  const around = { event: payload, repository: { name: repository.name, url: repository.url } };
  const [verdict] = await templates.evaluate([expressionOf(trigger)], around, { organizationId, id: "events" });
  return { fireable, verdict: verdict ?? { passes: true, key: null } };
}

/**
 * Starts an automation that was called by its macro.
 * @returns why it starts nothing; null: it does. Its job reports to the thread, as every run that ends.
 */
export async function startMacro(
  transaction: Queryable,
  runId: string,
  {
    macro,
    event,
    repositoryId,
  }: { readonly macro: CalledMacro | null; readonly event: ClaimedEvent | null; readonly repositoryId: string },
): Promise<string | null> {
  if (macro === null || event === null) throw new Error("there is no automation to start");
  const { fireable, verdict } = macro;
  const { outcome, reason } = await fireTriggerIn(transaction, fireable, verdict, {
    id: runId,
    payload: event.payload satisfies EventContext,
    name: event.name,
    subject: event.subject,
    automationKeys: automationKeysOf(event),
    eventId: event.id,
    connectionId: event.connectionId,
    traceParent: event.traceParent,
    repositoryIds: fireable.hasRepositories ? null : [repositoryId],
  });
  return outcome === "accepted" ? null : `the automation starts nothing: ${reason ?? outcome}`;
}
