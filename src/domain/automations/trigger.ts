import { z } from "zod";
import { optionalText, text } from "../fields/text.ts";
import { isUuid } from "../fields/uuid.ts";
import { repositoryPatternSchema } from "../repositories/repository-pattern.ts";
import { forgeEventNames } from "./forge-event.ts";
import { isAboutPullRequest, isAboutSubject } from "./event-subject.ts";
import { isSourceEventName, sourceNames } from "./source-event.ts";
import { cronProblem, isTimeZone } from "./schedule.ts";

/** Kinds of triggers. */
export const triggerTypes = ["api", "schedule", "webhook", "forge", "source"] as const;
/** See `triggerTypes`. */
export type TriggerType = (typeof triggerTypes)[number];

/** The behaviour of a second run of the same key while one is under way: none, wait, or replace it. */
export const concurrencyPolicies = ["skip", "queue", "cancelOlder"] as const;

/** Events of Offstage itself, which triggers of type `forge` may list in addition to those of forges. */
export const ownEventNames = [
  "session.completed",
  "session.failed",
  "session.waiting",
  "pullRequest.openedByOffstage",
  "pullRequest.conflicted",
] as const;

/** An automation has at most so many triggers: what saves, shows and decides about them takes a moment of the server, and not minutes. */
export const mostTriggers = 1_000;
/**
 * Runs that an automation starts about one issue, incident or thread of a source, or one issue of a forge: what a run does may change the
 * issue, which is the next event, and whoever seems to have changed it need not be a bot.
 */
export const mostRunsOfSubject = 50;
/** Runs of which each started the next by an event of Offstage, by a webhook of it, or by what a forge tells of its work. */
export const longestChain = 5;
/** Characters of a condition. */
const longestCondition = 2_000;
/** Time for which a secret that was replaced still counts, in ms: senders need a moment to take the new one. */
export const oldSecretMs = 24 * 60 * 60_000;

const conditionSchema = optionalText(longestCondition).meta({
  description: "CEL over `event`, `trigger` and `repository`; empty: always.",
});

const shared = {
  enabled: z.boolean(),
  condition: conditionSchema,
  concurrency: z
    .object({
      key: text(500).meta({ description: "CEL that gives a string: runs with the same one do not run at once." }),
      policy: z.enum(concurrencyPolicies),
    })
    .nullable(),
  debounceSeconds: z
    .int()
    .min(1)
    .max(86_400)
    .nullable()
    .meta({ description: "Waits until so long nothing came, at most ten times as long; the newest runs." }),
  maxPerHour: z.int().min(1).max(10_000).nullable().meta({ description: "Runs that it may start within an hour." }),
};

const optional = {
  enabled: shared.enabled.default(true),
  condition: shared.condition.default(""),
  concurrency: shared.concurrency.default(null),
  debounceSeconds: shared.debounceSeconds.default(null),
  maxPerHour: shared.maxPerHour.default(null),
};

const headerName = z
  .string()
  .toLowerCase()
  .regex(/^[a-z0-9-]{1,100}$/u, "must be a header's name");
const verifySchema = z.discriminatedUnion("type", [
  z.object({ type: z.literal("none") }),
  z.object({
    type: z.literal("hmac"),
    header: headerName,
    algorithm: z.enum(["sha256", "sha1", "sha512"]).default("sha256"),
    encoding: z.enum(["hex", "base64"]).default("hex"),
    prefix: optionalText(50).default(""),
  }),
  z.object({ type: z.literal("standardWebhooks") }),
]);
/** How a webhook's deliveries are signed. */
export type Verification = z.infer<typeof verifySchema>;

const cron = z
  .string()
  .max(200)
  .superRefine((given, context) => {
    const message = cronProblem(given);
    if (message !== null) context.addIssue({ code: "custom", message });
  });
const timeZone = z.string().max(100).refine(isTimeZone, "must be a name of the IANA time zone database");
const connectionId = z.string().toLowerCase().refine(isUuid, "must be a connection's id").nullable();
const events = z.array(z.enum([...forgeEventNames, ...ownEventNames])).min(1, "must name an event");
const repositories = z.array(repositoryPatternSchema).max(100);
const sourceEvents = z.array(text(200)).max(50);
const secret = text(1_000).meta({ description: "The sender's own; omitted: one is made, and shown once." });

