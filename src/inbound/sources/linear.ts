import type { SourceAccount, SourceEvent } from "../../domain/automations/source-event.ts";
import type { InboundDelivery, ReadDelivery } from "../delivery.ts";
import { hasHmac, isRecent } from "../signatures.ts";
import {
  at,
  contentKey,
  deliveryIdOf,
  linkAt,
  listAt,
  numberAt,
  objectAt,
  type Payload,
  prose,
  proseAt,
  readPayload,
  requiredObject,
  requiredText,
  textAt,
} from "./payload.ts";
import { deliveryOf, type SourceHappening, type Source, type SourceSample } from "./source.ts";

/** How far a delivery's time may be from ours (https://linear.app/developers/webhooks#securing-webhooks). */
const toleranceMs = 60_000;
/** Most changes that an event lists. */
const mostChanges = 50;
const longestField = 200;

const person = {
  id: "b5ea5f1f-8adc-4f52-b4bd-ab4e84cf51ba",
  name: "Sam Ito",
  email: "sam@example.com",
  url: "https://linear.app/acme/profiles/sam",
};
const sampleIssue: Payload = {
  id: "2174add1-f7c8-44e3-bbf3-2d60b5ea8bc9",
  createdAt: "2026-08-19T12:00:00.000Z",
  updatedAt: "2026-08-19T12:00:00.000Z",
  archivedAt: null,
  number: 42,
  identifier: "ENG-42",
  title: "Sign-in fails for names with an apostrophe",
  description: "Steps: sign in as `O'Brien`. Expected: a session. Actual: 500.",
  priority: 2,
  priorityLabel: "High",
  prioritySortOrder: -1_204.5,
  sortOrder: -1_204.5,
  url: "https://linear.app/acme/issue/ENG-42/sign-in-fails-for-names-with-an-apostrophe",
  teamId: "9cfb482a-81e3-4154-b5b9-2c805e70a02d",
  team: { id: "9cfb482a-81e3-4154-b5b9-2c805e70a02d", key: "ENG", name: "Engineering" },
  projectId: "0f3c0a4e-3a65-4d1a-8d39-0c2d4f7bb6b1",
  project: {
    id: "0f3c0a4e-3a65-4d1a-8d39-0c2d4f7bb6b1",
    name: "Accounts",
    url: "https://linear.app/acme/project/accounts",
  },
  stateId: "d1f9e1a6-0a0b-4a53-a8f1-0f6f9f6d9d51",
  state: { id: "d1f9e1a6-0a0b-4a53-a8f1-0f6f9f6d9d51", color: "#bec2c8", name: "Todo", type: "unstarted" },
  assigneeId: null,
  creatorId: person.id,
  creator: person,
  labelIds: ["a3f1f9f0-4a9c-4a55-8a6e-6a1c6f0a1f11"],
  labels: [{ id: "a3f1f9f0-4a9c-4a55-8a6e-6a1c6f0a1f11", color: "#eb5757", name: "Bug" }],
  subscriberIds: [person.id],
  previousIdentifiers: [],
  reactionData: [],
  releases: [],
};
const sampleFrame: Payload = {
  type: "Issue",
  actor: { ...person, type: "user" },
  createdAt: "2026-08-19T12:00:00.000Z",
  url: sampleIssue["url"],
  organizationId: "2b1f8f5e-6f1f-4e1f-9d0a-5f5f7f5c3d11",
  webhookTimestamp: Date.parse("2026-08-19T12:00:01.000Z"),
  webhookId: "b3a4e9a0-7d1c-4f6e-8a91-6b0a9f3c2e10",
};
const started = "5b7c6f52-8c9f-4a0b-9c0e-6f3f7c1d2e33";
const sampleHeaders = { "linear-delivery": "234d1a4e-b617-4388-90fe-adc3633d6b72", "linear-event": "Issue" };
const samples: readonly SourceSample[] = [
  {
    event: "issue.created",
    title: "A new issue",
    headers: sampleHeaders,
    payload: { action: "create", ...sampleFrame, data: sampleIssue },
  },
  {
    event: "issue.statusChanged",
    title: "An issue was moved to In Progress",
    headers: { ...sampleHeaders, "linear-delivery": "6f1c2c0a-53c4-4d58-8d4f-7e40c7a1b9f2" },
    payload: {
      action: "update",
      ...sampleFrame,
      data: {
        ...sampleIssue,
        updatedAt: "2026-08-20T07:31:10.221Z",
        stateId: started,
        state: { id: started, color: "#f2c94c", name: "In Progress", type: "started" },
      },
      updatedFrom: { stateId: sampleIssue["stateId"], updatedAt: "2026-08-19T12:00:00.000Z" },
    },
  },
  {
    event: "issue.updated",
    title: "An issue was assigned",
    headers: { ...sampleHeaders, "linear-delivery": "c2b1bb4e-1d0e-4b3f-a0c9-3c1f5a8f7d64" },
    payload: {
      action: "update",
      ...sampleFrame,
      data: { ...sampleIssue, updatedAt: "2026-08-19T13:05:44.018Z", assigneeId: person.id, assignee: person },
      updatedFrom: { assigneeId: null, updatedAt: "2026-08-19T12:00:00.000Z" },
    },
  },
];

