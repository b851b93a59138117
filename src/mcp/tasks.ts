import {
  CLIENT_CAPABILITIES_META_KEY,
  type ClientCapabilities,
  MissingRequiredClientCapabilityError,
  ProtocolError,
  ProtocolErrorCode,
  type CallToolResult,
  type Result,
  type ServerContext,
} from "@modelcontextprotocol/server";
import { z } from "zod";
import { ClientError } from "../client.ts";
import type { SessionDetail } from "../domain/sessions/session.ts";
import { isFinal } from "../domain/sessions/status.ts";
import { bounded, factsAnswer } from "./answer.ts";
import { briefSession } from "./brief-session.ts";
import type { McpParts } from "./parts.ts";

/**
 * The extension for long calls (https://github.com/modelcontextprotocol/ext-tasks), which belongs to revision
 * 2026-07-28: instead of its result, a call is answered with a task, which the client asks for now and then. Here a
 * task is a session, so it outlives any node and any client, and each API node knows it. A session that gets a message
 * after its end runs again, and so does its task.
 */
export const tasksExtension = "io.modelcontextprotocol/tasks";

/** How often a client should ask, in ms. */
const pollIntervalMs = 5_000;

/** Whether the client takes a task as the answer. */
export function mayBeTask({ mcpReq }: ServerContext): boolean {
  const capabilities = (mcpReq.envelope as Record<string, unknown> | undefined)?.[CLIENT_CAPABILITIES_META_KEY];
  return (capabilities as ClientCapabilities | undefined)?.extensions?.[tasksExtension] !== undefined;
}

/** A task as the extension has it, without its result. */
function taskOf(session: SessionDetail) {
  const { waiting, retry } = session;
  return {
    taskId: session.id,
    statusMessage: bounded(waiting?.text ?? retry?.reason ?? `${session.status}: ${session.title}`, 1_000),
    createdAt: session.createdAt,
    lastUpdatedAt: session.updatedAt,
    ttlMs: null,
    pollIntervalMs,
  };
}

/** The answer to a call that is a task from now on. */
export function taskAnswer(session: SessionDetail): CallToolResult {
  return { resultType: "task", status: "working", ...taskOf(session), content: [] };
}

/** A task with all that is known of it: once its session has ended, the answer that the call would have given. */
function wholeTask(session: SessionDetail): Result {
  const task = taskOf(session);
  if (session.status === "cancelled") return { ...task, status: "cancelled" };
  if (!isFinal(session.status)) return { ...task, status: "working" };
  const result = factsAnswer(briefSession(session, { withSummary: true }));
  return {
    ...task,
    status: "completed",
    result: { resultType: "complete", ...result, isError: session.status === "failed" },
  };
}

/** Adds the methods of the tasks extension. */
export function addTasks({ server: { server }, client }: McpParts): void {
  const params = z.looseObject({ taskId: z.uuid("is no task's id") });
  server.setRequestHandler("tasks/get", { params }, ({ taskId }, context) =>
    ofTask(context, async () => wholeTask(await client.session.get(taskId))),
  );
  server.setRequestHandler("tasks/cancel", { params }, ({ taskId }, context) =>
    ofTask(context, async () => {
      await client.session.cancel(taskId);
      return {};
    }),
  );
  // No task of ours asks for anything, and answers to nothing are ignored.
  server.setRequestHandler("tasks/update", { params }, ({ taskId }, context) =>
    ofTask(context, async () => {
      await client.session.get(taskId);
      return {};
    }),
  );
}

async function ofTask(context: ServerContext, work: () => Promise<Result>): Promise<Result> {
  if (!mayBeTask(context)) {
    throw new MissingRequiredClientCapabilityError({ requiredCapabilities: { extensions: { [tasksExtension]: {} } } });
  }
  try {
    return await work();
  } catch (error) {
    if (error instanceof ClientError) throw new ProtocolError(ProtocolErrorCode.InvalidParams, bounded(error.message));
    throw error;
  }
}