/** Forms of the tokens of services that take answers back, and what to say of others. */
const replyTokens: Readonly<Partial<Record<string, { readonly form: RegExp; readonly problem: string }>>> = {
  slack: { form: /^xoxb-[A-Za-z0-9-]{1,300}$/u, problem: "must be a bot token of Slack, which begins with xoxb-" },
  linear: {
    form: /^(?:lin_(?:api|oauth)_[A-Za-z0-9._-]{1,300}|[A-Za-z0-9._-]{20,300})$/u,
    problem: "must be an API key of Linear, which begins with lin_api_, or an OAuth token",
  },
};
const replyToken = optionalText(500).optional().meta({
  description:
    "Of slack and linear: with it the thread or issue gets a link at the start and the result at the end. Omitted: the one that it has; empty: none. Never shown.",
});

/** Where a run reports its result: nowhere on the forge, or at the issue or pull request that its event is about. */
const reply = z.enum(["none", "subject"]).meta({
  description: "subject: the result is a comment on the issue or pull request that the event is about. Default none.",
});
/**
 * Where a run's work goes: to a new branch with its own pull request, or to the branch of the pull request that its
 * event is about.
 */
const pushTo = z.enum(["newBranch", "pullRequest"]).meta({
  description:
    "pullRequest: the run goes on with the branch of the pull request that the event is about, if that is in the repository. Default newBranch.",
});
const answering = { reply: reply.default("none"), pushTo: pushTo.default("newBranch") };

/** By what a second delivery to a webhook is recognized. */
const deduplicateBy = z.enum(["idAndContent", "id"]).meta({
  description:
    "idAndContent: the sender's id of the delivery, and the same body within a minute. id: the id alone, for senders that repeat bodies on purpose. Default idAndContent.",
});

const settings = {
  schedule: { cron, timeZone: timeZone.default("UTC"), missed: z.enum(["runOnce", "skip"]).default("runOnce") },
  webhook: { verify: verifySchema.default({ type: "none" }), deduplicateBy: deduplicateBy.default("idAndContent") },
  forge: { connectionId: connectionId.default(null), events, repositories: repositories.default([]), ...answering },
  source: {
    source: z.enum(sourceNames),
    events: sourceEvents.default([]).meta({ description: "Empty: all." }),
  },
};

const id = z
  .uuid()
  .optional()
  .meta({ description: "Of a trigger that the automation has already; omitted: a new one." });

/** A trigger as create and update take it. */
export const triggerInputSchema = z.discriminatedUnion("type", [
  z.object({ type: z.literal("api"), id, ...optional }),
  z.object({ type: z.literal("schedule"), id, ...optional, ...settings.schedule }),
  z.object({ type: z.literal("webhook"), id, ...optional, ...settings.webhook, secret: secret.optional() }),
  z.object({ type: z.literal("forge"), id, ...optional, ...settings.forge }),
  z.object({ type: z.literal("source"), id, ...optional, ...settings.source, secret: secret.optional(), replyToken }),
]);
/** See `triggerInputSchema`. */
export type TriggerInput = z.infer<typeof triggerInputSchema>;

/**
 * A trigger as a file in a repository has it: without ids, without secrets, which must not be committed, and without
 * connections and repositories: it gets events of its own repository only.
 */
export const fileTriggerSchema = z.discriminatedUnion("type", [
  z.strictObject({ type: z.literal("api"), ...optional }),
  z.strictObject({ type: z.literal("schedule"), ...optional, ...settings.schedule }),
  z.strictObject({ type: z.literal("webhook"), ...optional, ...settings.webhook }),
  z.strictObject({ type: z.literal("forge"), ...optional, events, ...answering }),
  z.strictObject({ type: z.literal("source"), ...optional, ...settings.source }),
]);

/** The problem with a token for answers, as the end of a sentence; null: none. */
function replyTokenProblem({ source, replyToken: token }: Extract<TriggerInput, { type: "source" }>): string | null {
  if (token === undefined || token === "") return null;
  const expected = replyTokens[source];
  if (expected === undefined) return `must be absent: ${source} takes no answers back`;
  return expected.form.test(token) ? null : expected.problem;
}

/** The problem with a trigger's settings for answers and pushes, as a field and the end of a sentence; null: none. */
function answeringProblem(
  trigger: Extract<TriggerInput, { type: "forge" }>,
): { field: string; problem: string } | null {
  const isElsewhere = (isAbout: (name: string) => boolean) => trigger.events.find((name) => !isAbout(name));
  const unanswerable = trigger.reply === "subject" ? isElsewhere(isAboutSubject) : undefined;
  if (unanswerable !== undefined)
    return {
      field: "reply",
      problem: `can't be subject: ${unanswerable} is about no issue and no pull request of a forge; give that event a trigger of its own`,
    };
  const branchless = trigger.pushTo === "pullRequest" ? isElsewhere(isAboutPullRequest) : undefined;
  if (branchless === undefined) return null;
  const problem = `can't be pullRequest: ${branchless} is about no pull request of a forge; give that event a trigger of its own`;
  return { field: "pushTo", problem };
}

