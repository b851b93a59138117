import { randomUUID } from "node:crypto";
import { STATUS_CODES, type IncomingMessage, type ServerResponse } from "node:http";
import type { Socket } from "node:net";
import type { FastifyError, FastifyReply, FastifyRequest } from "fastify";
import { hasZodFastifySchemaValidationErrors } from "fastify-type-provider-zod";
import { z } from "zod";
import { ConflictError, OffstageError, TooManyRequestsError, UnavailableError } from "../../domain/errors/errors.ts";
import { problemOf } from "../../domain/errors/problem.ts";

/** The body of every error. */
export const errorSchema = z.object({ error: z.string() }).meta({ id: "Error" });

/** The request's Host header names another host. */
export class MisdirectedError extends OffstageError {
  readonly code = "misdirected";
}

/** The path exists, but not with this method. */
export class MethodNotAllowedError extends OffstageError {
  readonly code = "method_not_allowed";
  /** The path's methods, separated by commas, for the Allow header. */
  readonly allow: string;

  constructor(message: string, allow: string) {
    super(message);
    this.allow = allow;
  }
}

/** HTTP statuses by the codes of errors; any other code is an internal error. */
const statuses: Readonly<Record<string, number>> = {
  invalid_input: 400,
  unauthenticated: 401,
  forbidden: 403,
  not_found: 404,
  method_not_allowed: 405,
  conflict: 409,
  misdirected: 421,
  too_many_requests: 429,
  unavailable: 503,
};

/**
 * Turns an error into an answer. All errors of operations pass here. Headers carry what a client evaluates in
 * addition to the sentence.
 */
export function sendError(error: FastifyError, request: FastifyRequest, reply: FastifyReply): void {
  const { status, sentence } = answerOf(error);
  if (status >= 500) request.log.error({ err: error }, "request failed with an unexpected error");
  const retryAfterMs =
    error instanceof ConflictError || error instanceof UnavailableError || error instanceof TooManyRequestsError
      ? error.retryAfterMs
      : undefined;
  if (retryAfterMs !== undefined) void reply.header("Retry-After", String(Math.ceil(retryAfterMs / 1_000)));
  if (error instanceof MethodNotAllowedError) void reply.header("Allow", error.allow);
  if (status === 401 && !reply.hasHeader("WWW-Authenticate")) void reply.header("WWW-Authenticate", "Bearer");
  void reply
    .status(status)
    .type("application/json; charset=utf-8")
    .serializer(JSON.stringify)
    .send({ error: sentence });
}

function answerOf(error: FastifyError): { status: number; sentence: string } {
  if (error instanceof OffstageError) return { status: statuses[error.code] ?? 500, sentence: error.message };
  if (hasZodFastifySchemaValidationErrors(error)) return { status: 400, sentence: sentenceOf(error) };
  switch (error.code) {
    case "FST_ERR_CTP_BODY_TOO_LARGE":
      return { status: 413, sentence: "the body is larger than 1 MiB: send less" };
    case "FST_ERR_CTP_INVALID_JSON_BODY":
    case "FST_ERR_CTP_INVALID_CONTENT_LENGTH":
      return { status: 400, sentence: "the body must be valid JSON" };
    case "FST_ERR_CTP_INVALID_MEDIA_TYPE":
      return { status: 415, sentence: "the Content-Type header can't be read: send application/json" };
    case "FST_ERR_BAD_URL":
      return {
        status: 400,
        sentence: "the path has a % that does not begin an escape sequence: write %25 for a percent sign",
      };
    case "ERR_ENCODING_INVALID_ENCODED_DATA":
      return { status: 400, sentence: "the body must be UTF-8" };
    default:
  }
  if (error instanceof SyntaxError) return { status: 400, sentence: "the body must be valid JSON" };
  if (error.statusCode !== undefined && error.statusCode < 500)
    return { status: error.statusCode, sentence: error.message };
  return {
    status: 500,
    sentence: "internal error; the server's log has the reason under this X-Request-Id",
  };
}

const unreadable: Readonly<Record<string, { readonly status: number; readonly sentence: string }>> = {
  ERR_HTTP_REQUEST_TIMEOUT: { status: 408, sentence: "the request did not arrive in time: send it again" },
  HPE_HEADER_OVERFLOW: { status: 431, sentence: "the headers are larger than 16 KiB: send less" },
};

/**
 * Answers what is not a valid HTTP request directly on its connection, in the same format as other errors, because
 * Fastify creates no request for it.
 */
export function answerUnreadable(error: NodeJS.ErrnoException, socket: Socket): void {
  if (error.code === "ECONNRESET" || !socket.writable) return;
  const { status, sentence } = unreadable[error.code ?? ""] ?? {
    status: 400,
    sentence: "the request can't be read as HTTP: see its first line, Content-Length and Transfer-Encoding",
  };
  const body = JSON.stringify({ error: sentence });
  socket.end(
    [
      `HTTP/1.1 ${status} ${STATUS_CODES[status]}`,
      "Connection: close",
      "Content-Type: application/json; charset=utf-8",
      `Content-Length: ${Buffer.byteLength(body)}`,
      `X-Request-Id: ${randomUUID()}`,
      "",
      body,
    ].join("\r\n"),
  );
}

/** Answers a request that expects what the server does not know; `100-continue` is known. */
export function refuseExpectation(_request: IncomingMessage, response: ServerResponse): void {
  const body = JSON.stringify({ error: "the Expect header must be 100-continue: send the request without it" });
  response.writeHead(417, {
    Connection: "close",
    "Content-Type": "application/json; charset=utf-8",
    "Content-Length": Buffer.byteLength(body),
    "X-Request-Id": randomUUID(),
  });
  response.end(body);
}

/** Describes the first problem as one sentence: the field, what is wrong and so how to fix it. */
function sentenceOf(
  error: FastifyError & {
    validation: readonly {
      instancePath: string;
      keyword: string;
      params: Record<string, unknown>;
      message?: string | undefined;
    }[];
  },
): string {
  const [issue] = error.validation;
  const field = (issue?.instancePath ?? "").replace(/^\//u, "").replaceAll("/", ".");
  const message =
    issue === undefined
      ? "is not valid"
      : problemOf({ ...issue.params, code: issue.keyword, message: issue.message } as z.core.$ZodIssue);
  if (field === "" && error.validationContext === "body" && issue?.keyword === "invalid_type")
    return "the body must be a JSON object";
  const where =
    field === ""
      ? error.validationContext === "querystring"
        ? "the query"
        : `the ${error.validationContext ?? "body"}`
      : field;
  return /^(?:must|is|or|has) /u.test(message) ? `${where} ${message}` : `${where}: ${message}`;
}
