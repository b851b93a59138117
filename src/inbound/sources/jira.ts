import type { SourceAccount, SourceEvent } from "../../domain/automations/source-event.ts";
import type { InboundDelivery, ReadDelivery } from "../delivery.ts";
import { hasHubSignature } from "../signatures.ts";
import {
  at,
  contentKey,
  deliveryIdOf,
  linkAt,
  listAt,
  objectAt,
  type Payload,
  prose,
  readPayload,
  requiredObject,
  requiredText,
  textAt,
} from "./payload.ts";
import { deliveryOf, type SourceHappening, type Source, type SourceSample } from "./source.ts";

const person = {
  accountId: "5b10a2844c20165700ede21g",
  accountType: "atlassian",
  displayName: "Sam Ito",
  active: true,
};
const sampleIssue: Payload = {
  id: "10042",
  self: "https://acme.atlassian.net/rest/api/2/10042",
  key: "SHOP-42",
  fields: {
    summary: "The basket forgets its items after sign-in",
    description: "Put something into the basket, sign in: the basket is empty.",
    issuetype: { id: "10004", name: "Bug" },
    project: { id: "10000", key: "SHOP", name: "Shop" },
    status: { id: "10001", name: "To Do" },
    priority: { id: "2", name: "High" },
    labels: ["basket"],
    assignee: null,
    reporter: person,
    creator: person,
  },
};
const moved: Payload = {
  ...objectAt(sampleIssue, "fields"),
  status: { id: "3", name: "In Progress" },
  assignee: person,
};
const sampleChange = { fieldtype: "jira", from: null, fromString: null };
const samples: readonly SourceSample[] = [
  {
    event: "issue.created",
    title: "A new issue (Cloud)",
    headers: { "x-atlassian-webhook-identifier": "1f5a6c0e-3f5b-4d7e-9f5a-0c1f2a3b4c5d" },
    payload: {
      timestamp: Date.parse("2026-08-19T12:00:00.000Z"),
      webhookEvent: "jira:issue_created",
      issue_event_type_name: "issue_created",
      user: person,
      issue: sampleIssue,
    },
  },
  {
    event: "issue.assigned",
    title: "An issue was assigned and moved at once (Cloud)",
    headers: { "x-atlassian-webhook-identifier": "6d9c2d0f-1d0b-4a8e-8a52-6f1b7c8d9e0f" },
    payload: {
      timestamp: Date.parse("2026-08-20T07:31:10.000Z"),
      webhookEvent: "jira:issue_updated",
      issue_event_type_name: "issue_generic",
      user: person,
      issue: { ...sampleIssue, fields: moved },
      changelog: {
        id: "10124",
        items: [
          {
            ...sampleChange,
            field: "assignee",
            fieldId: "assignee",
            to: person.accountId,
            toString: person.displayName,
          },
          {
            ...sampleChange,
            field: "status",
            fieldId: "status",
            from: "10001",
            fromString: "To Do",
            to: "3",
            toString: "In Progress",
          },
        ],
      },
    },
  },
  {
    event: "issue.labeled",
    title: "A label was added (Data Center)",
    headers: {},
    payload: {
      timestamp: Date.parse("2026-08-20T08:02:00.000Z"),
      webhookEvent: "jira:issue_updated",
      issue_event_type_name: "issue_updated",
      user: {
        self: "https://jira.acme.example/jira/rest/api/2/user?username=sam",
        name: "sam",
        key: "JIRAUSER10100",
        displayName: "Sam Ito",
      },
      issue: {
        ...sampleIssue,
        self: "https://jira.acme.example/jira/rest/api/2/issue/10042",
        fields: { ...objectAt(sampleIssue, "fields"), labels: ["basket", "agent"] },
      },
      changelog: {
        id: "10125",
        items: [{ ...sampleChange, field: "labels", fromString: "basket", to: null, toString: "basket agent" }],
      },
    },
  },
];

/**
 * Jira Cloud and Data Center, by the webhooks that an administrator makes, with a secret
 * (https://developer.atlassian.com/cloud/jira/platform/webhooks/#secure-admin-webhooks): `X-Hub-Signature` as WebSub has it.
 */
export const jira: Source = {
  name: "jira",
  reader: {
    verify: ({ headers, body }, secrets) => hasHubSignature(headers["x-hub-signature"], body, secrets),
    read,
  },
  samples,
};

function read(delivery: InboundDelivery): ReadDelivery {
  const payload = readPayload(delivery);
  const event = requiredText(payload, "webhookEvent");
  // Only Cloud has this header; it is the same when a delivery is tried again.
  const id = deliveryIdOf(delivery.headers["x-atlassian-webhook-identifier"]);
  if (event === "jira:issue_created") return deliveryOf(id, [happening("issue.created", payload, null)]);
  if (event !== "jira:issue_updated") return deliveryOf(id, []);
  return deliveryOf(
    id,
    listAt(payload, "changelog", "items").flatMap((item) => ofChange(item, payload)),
  );
}