/** An automation's triggers as create and update take them: whole; triggers that are not in the list are removed. */
export const triggerListSchema = z
  .array(triggerInputSchema)
  .max(mostTriggers)
  .superRefine((list, context) => {
    for (const [index, trigger] of list.entries()) {
      if (trigger.type === "webhook" && trigger.verify.type === "standardWebhooks" && trigger.secret !== undefined) {
        const isKey = /^(?:whsec_)?[A-Za-z0-9+/]{16,}={0,2}$/u.test(trigger.secret);
        const message = "must be base64, with or without whsec_ before it, as Standard Webhooks has it";
        if (!isKey) context.addIssue({ code: "custom", path: [index, "secret"], message });
      }
      const wrong = trigger.type === "forge" ? answeringProblem(trigger) : null;
      if (wrong !== null) context.addIssue({ code: "custom", path: [index, wrong.field], message: wrong.problem });
      if (trigger.type !== "source") continue;
      const wrongToken = replyTokenProblem(trigger);
      if (wrongToken !== null) context.addIssue({ code: "custom", path: [index, "replyToken"], message: wrongToken });
      const unknown = trigger.events.find((name) => !isSourceEventName(trigger.source, name));
      if (unknown === undefined) continue;
      const message = `${trigger.source} has no event ${unknown}: see docs/sources.md`;
      context.addIssue({ code: "custom", path: [index, "events"], message });
    }
  })
  .refine((list) => list.filter(({ type }) => type === "api").length <= 1, "must have at most one of type api")
  .refine((list) => {
    const ids = list.flatMap((trigger) => trigger.id ?? []);
    return new Set(ids).size === ids.length;
  }, "must name each id once");

const shown = {
  id: z.uuid(),
  ...shared,
  problem: z.string().nullable().meta({ description: "Why its condition or its key could not be evaluated last." }),
};
const address = {
  url: z.string().meta({ description: "The address that its sender posts to." }),
  secret: z.string().optional().meta({ description: "Shown once, when it is made." }),
};

/** A trigger as the API shows it. */
export const triggerSchema = z.discriminatedUnion("type", [
  z.object({ type: z.literal("api"), ...shown }),
  z.object({
    type: z.literal("schedule"),
    ...shown,
    cron: z.string(),
    timeZone: z.string(),
    missed: z.enum(["runOnce", "skip"]),
    nextAt: z.iso.datetime().nullable().meta({ description: "Its next tick; null if it has none." }),
  }),
  z.object({
    type: z.literal("webhook"),
    ...shown,
    verify: verifySchema,
    /** Nodes of the version before don't say it. */
    deduplicateBy: settings.webhook.deduplicateBy,
    ...address,
  }),
  z.object({
    type: z.literal("forge"),
    ...shown,
    connectionId: z.uuid().nullable(),
    events: z.array(z.string()),
    repositories: z.array(z.string()),
    /** Nodes of the version before say neither. */
    ...answering,
  }),
  z.object({
    type: z.literal("source"),
    ...shown,
    source: settings.source.source,
    events: z.array(z.string()),
    hasReplyToken: z.boolean().meta({ description: "Whether answers go back to the thread or issue." }),
    ...address,
  }),
]);
/** See `triggerSchema`. */
export type Trigger = z.infer<typeof triggerSchema>;

/** Whether a trigger's deliveries are signed: those of sources are, those of webhooks unless their `verify` is of type `none`. */
export function isSigned(trigger: { readonly type: TriggerType; readonly verify?: Verification }): boolean {
  return trigger.type === "source" || (trigger.type === "webhook" && trigger.verify?.type !== "none");
}

/** The sender's own secret that a trigger was given; null: none. */
export function givenSecret(trigger: TriggerInput): string | null {
  return trigger.type === "webhook" || trigger.type === "source" ? (trigger.secret ?? null) : null;
}

/** Whether a secret is made for a new trigger, and shown once. */
export function makesSecret(trigger: TriggerInput): boolean {
  return isSigned(trigger) && givenSecret(trigger) === null;
}

/** Answer to a delivery. */
export const receivedSchema = z.object({
  outcome: z.enum(["accepted", "duplicate", "filtered"]),
  ledgerId: z.uuid().meta({ description: "The ledger's entry; of a duplicate, that of the first delivery." }),
});
/** See `receivedSchema`. */
export type Received = z.infer<typeof receivedSchema>;
