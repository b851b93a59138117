import { createHash } from "node:crypto";
import type { FastifyReply, FastifyRequest } from "fastify";
import type { Database } from "../../database/database.ts";
import { ConflictError, InvalidInputError, UnavailableError } from "../../domain/errors/errors.ts";
import { newId } from "../../domain/fields/new-id.ts";
import { hasScope, type Principal } from "../../domain/people/key.ts";
import {
  abandonRequest,
  beginRequest,
  finishRequest,
  finishSealed,
  holdingRequest,
  openAnswer,
} from "../../store/requests/idempotency.ts";
import { hashOf } from "../../store/people/tokens.ts";
import type { Vault } from "../../store/secrets/vault.ts";
import { cookieName, principalOfRequest } from "./auth.ts";
import { pathOf } from "./methods.ts";

/**
 * Runs before the handler of a POST that creates something: a request that was answered before gets the same answer. Who lost the right to
 * ask meanwhile does not come as far as this. An answer with a secret is given again to nobody but who asked first.
 * @throws InvalidInputError if the key is malformed
 * @throws ConflictError if the key was used with another body, or the first request is still running
 */
export async function answerAgainOrBegin(
  { database, vault }: { readonly database: Database; readonly vault: Vault },
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<void> {
  const key = request.headers["idempotency-key"];
  if (key === undefined) return;
  if (typeof key !== "string" || !/^[\u0021-\u007e]{1,255}$/u.test(key)) {
    throw new InvalidInputError("Idempotency-Key must be 1 to 255 visible ASCII characters");
  }
  const principal = principalOfRequest(request);
  const { organizationId } = principal;
  const stored = storedKey(principal, key);
  const { secretBody = false, secretAnswer = false } = request.routeOptions.config.operation ?? {};
  const isSealed = secretAnswer === true || (secretAnswer !== false && secretAnswer(request.body));
  // A server that can't seal the answer does nothing at all.
  if (isSealed) await vault.keyring.keys();
  const content = JSON.stringify([pathOf(request), request.body ?? null, ...(isSealed ? [askerOf(request)] : [])]);
  const hash = secretBody ? await vault.hash(content) : createHash("sha256").update(content).digest();
  const known = await beginRequest(database, organizationId, stored, hash);
  switch (known.state) {
    case "new":
      request.idempotency = { ...known.held, isSealed };
      return;
    case "replay": {
      const body = typeof known.body === "string" ? known.body : await openAnswer(vault, known.body);
      request.duplicateOf = createdBy(known.status, body);
      await reply
        .status(known.status)
        .header("Idempotent-Replayed", "true")
        .type("application/json; charset=utf-8")
        .serializer((text: unknown) => String(text))
        .send(body);
      // If the client has gone, the answer was not sent: fail, so that the handler does not run again.
      if (!reply.sent) throw new ConflictError("the answer could not be given");
      return;
    }
    case "mismatch":
      throw new ConflictError(
        `Idempotency-Key was used for another request${isSealed ? ", or by somebody else, to whom alone the secret is shown" : ""}: choose a new one`,
      );
    case "inProgress":
      throw new ConflictError(
        "the first request with this Idempotency-Key is still running: send it again in a moment",
        1,
      );
  }
}

/**
 * The key under which a request is stored. All principals that may read share an organization's Idempotency-Keys, so
 * that a request can be repeated with another API key. A key that may not read has its own: otherwise it would get
 * the answers to other keys' requests, and they would get its rejections. The blank separates the parts
 * unambiguously, because an Idempotency-Key contains none.
 */
function storedKey(principal: Principal, key: string): string {
  return hasScope(principal, "read") ? key : `${principal.keyId} ${key}`;
}

/**
 * Who asks: a key, a person, or a program that a person lets act for them, each apart from the others. A browser that a link of no person
 * signed in is known by its cookie alone.
 */
function askerOf(request: FastifyRequest): readonly (string | null)[] {
  const { keyId, userId, grantId = null } = principalOfRequest(request);
  if ((keyId ?? userId ?? grantId) !== null) return [keyId, userId, grantId];
  return [null, null, null, hashOf(request.cookies[cookieName] ?? "").toString("base64url")];
}

function createdBy(status: number, body: string): string | null {
  const { id } = JSON.parse(body) as { id?: unknown };
  return status === 200 && typeof id === "string" ? id : null;
}

/** The id for what a request creates: a repeated request gets the same id, so that it creates nothing twice. */
export function idOfCreated(request: FastifyRequest): string {
  return request.idempotency?.createdId ?? newId();
}

/** The database by which a request makes a secret that its answer shows: no repetition of the request makes another meanwhile. */
export function databaseOfSecret(database: Database, { idempotency }: FastifyRequest): Database {
  return idempotency === null ? database : holdingRequest(database, idempotency);
}

/**
 * Runs before the answer is sent: stores it, unless a repeated request may succeed: the server failed, or the answer says
 * when to send the request again (Retry-After).
 * @throws UnavailableError if an answer with a secret can't be sealed: the error is answered instead, and another request makes another secret
 * @throws ConflictError if a repetition of the request makes the secret: the error is answered instead of this one, which does not count
 */
export async function storeAnswer(
  { database, vault }: { readonly database: Database; readonly vault: Vault },
  request: FastifyRequest,
  reply: FastifyReply,
  body: unknown,
): Promise<void> {
  if (request.idempotency === null) return;
  const held = request.idempotency;
  const maySucceed = reply.statusCode >= 500 || reply.hasHeader("retry-after");
  if (maySucceed || typeof body !== "string") await abandonRequest(database, held);
  else if (held.isSealed) await finishSealed(database, vault, held, reply.statusCode, body).catch(notKept);
  else await finishRequest(database, held, reply.statusCode, body);
}

/** What was asked for was done, so that the error must not say that it was refused, whatever failed. */
function notKept(cause: unknown): never {
  if (cause instanceof ConflictError) throw cause;
  throw new UnavailableError("the answer, which has a secret, could not be kept: send the request again", 1, { cause });
}
