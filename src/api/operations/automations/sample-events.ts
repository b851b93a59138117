import type { AutomationTemplates } from "../../../automation-files/templates.ts";
import type { TemplateSample } from "../../../domain/automations/automation-file.ts";
import type { EventContext } from "../../../domain/automations/automation.ts";
import { sourceNames, type SourceName } from "../../../domain/automations/source-event.ts";
import { InvalidInputError } from "../../../domain/errors/errors.ts";
import { readerOf } from "../../../inbound/forges/readers.ts";
import { sampleDelivery } from "../../../inbound/sources/source.ts";
import { sources } from "../../../inbound/sources/sources.ts";

/** An event to try automations with. */
export interface SampleEvent {
  readonly event: EventContext;
  /** Null: it has none. */
  readonly name: string | null;
}

/**
 * Finds a sample event by its name: `<source>/<event>` or `<template>/<sample>`.
 * @throws InvalidInputError if there is none
 */
export async function eventOfSample(sample: string, templates: AutomationTemplates): Promise<SampleEvent> {
  const [of = "", which = ""] = sample.split("/", 2);
  const source = sourceNames.find((name) => name === of);
  const template = (await templates.list()).find(({ id }) => id === of);
  const own = template?.samples.find(({ name }) => name === which);
  const found = own === undefined ? source && eventOfSource(source, which) : eventOfTemplate(own);
  if (found !== undefined) return found;
  throw new InvalidInputError(
    `sample: there is no sample event ${sample}: see GET /automation/template/list and docs/sources.md`,
  );
}

function eventOfTemplate(sample: TemplateSample): SampleEvent | undefined {
  if ("source" in sample) return eventOfSource(sample.source, sample.event);
  if (!("forge" in sample)) return { event: sample.event, name: nameIn(sample.event) };
  const delivery = { headers: sample.headers, body: Buffer.from(JSON.stringify(sample.payload)) };
  return readerOf(sample.forge).read(delivery).events[0];
}

function eventOfSource(source: SourceName, name: string): SampleEvent | undefined {
  const sample = sources[source].samples.find(({ event }) => event === name);
  if (sample === undefined) return undefined;
  return sources[source].reader.read(sampleDelivery(sample)).events.find((event) => event.name === name);
}

/** The name that an event says it has; null if it says none. */
export function nameIn({ name }: EventContext): string | null {
  return typeof name === "string" ? name : null;
}
