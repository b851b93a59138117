import type { z } from "zod";
import type { TriggerInput, triggerInputSchema } from "../../../domain/automations/trigger.ts";

/** A trigger to start from, as the API takes it. */
export interface TriggerExample {
  readonly name: string;
  readonly trigger: z.input<typeof triggerInputSchema>;
}

const hmac = { type: "hmac", header: "X-Signature", algorithm: "sha256", encoding: "hex", prefix: "sha256=" } as const;
const noBots = "event.actor != null && !event.actor.isBot";

/** Triggers to start from, one for each kind and source. */
export const triggerExamples: readonly TriggerExample[] = [
  { name: "Schedule", trigger: { type: "schedule", cron: "0 9 * * 1-5", timeZone: "Europe/Berlin" } },
  { name: "Webhook", trigger: { type: "webhook" } },
  { name: "Webhook, signed by HMAC", trigger: { type: "webhook", verify: hmac } },
  { name: "Webhook, signed by Standard Webhooks", trigger: { type: "webhook", verify: { type: "standardWebhooks" } } },
  { name: "Forge: issues", trigger: { type: "forge", events: ["issue.opened"], reply: "subject" } },
  { name: "Forge: pull requests", trigger: { type: "forge", events: ["pullRequest.opened", "pullRequest.updated"] } },
  { name: "Forge: failed checks", trigger: { type: "forge", events: ["checks.failed"], maxPerHour: 5 } },
  { name: "Sentry", trigger: ofSource("sentry", ["issue.created", "issue.regressed"]) },
  { name: "Linear", trigger: { ...ofSource("linear", ["issue.created"]), condition: noBots } },
  { name: "Jira", trigger: { ...ofSource("jira", ["issue.assigned"]), condition: noBots } },
  { name: "Slack", trigger: { ...ofSource("slack", ["mention"]), condition: "!event.message.isShared" } },
  { name: "PagerDuty", trigger: ofSource("pagerduty", ["incident.triggered"]) },
  { name: "CloudEvents", trigger: ofSource("cloudEvents", ["com.example.build.failed"]) },
];

function ofSource(source: Extract<TriggerInput, { type: "source" }>["source"], events: string[]) {
  return { type: "source" as const, source, events };
}
