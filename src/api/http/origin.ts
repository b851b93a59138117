import type { FastifyRequest } from "fastify";
import { idOfCreated } from "./idempotency.ts";

/** A new object's fields from its request in addition to the body: its id, and the trace that it belongs to. */
export function requestOrigin(request: FastifyRequest): { readonly id: string; readonly traceParent: string | null } {
  return { id: idOfCreated(request), traceParent: request.span?.traceParent ?? null };
}