/** Events by the field that changed, as an item of a changelog names it. */
const namesOfFields: Readonly<Record<string, string>> = {
  assignee: "issue.assigned",
  status: "issue.statusChanged",
  labels: "issue.labeled",
  project: "issue.moved",
};

function ofChange(item: unknown, payload: Payload): SourceHappening[] {
  const field = textAt(item, "field") ?? "";
  const name = Object.hasOwn(namesOfFields, field) ? namesOfFields[field] : undefined;
  if (name === undefined) return [];
  const [from, to] = [textAt(item, "fromString"), textAt(item, "toString")];
  // The removal of a person or a label is no event.
  if (name === "issue.assigned" && to === null && textAt(item, "to") === null) return [];
  if (name === "issue.labeled" && !hasNewWord(from, to)) return [];
  return [happening(name, payload, { field, from, to })];
}

function hasNewWord(from: string | null, to: string | null): boolean {
  const before = new Set((from ?? "").split(" "));
  return (to ?? "").split(" ").some((label) => !before.has(label));
}

function happening(
  name: string,
  payload: Payload,
  changed: { field: string; from: string | null; to: string | null } | null,
): SourceHappening {
  const data = requiredObject(payload, "issue");
  const id = requiredText(payload, "issue", "id");
  const base = baseOf(data);
  const change = textAt(payload, "changelog", "id") ?? textAt(payload, "timestamp");
  const event: SourceEvent = {
    name,
    source: "jira",
    actor: personOf(objectAt(payload, "user")),
    issue: issueOf(id, data, base),
    ...(changed !== null && { changes: [changed] }),
    payload,
  };
  const which = changed === null ? "created" : change;
  return {
    event,
    contentKey: which === null ? null : contentKey("jira", base, id, name, which),
    subject: `jira:${base ?? ""}:${id}`,
  };
}

/** The address of the Jira that has an issue: the part before the path of its API. */
function baseOf(issue: Payload): string | null {
  const self = linkAt(issue, "self");
  const end = self?.indexOf("/rest/") ?? -1;
  return self === null || end === -1 ? null : self.slice(0, end);
}

function issueOf(id: string, data: Payload, base: string | null): NonNullable<SourceEvent["issue"]> {
  const key = textAt(data, "key");
  const fields = objectAt(data, "fields");
  const project = objectAt(fields, "project");
  // An app of Atlassian's own gateway gets addresses that people can't open.
  const isOpen = base !== null && !base.startsWith("https://api.atlassian.com/");
  return {
    id,
    key,
    title: textAt(fields, "summary") ?? "",
    description: descriptionOf(at(fields, "description")),
    url: isOpen && key !== null ? `${base}/browse/${encodeURIComponent(key)}` : null,
    status: textAt(fields, "status", "name"),
    priority: textAt(fields, "priority", "name"),
    labels: listAt(fields, "labels").flatMap((label) => (typeof label === "string" ? label : [])),
    assignee: personOf(objectAt(fields, "assignee")),
    author: personOf(objectAt(fields, "reporter") ?? objectAt(fields, "creator")),
    project: project && { id: textAt(project, "id"), key: textAt(project, "key"), name: textAt(project, "name") },
  };
}

/** Cloud names people by `accountId`, Data Center by `key`, older versions of it by `name`. */
function personOf(account: Payload | null): SourceAccount | null {
  const id = textAt(account, "accountId") ?? textAt(account, "key") ?? textAt(account, "name");
  if (id === null) return null;
  return { id, name: textAt(account, "displayName"), isBot: textAt(account, "accountType") === "app" };
}

/** Elements of the Atlassian Document Format that are on separate lines. */
const blocks = new Set([
  "paragraph",
  "heading",
  "codeBlock",
  "blockquote",
  "listItem",
  "rule",
  "mediaSingle",
  "tableRow",
]);

/**
 * A description as text. Webhooks have it as wiki markup; some send the Atlassian Document Format
 * (https://developer.atlassian.com/cloud/jira/platform/apis/document/structure/), whose texts are taken. Recursive: the nesting of
 * payloads is bounded.
 */
function descriptionOf(value: unknown): string {
  if (typeof value === "string") return prose(value);
  return prose(documentText(value).trim());
}

function documentText(node: unknown): string {
  const type = textAt(node, "type");
  if (type === "hardBreak") return "\n";
  const own = at(node, "text") ?? at(node, "attrs", "text");
  const content = at(node, "content");
  const inner = Array.isArray(content) ? content.map(documentText).join("") : "";
  const text = (typeof own === "string" ? own : "") + inner;
  return type !== null && blocks.has(type) ? `${text}\n` : text;
}
