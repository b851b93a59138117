import type { SourceName } from "../../../domain/automations/source-event.ts";

/** How a source is set up, and what an automation for it may look like. */
export interface SourceSetup {
  /** What is done there, in order. `the address` is the trigger's. */
  readonly steps: readonly string[];
  /** In CEL. */
  readonly condition: string;
  /** In Liquid. */
  readonly instructions: string;
}

/** How each source is set up; docs/sources.md has more of it. */
export const sourceSetups: Readonly<Record<SourceName, SourceSetup>> = {
  sentry: {
    steps: [
      "In Sentry, open Settings → Developer Settings → Create New Integration → Internal Integration.",
      "Paste the address into Webhook URL. Give Issue & Event the permission Read, and tick issue under Webhooks. For alerts, switch on Alert Rule Action.",
      "Save. The Client Secret is the trigger’s secret.",
    ],
    condition: `event.issue.project.key == "front-end" && "error" in event.issue.labels`,
    instructions: `Fix {{ event.issue.key }}: {{ event.issue.title }} ({{ event.issue.url }}).

{{ event.issue.description }}

Write a test that fails without the fix.`,
  },
  linear: {
    steps: [
      "In Linear, open Settings → Administration → API → Webhooks → New webhook as an administrator.",
      "Paste the address, choose the teams, and tick Issues under the data change events.",
      "The webhook’s page shows the Signing secret: it is the trigger’s secret.",
    ],
    condition: `"Bug" in event.issue.labels && event.issue.status == "Todo" && event.actor != null && !event.actor.isBot`,
    instructions: `Work on {{ event.issue.key }}: {{ event.issue.title }}

{{ event.issue.description }}

Reported by {{ event.issue.author.name }}: {{ event.issue.url }}`,
  },
  jira: {
    steps: [
      "As an administrator of Jira, open Settings → System → WebHooks → Create a WebHook.",
      "Paste the address, and a secret of your own making into Secret: it is the trigger’s secret.",
      "Tick Issue: created and updated. A JQL filter there keeps other projects’ issues away.",
    ],
    condition: `event.issue.priority == "High" && event.actor != null && !event.actor.isBot`,
    instructions: `{{ event.issue.key }} is {{ event.issue.status }}: {{ event.issue.title }}

{{ event.issue.description | default: "It has no description." }}

{{ event.issue.url }}`,
  },
  slack: {
    steps: [
      "At https://api.slack.com/apps, choose Create New App → From scratch.",
      "Basic Information → Signing Secret is the trigger’s secret. Save the trigger with it before the next step.",
      "Event Subscriptions: switch them on and paste the address as Request URL.",
      "Subscribe to bot events: app_mention for mention, and message.channels for messages in public channels.",
      "Install App, and invite the app to the channel: /invite @name.",
    ],
    condition: `event.message.channel == "C0LAN2Q65" && !event.message.isShared`,
    instructions: "{{ event.message.text }}",
  },
  pagerduty: {
    steps: [
      "In PagerDuty, open Integrations → Generic Webhooks (v3) → New Webhook.",
      "Paste the address, choose a service, a team or the account, and the events.",
      "Save. PagerDuty shows the webhook’s secret once: it is the trigger’s secret.",
    ],
    condition: `event.incident.urgency == "high" && event.incident.service.name == "Checkout"`,
    instructions:
      "Find the cause of {{ event.incident.title }} ({{ event.incident.url }}) in {{ event.incident.service.name }}.",
  },
  cloudEvents: {
    steps: [
      "Have the sender post CloudEvents 1.0 to the address: binary, structured or batched, in JSON.",
      "It shows the trigger’s secret as Authorization: Bearer, or signs as Standard Webhooks say.",
    ],
    condition: `event.cloudEvent.source.startsWith("https://ci.example.com/") && event.cloudEvent.data.step == "test"`,
    instructions: `Build {{ event.cloudEvent.data.build }} of {{ event.cloudEvent.extensions.branch }} failed in {{ event.cloudEvent.data.step }}:
{{ event.cloudEvent.data.log }}`,
  },
};
