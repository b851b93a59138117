import type { FastifyReply, FastifyRequest } from "fastify";
import { z } from "zod";
import type { Database } from "../../database/database.ts";
import { pageSchema, pageQuerySchema } from "../../domain/fields/list.ts";
import { auditEntrySchema, outcomeOf, type NewAuditEntry } from "../../domain/people/audit.ts";
import { auditOutcomes } from "../../domain/people/audit-outcome.ts";
import type { Logger } from "../../observability.ts";
import { appendAudit, listAudit } from "../../store/requests/audit.ts";
import { organizationOf } from "../http/auth.ts";
import type { ApiOptions, App } from "../http/context.ts";
import { answers } from "../http/shapes.ts";

/**
 * Entries are collected for this many milliseconds and written together, so that a trigger does not wait for its
 * entry.
 */
const gatherMs = 50;
const gatherMost = 500;

/** Writes the audit log of requests. */
export interface Audit {
  /**
   * Call this before the answer is sent. Entries of admin operations and sign-ins are written before it returns,
   * others, deliveries among them, shortly afterwards.
   */
  note(request: FastifyRequest, reply: FastifyReply, body: unknown): Promise<void>;
  /** Writes the entries that are still in memory. */
  close(): Promise<void>;
}

/** Makes an audit log of every request that changes something, and of every rejected request. */
export function createAudit(database: Database, logger: Logger): Audit {
  let pending: NewAuditEntry[] = [];
  let timer: NodeJS.Timeout | null = null;
  let written: Promise<void> = Promise.resolve();
  let next: Promise<void> | null = null;

  async function write(): Promise<void> {
    next = null;
    const entries = pending;
    pending = [];
    await appendAudit(database, entries).catch((error: unknown) =>
      logger.error({ err: error, entries }, "could not write the audit log"),
    );
  }

  /** Entries that come while others are being written are written together after them. */
  function flush(): Promise<void> {
    if (timer !== null) clearTimeout(timer);
    timer = null;
    return (next ??= written = written.then(write));
  }

  return {
    async note(request, reply, body) {
      const { operation } = request.routeOptions.config;
      if (operation === undefined) return;
      const isChange = request.method !== "GET" && request.method !== "HEAD" && operation.passesOn !== true;
      const changes = operation.changes === true || isChange;
      if (!changes && outcomeOf(reply.statusCode) !== "refused") return;
      pending.push(entryOf(request, reply.statusCode, body));
      const isAwaited = operation.scope === "admin" || (operation.scope === null && operation.delivers !== true);
      if (changes && isAwaited) await flush();
      else if (pending.length >= gatherMost) void flush();
      else timer ??= setTimeout(() => void flush(), gatherMs);
    },
    close: flush,
  };
}

function entryOf(request: FastifyRequest, status: number, body: unknown): NewAuditEntry {
  const { principal } = request;
  const action = request.routeOptions.schema?.operationId ?? `${request.method} ${request.routeOptions.url ?? ""}`;
  const target = targetOf(request, action, status < 400 ? body : null);
  return {
    organizationId: principal?.organizationId ?? null,
    // A reader by a share link is anonymous.
    actor:
      principal === null || principal.shareId !== undefined
        ? "nobody"
        : principal.keyId !== null
          ? "key"
          : principal.userId !== null
            ? "user"
            : "browser",
    keyId: principal?.keyId ?? null,
    userId: principal?.userId ?? null,
    action,
    target: target === null ? null : target.slice(0, 200).replaceAll("\0", "").toWellFormed(),
    status,
    address: request.ip,
    requestId: request.id,
  };
}

/**
 * The target of a request: the ids in its path, and of a created object, with a slash between them, such as a session
 * and one of its links.
 * @param answer its body; null: it was no success
 */
function targetOf(request: FastifyRequest, action: string, answer: unknown): string | null {
  const named = Object.values((request.params ?? {}) as Record<string, unknown>).filter(
    (value) => typeof value === "string",
  );
  const hasMade = typeof answer === "string" && (named.length === 0 || action.startsWith("create"));
  const made = hasMade ? /"id":"([0-9a-f-]{36})"/u.exec(answer)?.[1] : undefined;
  const all = made === undefined ? named : [...named, made];
  return all.length === 0 ? null : all.join("/");
}

/** Adds the operation that lists the audit log. */
export function addAuditOperations(app: App, { database }: Pick<ApiOptions, "database">): void {
  app.get(
    "/audit/list",
    {
      config: { operation: { scope: "admin" } },
      schema: {
        tags: ["Audit"],
        operationId: "listAudit",
        summary: "Who changed what, from where, and what was refused",
        querystring: pageQuerySchema.extend({
          action: z.string().max(100).optional(),
          outcome: z.enum(auditOutcomes).optional(),
        }),
        response: answers(pageSchema("entries", auditEntrySchema)),
      },
    },
    async (request) => {
      const { action, ...query } = request.query;
      const page = await listAudit(database, organizationOf(request), {
        ...query,
        action: action?.replaceAll("\0", ""),
      });
      return { entries: page.items, nextCursor: page.nextCursor };
    },
  );
}
