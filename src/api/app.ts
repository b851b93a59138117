import { randomUUID } from "node:crypto";
import cookie from "@fastify/cookie";
import Fastify, { LogController, type FastifyInstance } from "fastify";
import { serializerCompiler, validatorCompiler } from "fastify-type-provider-zod";
import { UnavailableError } from "../domain/errors.ts";
import { noteDuplicate } from "../store/ledger.ts";
import { addAgentOperations } from "./agents.ts";
import { createAdmission } from "./admission.ts";
import { authenticate, principalOfRequest, withoutKey } from "./auth.ts";
import { addAuditOperations, createAudit } from "./audit.ts";
import { addAutomationOperations } from "./automations.ts";
import type { ApiOptions, App } from "./context.ts";
import { addDocumentation } from "./documentation.ts";
import { addEgressOperations } from "./egress.ts";
import { addEnvironmentOperations } from "./environments.ts";
import { answerUnreadable, sendError } from "./errors.ts";
import { createEventStreams } from "./event-stream.ts";
import { createFailureLimit } from "./failure-limit.ts";
import { requireKnownHost } from "./hosts.ts";
import { keepAnswer, replayOrBegin } from "./idempotency.ts";
import { checkNesting } from "./json-value.ts";
import { addJobOperations } from "./jobs.ts";
import { addKeyOperations } from "./keys.ts";
import { addLedgerOperations } from "./ledger.ts";
import { addFindingOperations } from "./findings.ts";
import { addLimitOperations } from "./limits.ts";
import { addLoginOperations } from "./logins.ts";
import { addMetrics, metricsPath } from "./metrics.ts";
import { noteMethods, type Methods } from "./methods.ts";
import { observeRequests } from "./observe.ts";
import { addOlderOperations } from "./older-clients.ts";
import { addOrganizationOperations } from "./organizations.ts";
import { createRateLimit } from "./rate-limit.ts";
import { addRepositoryOperations } from "./repositories.ts";
import { addSecretOperations } from "./secrets.ts";
import { addSessionOperations } from "./sessions.ts";
import { addSignInOperations } from "./sign-in.ts";
import { addUserOperations } from "./users.ts";
import { addWebApp, asksForPage } from "./web-app.ts";
import { addDeliveryOperations, addWebhookOperations } from "./webhooks.ts";

/** Failed sign-ins from one address. */
const failuresPerMinute = 20;
/** Asked for by whatever name a cluster gives; who may read the metrics is settled there. */
const clusterPaths: ReadonlySet<string> = new Set(["/healthz", "/readyz", metricsPath]);
/** No answer is taken for another type than it says, and none tells another site where it was. */
const answerHeaders = { "X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer" };
const bodyLimit = 1024 * 1024;
/** As long as Node takes headers to be: what is too long for an id is not found. */
const longestPath = 16 * 1024;
/** Published clients put this before every path. */
const olderPrefix = "/api/public-api";

/** The HTTP server: every operation, its description, and the web app. It does not listen yet. */
export async function createApp(options: ApiOptions): Promise<FastifyInstance> {
  const app = Fastify({
    loggerInstance: options.logger,
    logController: new LogController({ disableRequestLogging: true, requestIdLogLabel: "requestId" }),
    bodyLimit,
    // What the router refuses before any operation is found.
    frameworkErrors: (error, request, reply) => {
      void reply.header("X-Request-Id", request.id).headers(answerHeaders);
      sendError(error, request, reply);
    },
    clientErrorHandler: answerUnreadable,
    // It would answer in a form of its own: see the hooks.
    return503OnClosing: false,
    genReqId: () => randomUUID(),
    requestIdHeader: false,
    trustProxy: [...options.trustedProxies],
    rewriteUrl: ({ url = "/" }) => (url.startsWith(`${olderPrefix}/`) ? url.slice(olderPrefix.length) : url),
    routerOptions: { ignoreTrailingSlash: true, maxParamLength: longestPath },
  }) as unknown as App;
  app.setValidatorCompiler(validatorCompiler);
  app.setSerializerCompiler(serializerCompiler);
  app.setErrorHandler(sendError);
  readBodies(app);
  const methods = noteMethods(app);
  await app.register(cookie);
  observeRequests(app, options);
  addHooks(app, options, methods);
  // After the hooks and what they put on a request: its pages go through them too.
  await addDocumentation(app);

  const streams = await createEventStreams(options);
  app.addHook("preClose", () => streams.close());
  addSessionOperations(app, options, streams);
  addAutomationOperations(app, options);
  addJobOperations(app, options);
  addLedgerOperations(app, options);
  addRepositoryOperations(app, options);
  addEgressOperations(app, options);
  addEnvironmentOperations(app, options);
  addLimitOperations(app, options);
  addFindingOperations(app, options);
  addOrganizationOperations(app, options);
  addSecretOperations(app, options);
  addKeyOperations(app, options);
  const failures = createFailureLimit(failuresPerMinute);
  addLoginOperations(app, options, failures);
  addSignInOperations(app, options, failures);
  addUserOperations(app, options);
  addAuditOperations(app, options);
  addWebhookOperations(app, options);
  addDeliveryOperations(app, options);
  addAgentOperations(app, options);
  addOlderOperations(app, options);
  addHealth(app, options);
  addMetrics(app, options);
  const sendPage = await addWebApp(app, options.webDirectory);
  app.setNotFoundHandler((request, reply) =>
    sendPage !== null && asksForPage(request) ? sendPage(reply.status(404)) : methods.refuse(request),
  );
  return app;
}