/** Linear, by webhooks of a workspace (https://linear.app/developers/webhooks). */
export const linear: Source = { name: "linear", reader: { verify, read }, samples };

function verify({ headers, body }: InboundDelivery, secrets: readonly string[], now: number): boolean {
  const isSigned = hasHmac(headers["linear-signature"], body, secrets, { algorithm: "sha256", encoding: "hex" });
  // The time is in the body, which is worth reading only if Linear made it.
  return isSigned && isRecent(sentAt(body), now, toleranceMs);
}

function sentAt(body: Buffer): number {
  try {
    return numberAt(JSON.parse(body.toString()), "webhookTimestamp") ?? Number.NaN;
  } catch {
    return Number.NaN;
  }
}

function read(delivery: InboundDelivery): ReadDelivery {
  const payload = readPayload(delivery);
  const isIssue = requiredText(payload, "type") === "Issue";
  return deliveryOf(deliveryIdOf(delivery.headers["linear-delivery"]), isIssue ? happeningsOf(payload) : []);
}

function happeningsOf(payload: Payload): SourceHappening[] {
  const action = requiredText(payload, "action");
  if (action === "create") return [happening("issue.created", payload, null)];
  if (action !== "update") return [];
  const changes = changesOf(payload);
  if (changes.length === 0 && objectAt(payload, "updatedFrom") !== null) return [];
  // One change, whichever of its names a trigger lists: they share the key, so a trigger that lists both starts once.
  const names = changes.some(({ field }) => field === "stateId")
    ? ["issue.statusChanged", "issue.updated"]
    : ["issue.updated"];
  return names.map((name) => happening(name, payload, changes));
}

function happening(name: string, payload: Payload, changes: SourceEvent["changes"] | null): SourceHappening {
  const data = requiredObject(payload, "data");
  const id = requiredText(payload, "data", "id");
  const updatedAt = textAt(data, "updatedAt") ?? textAt(payload, "createdAt");
  const isUpdate = changes !== null && changes !== undefined;
  const event: SourceEvent = {
    name,
    source: "linear",
    actor: actorOf(payload),
    issue: issueOf(id, data, payload),
    ...(isUpdate && { changes }),
    payload,
  };
  const update = isUpdate && updatedAt !== null ? contentKey("linear", id, updatedAt, JSON.stringify(changes)) : null;
  return { event, contentKey: isUpdate ? update : contentKey("linear", id, "created"), subject: `linear:${id}` };
}

/**
 * Names in `updatedFrom` that are not about the issue: when it was changed, its places in lists, who follows it,
 * reactions. A commenter follows it from then on, so an answer would be an update, whose answer would be the next.
 */
const unsaid = new Set([
  "updatedAt",
  "sortOrder",
  "prioritySortOrder",
  "subIssueSortOrder",
  "boardOrder",
  "subscriberIds",
  "reactionData",
]);

/** The changes of an update: the names in `updatedFrom` have the values before it. */
function changesOf(payload: Payload): NonNullable<SourceEvent["changes"]> {
  const before = objectAt(payload, "updatedFrom") ?? {};
  return Object.keys(before)
    .filter((field) => !unsaid.has(field) && field.length <= longestField)
    .slice(0, mostChanges)
    .map((field) => ({ field, from: valueAt(before, field), to: valueAt(payload, "data", field) }));
}

/** A value as text: a list or an object, such as the labels' ids, as JSON; null if there is none. */
function valueAt(value: unknown, ...path: readonly string[]): string | null {
  const found = at(value, ...path);
  return found === undefined || found === null
    ? null
    : prose(typeof found === "string" ? found : JSON.stringify(found));
}

function issueOf(id: string, data: Payload, payload: Payload): NonNullable<SourceEvent["issue"]> {
  const project = objectAt(data, "project");
  const team = objectAt(data, "team");
  return {
    id,
    key: textAt(data, "identifier"),
    title: textAt(data, "title") ?? "",
    description: proseAt(data, "description"),
    url: linkAt(payload, "url") ?? linkAt(data, "url"),
    status: textAt(data, "state", "name"),
    priority: textAt(data, "priorityLabel"),
    labels: listAt(data, "labels").flatMap((label) => textAt(label, "name") ?? []),
    assignee: personOf(objectAt(data, "assignee")),
    author: personOf(objectAt(data, "creator")),
    project: {
      id: textAt(project, "id") ?? textAt(team, "id"),
      key: textAt(team, "key"),
      name: textAt(project, "name") ?? textAt(team, "name"),
    },
  };
}

function personOf(account: Payload | null): SourceAccount | null {
  const id = textAt(account, "id");
  return id === null ? null : { id, name: textAt(account, "name"), isBot: false };
}

/** An actor is a user, an OAuth client or an integration, as its `type` says. */
function actorOf(payload: Payload): SourceAccount | null {
  const actor = objectAt(payload, "actor");
  const id = textAt(actor, "id");
  if (id === null) return null;
  const type = textAt(actor, "type");
  return {
    id,
    name: textAt(actor, "name") ?? textAt(actor, "service"),
    isBot: type !== null && type.toLowerCase() !== "user",
  };
}
