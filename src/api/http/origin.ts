import type { FastifyRequest } from "fastify";
import { idOfCreated } from "./idempotency.ts";

/** What a creation takes from its request beside the body: the id of what it makes, and the trace that it is part of. */
export function originOf(request: FastifyRequest): { readonly id: string; readonly traceParent: string | null } {
  return { id: idOfCreated(request), traceParent: request.span?.traceParent ?? null };
}
