import type { SourceAccount, SourceEvent } from "../../domain/automations/source-event.ts";
import type { InboundDelivery, ReadDelivery } from "../delivery.ts";
import { hasHmac } from "../signatures.ts";
import {
  contentKey,
  deliveryIdOf,
  hostOf,
  linkAt,
  listAt,
  objectAt,
  type Payload,
  proseAt,
  readPayload,
  requiredObject,
  requiredText,
  textAt,
} from "./payload.ts";
import { deliveryOf, type SourceHappening, type Source, type SourceSample } from "./source.ts";

const sampleIssue: Payload = {
  id: "1170820242",
  url: "https://acme.sentry.io/api/0/organizations/acme/issues/1170820242/",
  web_url: "https://acme.sentry.io/issues/1170820242/",
  project_url: "https://acme.sentry.io/issues/?project=1",
  shareId: null,
  shortId: "FRONT-END-9",
  title: "ReferenceError: blooopy is not defined",
  culprit: "?(runner)",
  permalink: "https://acme.sentry.io/issues/1170820242/",
  logger: null,
  level: "error",
  status: "unresolved",
  statusDetails: {},
  substatus: "new",
  isPublic: false,
  platform: "javascript",
  project: { id: "1", name: "front-end", slug: "front-end", platform: "" },
  type: "error",
  metadata: { filename: "/runner", type: "ReferenceError", value: "blooopy is not defined" },
  numComments: 0,
  assignedTo: null,
  isBookmarked: false,
  isSubscribed: false,
  hasSeen: false,
  annotations: [],
  count: "1",
  userCount: 1,
  firstSeen: "2026-08-19T20:58:37.391000Z",
  lastSeen: "2026-08-19T20:58:37.391000Z",
};
const sampleFrame: Payload = {
  actor: { id: "sentry", name: "Sentry", type: "application" },
  installation: { uuid: "a8e5d37a-696c-4c54-adb5-b3f28d64c7de" },
};
const samples: readonly SourceSample[] = [
  {
    event: "issue.created",
    title: "A new issue",
    headers: { "sentry-hook-resource": "issue", "request-id": "5a4b1f2cbd0e4e6c8f5d8a6a4f3a9a51" },
    payload: { action: "created", ...sampleFrame, data: { issue: sampleIssue } },
  },
  {
    event: "issue.regressed",
    title: "A resolved issue came back",
    headers: { "sentry-hook-resource": "issue", "request-id": "0d3f6b9f5fd14f0f8b7d2a1a4c9e7b10" },
    payload: {
      action: "unresolved",
      ...sampleFrame,
      data: { issue: { ...sampleIssue, count: "12", substatus: "regressed", lastSeen: "2026-08-21T09:12:04.118000Z" } },
    },
  },
  {
    event: "alert.triggered",
    title: "An alert rule was triggered",
    headers: { "sentry-hook-resource": "event_alert", "request-id": "9f1c1de0f0a94b0fb1a5a1d0f0c3c7de" },
    payload: {
      action: "triggered",
      ...sampleFrame,
      data: {
        event: {
          culprit: "?(<anonymous>)",
          datetime: "2026-08-19T21:06:17.677000Z",
          event_id: "e4874d664c3540c1a32eab185f12c5ab",
          issue_id: "1170820242",
          issue_url: "https://acme.sentry.io/api/0/organizations/acme/issues/1170820242/",
          level: "error",
          metadata: { filename: "<anonymous>", type: "ReferenceError", value: "heck is not defined" },
          platform: "javascript",
          project: 1,
          release: null,
          tags: [
            ["browser", "Chrome 75.0.3770"],
            ["level", "error"],
          ],
          title: "ReferenceError: heck is not defined",
          web_url:
            "https://acme.sentry.io/organizations/acme/issues/1170820242/events/e4874d664c3540c1a32eab185f12c5ab/",
        },
        triggered_rule: "Errors in production",
      },
    },
  },
];

/**
 * Sentry, by the webhooks of an internal integration
 * (https://docs.sentry.io/organization/integrations/integration-platform/webhooks/). Sentry sends a delivery again under another
 * `Request-ID`, with the issue as it is by then.
 */
