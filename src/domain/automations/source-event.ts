import { z } from "zod";

/** Services whose deliveries triggers of type `source` read, in addition to forges. */
export const sourceNames = ["sentry", "linear", "jira", "slack", "pagerduty", "cloudEvents"] as const;
/** See `sourceNames`. */
export type SourceName = (typeof sourceNames)[number];

/** The events of each source: the names that a trigger's `events` may list. Null: any, since the sender makes them. */
export const sourceEventNames = {
  sentry: ["issue.created", "issue.regressed", "alert.triggered"],
  linear: ["issue.created", "issue.updated", "issue.statusChanged"],
  jira: ["issue.created", "issue.assigned", "issue.statusChanged", "issue.labeled", "issue.moved"],
  slack: ["message.posted", "message.postedByBot", "mention"],
  pagerduty: [
    "incident.triggered",
    "incident.acknowledged",
    "incident.unacknowledged",
    "incident.escalated",
    "incident.delegated",
    "incident.reassigned",
    "incident.priorityUpdated",
    "incident.reopened",
    "incident.resolved",
    "incident.annotated",
    "incident.statusUpdatePublished",
  ],
  cloudEvents: null,
} as const satisfies Record<SourceName, readonly string[] | null>;

/** Length of the longest `type` of a CloudEvent, and so of an event's name, in UTF-16 units. */
export const longestEventName = 255;

/** Whether a trigger on a source may list this name in its `events`. */
export function isSourceEventName(source: SourceName, name: string): boolean {
  const names: readonly string[] | null = sourceEventNames[source];
  return names === null ? name !== "" && name.length <= longestEventName : names.includes(name);
}

const text = z.string();
/** A person or a program at a source. */
const account = z.object({
  /** The source's stable id of it. */
  id: text,
  name: text.nullable().describe("null if the source tells only the id, as Slack does"),
  isBot: z.boolean(),
});
/** See `account`. */
export type SourceAccount = z.infer<typeof account>;

const issue = z.object({
  id: text,
  key: text.nullable().describe("what people call it, such as ENG-42"),
  title: text,
  description: text,
  url: text.nullable(),
  status: text.nullable().describe("its name at the source, such as In Progress"),
  priority: text.nullable(),
  labels: z.array(text),
  assignee: account.nullable(),
  author: account.nullable(),
  project: z.object({ id: text.nullable(), key: text.nullable(), name: text.nullable() }).nullable(),
});

const message = z.object({
  id: text.describe("Slack's ts: unique in the channel"),
  text: text.describe("as people read it: names of links and channels in the place of Slack's markup"),
  channel: text,
  channelType: text.nullable().describe("channel, group (private), im or mpim"),
  threadId: text.describe("the id of the thread's first message: its own, if it is in no thread"),
  isReply: z.boolean().describe("whether it was written in a thread"),
  isShared: z.boolean().describe("whether people of other companies are in the channel (Slack Connect)"),
  team: text.nullable(),
  user: account.nullable(),
});

const incident = z.object({
  id: text,
  number: z.number().nullable(),
  title: text,
  url: text.nullable(),
  status: text.nullable(),
  urgency: text.nullable(),
  priority: text.nullable(),
  service: z.object({ id: text.nullable(), name: text.nullable(), url: text.nullable() }).nullable(),
  assignees: z.array(account),
  note: text.nullable().describe("of incident.annotated and incident.statusUpdatePublished: what was written"),
});

const cloudEvent = z.object({
  id: text,
  source: text,
  type: text,
  subject: text.nullable(),
  time: text.nullable(),
  dataContentType: text.nullable(),
  dataSchema: text.nullable(),
  extensions: z.record(text, text),
  data: z.unknown().describe("a JSON value, or the text; bytes that are no text are base64, as `dataIsBase64` says"),
  dataIsBase64: z.boolean(),
});

/**
 * An event of a source as conditions and templates see it. Fields that an event is not about are absent; a field that the sender
 * left out is null, or the empty text. `payload` is the delivery as it was sent: of a batch, the one event; without credentials.
 */
export const sourceEventSchema = z.object({
  name: text,
  source: z.enum(sourceNames),
  /** The actor; null if the source does not name one. */
  actor: account.nullable(),
  issue: issue.optional(),
  /** The changes of an update, named as the source names them. Values are its texts or ids; null: none. */
  changes: z.array(z.object({ field: text, from: text.nullable(), to: text.nullable() })).optional(),
  /** Of Sentry's `alert.triggered`. */
  alert: z.object({ rule: text.nullable(), eventId: text.nullable(), url: text.nullable() }).optional(),
  message: message.optional(),
  incident: incident.optional(),
  cloudEvent: cloudEvent.optional(),
  payload: z.record(z.string(), z.unknown()),
});
/** See `sourceEventSchema`. */
export type SourceEvent = z.infer<typeof sourceEventSchema>;
