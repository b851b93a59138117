import { sourceEventNames, type SourceAccount, type SourceEvent } from "../../domain/automations/source-event.ts";
import type { InboundDelivery, ReadDelivery } from "../delivery.ts";
import { hasHmac } from "../signatures.ts";
import {
  contentKey,
  deliveryIdOf,
  linkAt,
  listAt,
  numberAt,
  objectAt,
  type Payload,
  proseAt,
  readPayload,
  requiredObject,
  requiredText,
  textAt,
} from "./payload.ts";
import { deliveryOf, type Source, type SourceSample } from "./source.ts";

/** Most signatures that a header may have: PagerDuty sends one for each secret, of which there are two while one is replaced. */
const mostSignatures = 10;

const person = {
  html_url: "https://acme.pagerduty.com/users/PLH1HKV",
  id: "PLH1HKV",
  self: "https://api.pagerduty.com/users/PLH1HKV",
  summary: "Sam Ito",
  type: "user_reference",
};
const sampleIncident: Payload = {
  id: "PGR0VU2",
  type: "incident",
  self: "https://api.pagerduty.com/incidents/PGR0VU2",
  html_url: "https://acme.pagerduty.com/incidents/PGR0VU2",
  number: 2,
  status: "triggered",
  incident_key: "d3640fbd41094207a1c11e58e46b1662",
  created_at: "2026-08-19T15:16:27Z",
  title: "Checkout answers 500",
  service: {
    html_url: "https://acme.pagerduty.com/services/PF9KMXH",
    id: "PF9KMXH",
    self: "https://api.pagerduty.com/services/PF9KMXH",
    summary: "Checkout",
    type: "service_reference",
  },
  assignees: [person],
  escalation_policy: { id: "PUS0KTE", summary: "Default", type: "escalation_policy_reference" },
  teams: [{ id: "PFCVPS0", summary: "Engineering", type: "team_reference" }],
  priority: { id: "PSO75BM", summary: "P1", type: "priority_reference" },
  urgency: "high",
  conference_bridge: null,
  resolve_reason: null,
};
const sampleFrame: Payload = { resource_type: "incident", agent: person, client: null };
const samples: readonly SourceSample[] = [
  {
    event: "incident.triggered",
    title: "A new incident",
    headers: {},
    payload: {
      event: {
        id: "5ac64822-4adc-4fda-ade0-410becf0de4f",
        event_type: "incident.triggered",
        occurred_at: "2026-08-19T15:16:27.169Z",
        ...sampleFrame,
        data: sampleIncident,
      },
    },
  },
  {
    event: "incident.priorityUpdated",
    title: "An incident's priority was changed",
    headers: {},
    payload: {
      event: {
        id: "01DHQ4Y6Q2ZQ1M7H0X8V7K3N5R",
        event_type: "incident.priority_updated",
        occurred_at: "2026-08-19T15:20:01.500Z",
        ...sampleFrame,
        data: sampleIncident,
      },
    },
  },
  {
    event: "incident.annotated",
    title: "A note was added to an incident",
    headers: {},
    payload: {
      event: {
        id: "01DHQ51T9C7S2W8Q4B0E6F3J1K",
        event_type: "incident.annotated",
        occurred_at: "2026-08-19T15:31:44.020Z",
        ...sampleFrame,
        data: {
          incident: {
            html_url: "https://acme.pagerduty.com/incidents/PGR0VU2",
            id: "PGR0VU2",
            self: "https://api.pagerduty.com/incidents/PGR0VU2",
            summary: "Checkout answers 500",
            type: "incident_reference",
          },
          id: "P2LA89X",
          content: "It began with release 7.4.1.",
          trimmed: false,
          type: "incident_note",
        },
      },
    },
  },
];

/** PagerDuty, by webhook subscriptions of version 3 (https://developer.pagerduty.com/docs/webhooks-overview). */
export const pagerduty: Source = {
  name: "pagerduty",
  reader: { verify, read },
  samples,
};

/** https://developer.pagerduty.com/docs/verifying-webhook-signatures: one of several signatures has to be right. */
function verify({ headers, body }: InboundDelivery, secrets: readonly string[]): boolean {
  const signatures = (headers["x-pagerduty-signature"] ?? "").split(",").slice(0, mostSignatures);
  const options = { algorithm: "sha256", encoding: "hex", prefix: "v1=" } as const;
  return signatures.map((signature) => hasHmac(signature.trim(), body, secrets, options)).includes(true);
}

function read(delivery: InboundDelivery): ReadDelivery {
  const payload = readPayload(delivery);
  // PagerDuty's test of an address, `pagey.ping`, has no other fields that are sure.
  const type = requiredText(payload, "event", "event_type");
  const id = requiredText(payload, "event", "id");
  const name = nameOf(type);
  if (name === null) return deliveryOf(deliveryIdOf(id), []);
  const incident = incidentOf(payload);
  const event: SourceEvent = {
    name,
    source: "pagerduty",
    actor: agentOf(objectAt(payload, "event", "agent")),
    incident,
    payload,
  };
  const subject = `pagerduty:${incident.id}`;
  return deliveryOf(deliveryIdOf(id), [{ event, contentKey: contentKey("pagerduty", id), subject }]);
}

/** The name of an event by its type: `incident.priority_updated` is `incident.priorityUpdated`; null if it is none of ours. */
function nameOf(type: string): string | null {
  const name = type.replaceAll(/_([a-z])/gu, (_, letter: string) => letter.toUpperCase());
  return (sourceEventNames.pagerduty as readonly string[]).includes(name) ? name : null;
}

/** Events of notes have the note, with a reference to its incident. */
function incidentOf(payload: Payload): NonNullable<SourceEvent["incident"]> {
  const data = requiredObject(payload, "event", "data");
  const reference = objectAt(data, "incident");
  const incident = reference ?? data;
  const service = objectAt(incident, "service");
  const note = proseAt(data, "content") || proseAt(data, "message");
  return {
    id: requiredText(payload, "event", "data", ...(reference === null ? [] : ["incident"]), "id"),
    number: numberAt(incident, "number"),
    title: textAt(incident, "title") ?? textAt(incident, "summary") ?? "",
    url: linkAt(incident, "html_url"),
    status: textAt(incident, "status"),
    urgency: textAt(incident, "urgency"),
    priority: textAt(incident, "priority", "summary"),
    service: service && {
      id: textAt(service, "id"),
      name: textAt(service, "summary"),
      url: linkAt(service, "html_url"),
    },
    assignees: listAt(incident, "assignees").flatMap((assignee) => agentOf(objectAt(assignee)) ?? []),
    note: reference === null || note === "" ? null : note,
  };
}

/** The actor: a user, or a service or an integration, which are bots. */
function agentOf(agent: Payload | null): SourceAccount | null {
  const id = textAt(agent, "id");
  if (id === null) return null;
  const type = textAt(agent, "type") ?? "user_reference";
  return { id, name: textAt(agent, "summary"), isBot: !type.startsWith("user") };
}
