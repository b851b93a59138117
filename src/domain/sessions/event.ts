import { z } from "zod";
import { modelProviderIds } from "../agents/model.ts";
import { failureCodes } from "../errors/errors.ts";
import { sessionStatuses } from "./status.ts";
import { stepNames } from "./step.ts";

const step = z.enum(stepNames);

/** Why a step or a session failed: see `Failure`. */
export const failureSchema = z.object({
  code: z.enum(failureCodes),
  reason: z.string(),
  /** Whether a person's retry may help. */
  retryable: z.boolean(),
  /** Whether it passes by itself: then Offstage tried again, without being asked. Absent if an older version stored it. */
  passing: z.boolean().optional(),
  remedy: z.string(),
});

/** The planned retry of a queued session that failed for a passing reason. */
export const retrySchema = z.object({
  /** When it is tried again. */
  at: z.iso.datetime(),
  reason: z.string(),
  code: z.enum(failureCodes),
  /** How many attempts have failed for this reason since the agent's last finished turn. */
  attempt: z.number().int(),
});
/** See `retrySchema`. */
export type Retry = z.infer<typeof retrySchema>;

/** Content of a tool call: text, or a file's text before and after the call. */
export const toolContentSchema = z.discriminatedUnion("type", [
  z.object({ type: z.literal("text"), text: z.string() }),
  z.object({ type: z.literal("diff"), path: z.string(), oldText: z.string().nullable(), newText: z.string() }),
]);

