import type { AutomationTemplate } from "../../domain/automations/automation-file.ts";
import { sourceEventNames } from "../../domain/automations/source-event.ts";
import type { TriggerInput } from "../../domain/automations/trigger.ts";

/** A sample event that the server has. */
export interface Sample {
  /** As the API knows it. */
  readonly name: string;
  readonly label: string;
}

/** The fields of a trigger that say which events it gets. */
export type ListeningTrigger = Pick<TriggerInput, "type"> & {
  readonly source?: keyof typeof sourceEventNames;
  readonly events?: readonly string[];
};

/** All sample events, those first that an automation with these triggers may get. */
export function samplesFor(
  triggers: readonly ListeningTrigger[],
  templates: readonly AutomationTemplate[],
): { readonly fitting: Sample[]; readonly others: Sample[] } {
  const ofSources = triggers.flatMap(({ source }) => (source === undefined ? [] : sampleOfSource(source)));
  const fits = ({ automation }: AutomationTemplate): boolean =>
    automation.triggers.some((known) => triggers.some((trigger) => areAlike(trigger, known)));
  const named = (list: readonly AutomationTemplate[]): Sample[] =>
    list.flatMap(({ automation, samples }) =>
      samples.map((name) => ({ name, label: `${automation.name}: ${name.slice(name.indexOf("/") + 1)}` })),
    );
  return {
    fitting: [...ofSources, ...named(templates.filter(fits))],
    others: named(templates.filter((template) => !fits(template))),
  };
}

/** Each source has a sample of its first event; a sender of CloudEvents names its events itself. */
function sampleOfSource(source: keyof typeof sourceEventNames): Sample[] {
  const event = sourceEventNames[source]?.[0] ?? "com.example.build.failed";
  return [{ name: `${source}/${event}`, label: `${source}: ${event}` }];
}

function areAlike(one: ListeningTrigger, other: ListeningTrigger): boolean {
  if (one.type !== other.type || one.source !== other.source) return false;
  return one.type === "schedule" || (one.events ?? []).some((event) => (other.events ?? []).includes(event));
}
