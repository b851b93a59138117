import { useQuery, type UseQueryResult } from "@tanstack/react-query";
import type { Automation } from "../../domain/automations/automation.ts";
import type { LedgerEntry } from "../../domain/automations/ledger.ts";
import { listsEvent } from "../../domain/automations/listening.ts";
import type { Trigger } from "../../domain/automations/trigger.ts";
import { client } from "../query.ts";

/**
 * The deliveries for an automation in the ledger's first pages, the newest first. @param automation undefined: a new
 * one, to which nothing came
 */
export function useDeliveries(
  automation: Pick<Automation, "id" | "triggers"> | undefined,
): UseQueryResult<readonly LedgerEntry[]> {
  return useQuery({
    queryKey: ["ledger", "deliveries", automation?.id],
    queryFn: () => readDeliveries(automation?.id ?? "", automation?.triggers ?? []),
    enabled: automation !== undefined,
  });
}

async function readDeliveries(automationId: string, triggers: readonly Trigger[]): Promise<readonly LedgerEntry[]> {
  const { entries } = await client.ledger.list({ automationId, limit: 50 });
  const forges = triggers.filter(({ type }) => type === "forge");
  // A forge's delivery belongs to no automation, unless it started a run: that has the event, too.
  const recent = forges.length === 0 ? [] : (await client.ledger.list({ limit: 100 })).entries;
  const started = new Set(entries.map(({ eventId }) => eventId));
  const listed = recent.filter(
    ({ automationId: of, id, name }) =>
      of === null && !started.has(id) && forges.some((trigger) => listsEvent(trigger, name) === true),
  );
  return [...entries, ...listed]
    .filter(({ outcome }) => outcome !== "duplicate")
    .toSorted((a, b) => b.createdAt.localeCompare(a.createdAt));
}

/** Those that came to one trigger. A call of the API names none. */
export function deliveriesTo(trigger: Trigger, deliveries: readonly LedgerEntry[]): LedgerEntry[] {
  return deliveries.filter(({ automationId, triggerId, name }) => {
    if (automationId === null) return listsEvent(trigger, name) === true;
    return triggerId === trigger.id || (triggerId === null && trigger.type === "api");
  });
}
