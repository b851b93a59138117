import { createHash } from "node:crypto";
import type { FastifyReply, FastifyRequest } from "fastify";
import { OffstageError, TooManyRequestsError } from "../../../domain/errors/errors.ts";
import { clientMetadataSchema } from "../../../domain/people/oauth-client.ts";
import { registerClient } from "../../../store/oauth/clients.ts";
import {
  accessSeconds,
  exchangeCode,
  exchangeRefreshToken,
  revokeToken,
  type IssuedTokens,
} from "../../../store/oauth/grants.ts";
import type { ApiOptions, App } from "../../http/context.ts";
import { createFailureLimit } from "../../http/failure-limit.ts";
import { resourceOf } from "../../http/hosts.ts";

/** Programs that one address may register per minute, and exchanges of it that may fail. */
const registrationsPerMinute = 20;
const failuresPerMinute = 60;

/** A request in OAuth's own form is refused: `error` is a code of RFC 6749 (section 5.2), RFC 7591 or RFC 8707. */
class OAuthProblem extends OffstageError {
  readonly code:
    | "invalid_request"
    | "invalid_grant"
    | "invalid_target"
    | "unsupported_grant_type"
    | "invalid_client_metadata";

  constructor(code: OAuthProblem["code"], description: string) {
    super(description);
    this.code = code;
  }
}

/**
 * Adds what programs themselves call: registration (RFC 7591), the token endpoint (OAuth 2.1) and revocation (RFC 7009). These take
 * forms, and answer errors in OAuth's form, with `error_description` as the sentence, because programs read the code in `error`.
 */
export async function addTokenEndpoints(app: App, options: ApiOptions): Promise<void> {
  const registrations = createFailureLimit(registrationsPerMinute);
  const failures = createFailureLimit(failuresPerMinute);
  await app.register((scope: App, _options, done) => {
    // The forms of these endpoints; JSON, whatever its type says, is the whole app's.
    scope.addContentTypeParser(
      "application/x-www-form-urlencoded",
      { parseAs: "string" },
      (_request: FastifyRequest, body: string | Buffer) =>
        Promise.resolve().then(() => fieldsOf(new URLSearchParams(String(body)))),
    );
    scope.setErrorHandler(sendOAuthError);
    const config = { operation: { scope: null } } as const;
    scope.post(
      "/oauth/register",
      { config, schema: { hide: true, operationId: "registerOAuthClient" } },
      (request, reply) => {
        registrations.check(request.ip);
        registrations.fail(request.ip);
        return register(options, request, reply);
      },
    );
    scope.post(
      "/oauth/token",
      { config, schema: { hide: true, operationId: "exchangeOAuthToken" } },
      async (request) => {
        failures.check(request.ip);
        const tokens = await exchange(options, fieldsIn(request));
        if (tokens !== null) return answerOf(tokens);
        failures.fail(request.ip);
        throw new OAuthProblem(
          "invalid_grant",
          "the code or refresh token is wrong, used, expired or revoked: ask the person again",
        );
      },
    );
    scope.post(
      "/oauth/revoke",
      { config, schema: { hide: true, operationId: "revokeOAuthToken" } },
      async (request) => {
        const { token, client_id: clientId } = fieldsIn(request);
        if (token === undefined || clientId === undefined)
          throw new OAuthProblem("invalid_request", "send token and client_id");
        await revokeToken(options.database, token, clientId);
        return {};
      },
    );
    done();
  });
}

type Fields = Readonly<Record<string, string | undefined>>;

/** @throws OAuthProblem if a field is repeated (RFC 6749, section 3.2) */
function fieldsOf(parameters: URLSearchParams): Fields {
  const fields = Object.fromEntries(parameters);
  if (Object.keys(fields).length === parameters.size) return fields;
  throw new OAuthProblem("invalid_request", "send each field once");
}

/**
 * The fields of a form; what came in another form has none.
 * @throws OAuthProblem if one has NUL, which PostgreSQL refuses
 */