/** Data of each event type. */
const payloads = {
  "session.created": z.object({ title: z.string() }),
  "session.status": z.object({
    from: z.enum(sessionStatuses),
    to: z.enum(sessionStatuses),
    reason: z.string().optional(),
    failure: failureSchema.optional(),
    retry: retrySchema.optional(),
  }),
  notice: z.object({ level: z.enum(["info", "warning"]), text: z.string() }),
  "message.user": z.object({ messageId: z.string(), text: z.string(), from: z.string().nullable() }),
  /** It was taken back before a turn took it. */
  "message.withdrawn": z.object({ messageId: z.string() }),
  "step.started": z.object({ step, attempt: z.number().int() }),
  "step.progress": z.object({
    step,
    text: z.string(),
    /** Share done, 0 to 1; omitted if unknown. */
    fraction: z.number().min(0).max(1).optional(),
  }),
  "step.completed": z.object({ step, durationMs: z.number().int(), detail: z.string().optional() }),
  "step.failed": z.object({ step, durationMs: z.number().int(), failure: failureSchema }),
  /** Output of a repository's setup script, in chunks, in order. */
  "setup.output": z.object({
    repositoryId: z.string(),
    repository: z.string(),
    text: z.string(),
    state: z.enum(["running", "completed", "failed"]),
  }),
  /** How the script ended that decides whether an automation's run goes on. */
  "gate.decided": z.object({
    outcome: z.enum(["passed", "filtered", "failed"]),
    /** Exit code; null if the script did not end by itself. */
    code: z.number().int().nullable(),
    /** Its output for the agent. */
    output: z.string(),
    /** The end of what it printed on stderr. */
    log: z.string(),
  }),
  "agent.started": z.object({
    provider: z.string(),
    model: z.string().nullable(),
    resumed: z.boolean(),
  }),
  /** Text of one message arrives in chunks: those with the same `part` belong together, in order. */
  "agent.message": z.object({ part: z.string(), text: z.string() }),
  "agent.thought": z.object({ part: z.string(), text: z.string() }),
  /** The whole state of a tool call so far: a later event with the same id replaces it. */
  "agent.tool": z.object({
    toolCallId: z.string(),
    title: z.string(),
    kind: z.string(),
    status: z.enum(["pending", "in_progress", "completed", "failed"]),
    locations: z.array(z.object({ path: z.string(), line: z.number().int().optional() })),
    content: z.array(toolContentSchema),
    input: z.string().optional(),
  }),
  "agent.plan": z.object({
    entries: z.array(z.object({ text: z.string(), status: z.enum(["pending", "in_progress", "completed"]) })),
  }),
  "agent.usage": z.object({
    inputTokens: z.number().int().optional(),
    outputTokens: z.number().int().optional(),
    totalTokens: z.number().int().optional(),
    contextUsed: z.number().int().optional(),
    contextSize: z.number().int().optional(),
  }),
  "agent.permission": z.object({ title: z.string(), decision: z.enum(["allowed", "denied"]), option: z.string() }),
  /** Tokens of one request to a model, as the provider counts them in its answer and the gateway reads them. */
  "model.usage": z.object({
    provider: z.enum(modelProviderIds),
    model: z.string().nullable(),
    inputTokens: z.number().int(),
    outputTokens: z.number().int(),
    cacheReadTokens: z.number().int(),
    cacheWriteTokens: z.number().int(),
    reasoningTokens: z.number().int(),
    /** US dollars by the table of prices; null if the table does not have the model. */
    costUsd: z.number().nullable().optional(),
  }),
  /** Samples of the resource usage in the agent's sandbox. */
  "sandbox.usage": z.object({
    memoryBytes: z.number().int(),
    /** Null: there is no limit. */
    memoryLimitBytes: z.number().int().nullable(),
    /** Processor cores that they kept busy since the time before, on average. */
    cores: z.number(),
  }),
  /**
   * The sandbox asked for a host that it may not reach, or used a connection to an allowed host for something else: the
   * connection named another host, named none or hid its name, or its protocol names no host.
   */
  "egress.refused": z.object({
    host: z.string(),
    port: z.number().int(),
    reason: z.enum(["not allowed", "private address", "other name", "no name", "other protocol"]),
    /** The host that the connection named instead. */
    named: z.string().optional(),
  }),
  "agent.turn": z.object({ stopReason: z.string(), durationMs: z.number().int() }),
  "workspace.commit": z.object({
    repositoryId: z.string(),
    sha: z.string(),
    subject: z.string(),
    by: z.enum(["agent", "offstage"]),
  }),
  "branch.pushed": z.object({ repositoryId: z.string(), branch: z.string(), sha: z.string() }),
  "pullRequest.opened": z.object({
    repositoryId: z.string(),
    number: z.number().int(),
    url: z.string(),
    /** False if the pull request was already open. */
    created: z.boolean(),
  }),
  "pullRequest.closed": z.object({
    repositoryId: z.string(),
    number: z.number().int(),
    url: z.string(),
    state: z.enum(["merged", "closed"]),
  }),
  /** An open pull request collides with its target branch. */
  "pullRequest.conflicted": z.object({ repositoryId: z.string(), number: z.number().int(), url: z.string() }),
} as const;

type Payloads = typeof payloads;
/** Name of an event type, such as `step.started`. */
export type EventType = keyof Payloads;

/** An event before the database assigns its number and time. */
export type NewEvent = { [T in EventType]: { readonly type: T; readonly data: z.infer<Payloads[T]> } }[EventType];
/**
 * Something that happened to a session: one tagged union with the same shape in the database, on the stream and in the
 * web app.
 * `seq` counts from 1 without a gap within a session, in the order of commits. The oldest events may have been deleted
 * because of their age or size (`eventsRemovedThrough` of the session).
 */
export type SessionEvent = NewEvent & { readonly seq: number; readonly createdAt: string };

const envelope = { seq: z.number().int(), createdAt: z.iso.datetime() };

/** Schema of a session's event. */
export const sessionEventSchema = z.discriminatedUnion(
  "type",
  (Object.keys(payloads) as EventType[]).map((type) =>
    z.object({ ...envelope, type: z.literal(type), data: payloads[type] }),
  ) as never,
) as unknown as z.ZodType<SessionEvent>;

/** Answer of a session's event list. */
export const eventPageSchema = z.object({
  events: z.array(sessionEventSchema),
  /** Pass as `after` to get the next page; null if this page ends at the newest event. */
  nextCursor: z.string().nullable(),
});
/** See `eventPageSchema`. */
export type EventPage = z.infer<typeof eventPageSchema>;