export const sentry: Source = {
  name: "sentry",
  reader: {
    verify: ({ headers, body }, secrets) =>
      hasHmac(headers["sentry-hook-signature"], body, secrets, { algorithm: "sha256", encoding: "hex" }),
    read,
  },
  samples,
};

function read(delivery: InboundDelivery): ReadDelivery {
  const payload = readPayload(delivery);
  const resource = delivery.headers["sentry-hook-resource"];
  const happening = resource === "issue" ? ofIssue(payload) : resource === "event_alert" ? ofAlert(payload) : null;
  return deliveryOf(deliveryIdOf(delivery.headers["request-id"]), happening === null ? [] : [happening]);
}

function ofIssue(payload: Payload): SourceHappening | null {
  const action = requiredText(payload, "action");
  // An issue is also unresolved because a person says so, or because it escalates: only its substatus shows which.
  const isRegression = action === "unresolved" && textAt(payload, "data", "issue", "substatus") === "regressed";
  if (action !== "created" && !isRegression) return null;
  const name = isRegression ? "issue.regressed" : "issue.created";
  const data = requiredObject(payload, "data", "issue");
  const id = requiredText(payload, "data", "issue", "id");
  const issue = issueOf(id, data);
  // Nothing numbers an issue's regressions; the event that made this one is the last that was seen.
  const which = isRegression ? textAt(data, "lastSeen") : null;
  return {
    event: { name, source: "sentry", actor: actorOf(payload), issue, payload },
    contentKey: isRegression && which === null ? null : contentKey("sentry", name, hostOf(issue.url), id, which),
    subject: `sentry:${id}`,
  };
}

function issueOf(id: string, data: Payload): NonNullable<SourceEvent["issue"]> {
  const value = proseAt(data, "metadata", "value");
  const culprit = textAt(data, "culprit");
  const level = textAt(data, "level");
  return {
    id,
    key: textAt(data, "shortId"),
    title: textAt(data, "title") ?? "",
    description: [value, culprit === null ? "" : `in ${culprit}`].filter((line) => line !== "").join("\n"),
    url: linkAt(data, "web_url") ?? linkAt(data, "permalink"),
    status: textAt(data, "substatus") ?? textAt(data, "status"),
    priority: textAt(data, "priority"),
    labels: level === null ? [] : [level],
    assignee: accountOf(objectAt(data, "assignedTo")),
    author: null,
    project: projectOf(objectAt(data, "project")),
  };
}

function projectOf(project: Payload | null): NonNullable<SourceEvent["issue"]>["project"] {
  return project && { id: textAt(project, "id"), key: textAt(project, "slug"), name: textAt(project, "name") };
}

function ofAlert(payload: Payload): SourceHappening {
  const data = requiredObject(payload, "data", "event");
  const eventId = textAt(data, "event_id");
  const id = requiredText(payload, "data", "event", "issue_id");
  const rule = textAt(payload, "data", "triggered_rule");
  const url = linkAt(data, "web_url");
  // The address of an issue is that of its events without their end.
  const issueUrl = url === null ? null : url.replace(/\/events\/[^/]+\/?$/u, "/");
  const tags = listAt(data, "tags").flatMap((tag) => (Array.isArray(tag) ? [tag.slice(0, 2).join(": ")] : []));
  return {
    event: {
      name: "alert.triggered",
      source: "sentry",
      actor: actorOf(payload),
      issue: { ...issueOf(id, data), url: issueUrl, status: null, labels: tags, project: null },
      alert: { rule, eventId, url },
      payload,
    },
    contentKey: eventId === null ? null : contentKey("sentry", "alert.triggered", hostOf(url), eventId, rule),
    subject: `sentry:${id}`,
  };
}

function actorOf(payload: Payload): SourceAccount | null {
  return accountOf(objectAt(payload, "actor"));
}

function accountOf(account: Payload | null): SourceAccount | null {
  const id = textAt(account, "id");
  if (id === null) return null;
  return { id, name: textAt(account, "name"), isBot: textAt(account, "type") === "application" };
}