function fieldsIn({ body }: FastifyRequest): Fields {
  const given = Object.entries((body ?? {}) as Record<string, unknown>);
  const fields = given.filter((entry): entry is [string, string] => typeof entry[1] === "string");
  const [wrong] = fields.find(([, value]) => value.includes("\0")) ?? [];
  if (wrong !== undefined) throw new OAuthProblem("invalid_request", `${wrong} must not contain NUL (U+0000)`);
  return Object.fromEntries(fields);
}

async function exchange(options: ApiOptions, fields: Fields): Promise<IssuedTokens | null> {
  const { database, signInDays } = options;
  const { grant_type: type, client_id: clientId, resource: identifier } = fields;
  if (clientId === undefined) throw new OAuthProblem("invalid_request", "send the client_id");
  const resource = identifier === undefined ? null : resourceOf(identifier, options.publicUrl(), options.hosts);
  if (identifier !== undefined && resource === null) {
    throw new OAuthProblem("invalid_target", "resource must be this server's address, or that of its MCP server");
  }
  if (type === "refresh_token") {
    const { refresh_token: refreshToken } = fields;
    if (refreshToken === undefined) throw new OAuthProblem("invalid_request", "send the refresh_token");
    return exchangeRefreshToken(database, { refreshToken, clientId, resource }, signInDays);
  }
  if (type !== "authorization_code") {
    throw new OAuthProblem("unsupported_grant_type", "grant_type must be authorization_code or refresh_token");
  }
  const { code, redirect_uri: redirectUri, code_verifier: verifier } = fields;
  if (code === undefined || redirectUri === undefined || verifier === undefined) {
    throw new OAuthProblem("invalid_request", "send code, redirect_uri and code_verifier");
  }
  const challenge = createHash("sha256").update(verifier).digest("base64url");
  return exchangeCode(database, { code, clientId, redirectUri, challenge, resource }, signInDays);
}

function answerOf({ accessToken, refreshToken, scopes }: IssuedTokens): Record<string, unknown> {
  return {
    access_token: accessToken,
    token_type: "Bearer",
    expires_in: accessSeconds,
    refresh_token: refreshToken,
    scope: scopes.join(" "),
  };
}

/** Every program is a public client: what it would be given as a secret, it could not keep. */
async function register(
  { database }: ApiOptions,
  { body }: FastifyRequest,
  reply: FastifyReply,
): Promise<FastifyReply> {
  const read = clientMetadataSchema.safeParse(body);
  if (!read.success) {
    const [issue] = read.error.issues;
    throw new OAuthProblem(
      "invalid_client_metadata",
      `${issue?.path.join(".") ?? "the body"} ${issue?.message ?? "is not valid"}`,
    );
  }
  const { client_name: name = "A program without a name", redirect_uris: redirectUris } = read.data;
  const client = await registerClient(database, { name, redirectUris });
  return reply.status(201).send({
    client_id: client.id,
    client_id_issued_at: Math.floor(client.createdAt.getTime() / 1_000),
    client_name: client.name,
    redirect_uris: client.redirectUris,
    grant_types: ["authorization_code", "refresh_token"],
    response_types: ["code"],
    token_endpoint_auth_method: "none",
  });
}

function sendOAuthError(error: Error, request: FastifyRequest, reply: FastifyReply): FastifyReply {
  const isBusy = error instanceof TooManyRequestsError;
  if (isBusy && error.retryAfterMs !== undefined)
    void reply.header("Retry-After", String(Math.ceil(error.retryAfterMs / 1_000)));
  if (error instanceof OAuthProblem)
    return reply.status(400).send({ error: error.code, error_description: error.message });
  if (isBusy) return reply.status(429).send({ error: "temporarily_unavailable", error_description: error.message });
  const { statusCode = 500 } = error as { statusCode?: number };
  if (statusCode < 500 || error instanceof SyntaxError) {
    return reply.status(400).send({ error: "invalid_request", error_description: "the body can't be read" });
  }
  request.log.error({ err: error }, "request failed with an unexpected error");
  return reply.status(500).send({
    error: "server_error",
    error_description: "internal error; the server's log has the reason under this X-Request-Id",
  });
}
