import type { z } from "zod";
import type { TriggerInput, triggerInputSchema } from "../../../domain/automations/trigger.ts";
import type { AutomationTexts } from "../../texts/automations.ts";

/** A trigger to start from, as the API takes it. */
export interface TriggerExample {
  readonly name: keyof AutomationTexts["triggers"]["examples"];
  readonly trigger: z.input<typeof triggerInputSchema>;
}

const hmac = { type: "hmac", header: "X-Signature", algorithm: "sha256", encoding: "hex", prefix: "sha256=" } as const;
const noBots = "event.actor != null && !event.actor.isBot";

/** Triggers to start from, one for each kind and source. */
export const triggerExamples: readonly TriggerExample[] = [
  { name: "schedule", trigger: { type: "schedule", cron: "0 9 * * 1-5", timeZone: "Europe/Berlin" } },
  { name: "webhook", trigger: { type: "webhook" } },
  { name: "hmac", trigger: { type: "webhook", verify: hmac } },
  { name: "standardWebhooks", trigger: { type: "webhook", verify: { type: "standardWebhooks" } } },
  { name: "issues", trigger: { type: "forge", events: ["issue.opened"], reply: "subject" } },
  { name: "pullRequests", trigger: { type: "forge", events: ["pullRequest.opened", "pullRequest.updated"] } },
  { name: "checks", trigger: { type: "forge", events: ["checks.failed"], maxPerHour: 5 } },
  { name: "sentry", trigger: ofSource("sentry", ["issue.created", "issue.regressed"]) },
  { name: "linear", trigger: { ...ofSource("linear", ["issue.created"]), condition: noBots } },
  { name: "jira", trigger: { ...ofSource("jira", ["issue.assigned"]), condition: noBots } },
  { name: "slack", trigger: { ...ofSource("slack", ["mention"]), condition: "!event.message.isShared" } },
  { name: "pagerduty", trigger: ofSource("pagerduty", ["incident.triggered"]) },
  { name: "cloudEvents", trigger: ofSource("cloudEvents", ["com.example.build.failed"]) },
];

function ofSource(source: Extract<TriggerInput, { type: "source" }>["source"], events: string[]) {
  return { type: "source" as const, source, events };
}
