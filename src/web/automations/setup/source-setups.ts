import type { SourceName } from "../../../domain/automations/source-event.ts";

/** An example automation for a source. */
export interface SourceSetup {
  /** In CEL. */
  readonly condition: string;
  /** In Liquid. */
  readonly instructions: string;
}

/** An example for each source; docs/sources.md has more of it. The steps of its setup are in the texts. */
export const sourceSetups: Readonly<Record<SourceName, SourceSetup>> = {
  sentry: {
    condition: `event.issue.project.key == "front-end" && "error" in event.issue.labels`,
    instructions: `Fix {{ event.issue.key }}: {{ event.issue.title }} ({{ event.issue.url }}).

{{ event.issue.description }}

Write a test that fails without the fix.`,
  },
  linear: {
    condition: `"Bug" in event.issue.labels && event.issue.status == "Todo" && event.actor != null && !event.actor.isBot`,
    instructions: `Work on {{ event.issue.key }}: {{ event.issue.title }}

{{ event.issue.description }}

Reported by {{ event.issue.author.name }}: {{ event.issue.url }}`,
  },
  jira: {
    condition: `event.issue.priority == "High" && event.actor != null && !event.actor.isBot`,
    instructions: `{{ event.issue.key }} is {{ event.issue.status }}: {{ event.issue.title }}

{{ event.issue.description | default: "It has no description." }}

{{ event.issue.url }}`,
  },
  slack: {
    condition: `event.message.channel == "C0LAN2Q65" && !event.message.isShared`,
    instructions: "{{ event.message.text }}",
  },
  pagerduty: {
    condition: `event.incident.urgency == "high" && event.incident.service.name == "Checkout"`,
    instructions:
      "Find the cause of {{ event.incident.title }} ({{ event.incident.url }}) in {{ event.incident.service.name }}.",
  },
  cloudEvents: {
    condition: `event.cloudEvent.source.startsWith("https://ci.example.com/") && event.cloudEvent.data.step == "test"`,
    instructions: `Build {{ event.cloudEvent.data.build }} of {{ event.cloudEvent.extensions.branch }} failed in {{ event.cloudEvent.data.step }}:
{{ event.cloudEvent.data.log }}`,
  },
};
