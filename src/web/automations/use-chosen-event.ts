import { useQuery } from "@tanstack/react-query";
import { useMemo, useState } from "react";
import type { Automation } from "../../domain/automations/automation.ts";
import type { AutomationTemplate } from "../../domain/automations/automation-file.ts";
import type { LedgerEntry } from "../../domain/automations/ledger.ts";
import type { PreviewDraft } from "../../domain/automations/preview.ts";
import { client } from "../query.ts";
import { useAutomationTexts, type AutomationTexts } from "../texts/automations.ts";
import { useDeliveries } from "./deliveries.ts";
import { eventOf, NoEvent } from "./event-json.ts";
import { sampleEvent } from "./sample-event.ts";
import { samplesFor, type ListeningTrigger, type Sample } from "./samples.ts";

/** The event that a draft is tried with, and what else there is to choose. */
export interface ChosenEvent {
  /** `entry:<id>`, `sample:<name>` or `own`; null until it is known what there is. */
  readonly choice: string | null;
  choose(choice: string): void;
  readonly deliveries: readonly LedgerEntry[];
  readonly samples: { readonly fitting: readonly Sample[]; readonly others: readonly Sample[] };
  /** The event that the user writes, as JSON. */
  readonly own: string;
  setOwn(own: string): void;
  /** As the API takes it; null: there is none, or `problem` says what is wrong with it. */
  readonly body: Pick<PreviewDraft, "event" | "ledgerId" | "sample"> | null;
  readonly problem: Error | null;
}

/** The available templates. */
export function useTemplates() {
  return useQuery({
    queryKey: ["automation-templates"],
    queryFn: () => client.automation.templates(),
    staleTime: Infinity,
  });
}

/**
 * Which event a draft is tried with: the last delivery, else a sample of its template or of what its triggers listen to, else the values
 * that its instructions name.
 */
export function useChosenEvent({
  automation,
  template,
  instructions,
}: {
  readonly automation?: Automation | undefined;
  readonly template?: AutomationTemplate | undefined;
  readonly instructions: string;
}): ChosenEvent {
  const texts = useAutomationTexts();
  const [chosen, choose] = useState<string | null>(null);
  const [written, setOwn] = useState<string | null>(null);
  const found = useDeliveries(automation);
  const templates = useTemplates().data?.templates;
  const triggers: readonly ListeningTrigger[] | undefined = automation?.triggers ?? template?.automation.triggers;
  const samples = useMemo(() => samplesFor(triggers ?? [], templates ?? []), [triggers, templates]);
  const deliveries = found.data ?? [];
  const isKnown = !found.isLoading && templates !== undefined;
  const first = deliveries[0];
  const sample = template?.samples[0] ?? samples.fitting[0]?.name;
  const usual = first !== undefined ? `entry:${first.id}` : sample !== undefined ? `sample:${sample}` : "own";
  const choice = chosen ?? (isKnown ? usual : null);
  const own = written ?? JSON.stringify(sampleEvent(instructions), null, 2);
  return { choice, choose, deliveries, samples, own, setOwn, ...bodyOf(choice, own, texts) };
}

function bodyOf(choice: string | null, own: string, texts: AutomationTexts): Pick<ChosenEvent, "body" | "problem"> {
  if (choice === null) return { body: null, problem: null };
  if (choice.startsWith("entry:")) return { body: { ledgerId: choice.slice("entry:".length) }, problem: null };
  if (choice.startsWith("sample:")) return { body: { sample: choice.slice("sample:".length) }, problem: null };
  try {
    return { body: { event: eventOf(own, texts) }, problem: null };
  } catch (error) {
    if (error instanceof NoEvent) return { body: null, problem: error };
    throw error;
  }
}