/** All bodies are JSON, whatever their type says: curl's default says that JSON is a form. An empty one is no body. */
function readBodies(app: App): void {
  app.removeAllContentTypeParsers();
  // Bytes that are no UTF-8 would become others without a word.
  const utf8 = new TextDecoder("utf-8", { fatal: true });
  app.addContentTypeParser("*", { parseAs: "buffer" }, (_request, body, done) => {
    if (body.length === 0) return done(null, undefined);
    try {
      const value: unknown = JSON.parse(utf8.decode(body as Buffer));
      checkNesting(value, "the body");
      done(null, value);
    } catch (error) {
      done(error as Error);
    }
  });
}

function addHooks(app: App, options: ApiOptions, methods: Methods): void {
  const { database } = options;
  const takeToken = createRateLimit(options.rateLimitPerMinute);
  const admit = createAdmission(options);
  const audit = createAudit(database, options.logger);
  let isClosing = false;
  app.addHook("preClose", (done) => {
    isClosing = true;
    done();
  });
  app.addHook("onClose", () => audit.close());
  app.decorateRequest("principal", null);
  app.decorateRequest("idempotency", null);
  app.decorateRequest("duplicateOf", null);
  app.addHook("onRequest", async (request, reply) => {
    void reply.header("X-Request-Id", request.id).headers(answerHeaders);
    if (isClosing) throw new UnavailableError("the server is stopping: send the request again", 1);
    const { operation } = request.routeOptions.config;
    if (!clusterPaths.has(request.routeOptions.url ?? ""))
      requireKnownHost(request, options.publicUrl(), options.hosts);
    methods.check(request);
    if (operation === undefined) return;
    void reply.header("Cache-Control", "no-store");
    request.principal = await authenticate(options, request, operation);
    if (request.principal !== null) takeToken(request.principal, reply);
  });
  app.addHook("preHandler", async (request, reply) => {
    const { operation } = request.routeOptions.config;
    if (operation?.creates === true) await replayOrBegin(options, request, reply);
    if (operation?.ledger === true && reply.sent && request.duplicateOf !== null) {
      await noteDuplicate(database, principalOfRequest(request).organizationId, request.duplicateOf);
    }
    // What was taken before is answered again, however full it is by now.
    if (operation?.queues === true && !reply.sent) await admit(principalOfRequest(request).organizationId);
  });
  app.addHook("onSend", async (request, reply, body) => {
    await keepAnswer(database, request, reply, body);
    await audit.note(request, reply, body);
    return body;
  });
  app.addHook("onResponse", (request, reply, done) => {
    const { method, span, url } = request;
    const ms = Math.round(reply.elapsedTime);
    const trace = span === null ? {} : { traceId: span.traceId };
    request.log.info({ method, url: withoutKey(url), status: reply.statusCode, ms, ...trace }, "request");
    done();
  });
}

function addHealth(app: App, { ready }: ApiOptions): void {
  app.get("/healthz", { schema: { hide: true } }, () => ({ status: "ok" }));
  app.get("/readyz", { schema: { hide: true } }, async (_request, reply) => {
    const isReady = await ready().catch(() => false);
    return reply
      .status(isReady ? 200 : 503)
      .send(isReady ? { status: "ready" } : { error: "the database does not answer" });
  });
}
