import { randomUUID } from "node:crypto";
import cookie from "@fastify/cookie";
import Fastify, { LogController, type FastifyInstance } from "fastify";
import { serializerCompiler, validatorCompiler } from "fastify-type-provider-zod";
import { InvalidInputError, UnavailableError } from "../domain/errors/errors.ts";
import { parseExactly } from "../domain/fields/exact-json.ts";
import { statusPaths } from "../metrics/status.ts";
import { noteDuplicate } from "../store/automations/ledger.ts";
import { addDocumentation } from "./documentation.ts";
import { createAdmission } from "./http/admission.ts";
import { authenticate, organizationOf, withoutKey } from "./http/auth.ts";
import type { ApiOptions, App } from "./http/context.ts";
import { answerUnreadable, refuseExpectation, sendError } from "./http/errors.ts";
import { createFailureLimit } from "./http/failure-limit.ts";
import { requireHost, requireKnownHost } from "./http/hosts.ts";
import { storeAnswer, answerAgainOrBegin } from "./http/idempotency.ts";
import { checkNesting } from "./http/json-value.ts";
import { createInnerCalls, type InnerCalls } from "./http/inner-calls.ts";
import { collectMethods, type Methods } from "./http/methods.ts";
import { observeRequests } from "./http/observe.ts";
import { createStreams } from "./http/server-sent-events.ts";
import { closeSilentConnections } from "./http/silent-connections.ts";
import { createRateLimit } from "./http/rate-limit.ts";
import { addAccountOperations } from "./operations/accounts.ts";
import { addAgentOperations } from "./operations/agents.ts";
import { addAnswerOperations } from "./operations/answers.ts";
import { addAuditOperations, createAudit } from "./operations/audit.ts";
import { addAutomationStateOperations } from "./operations/automations/automation-state.ts";
import { openAutomationTemplates } from "../automation-files/templates.ts";
import { compressedProblem } from "../inbound/compressed.ts";
import { addAutomationTemplateOperations } from "./operations/automations/automation-templates.ts";
import { addAutomationOperations } from "./operations/automations/automations.ts";
import { addConnectionOperations } from "./operations/connections.ts";
import { createEventStreams } from "./operations/event-stream.ts";
import { addHookOperations } from "./operations/automations/hooks.ts";
import { addGitHubAppOperations } from "./operations/github-app.ts";
import { addJobOperations } from "./operations/automations/jobs.ts";
import { addKeyOperations } from "./operations/keys.ts";
import { addLedgerOperations } from "./operations/automations/ledger.ts";
import { addLoginOperations } from "./operations/logins.ts";
import { addMcp } from "./operations/mcp.ts";
import { addAuthorizeOperations } from "./operations/oauth/authorize.ts";
import { addGrantOperations } from "./operations/oauth/grants.ts";
import { addOAuthMetadata } from "./operations/oauth/metadata.ts";
import { addTokenEndpoints } from "./operations/oauth/token.ts";
import { addInsightOperations } from "./operations/insight.ts";
import { addNoticeOperations } from "./operations/notices/notices.ts";
import { addReadMarkOperations } from "./operations/notices/read-marks.ts";
import { addSubscriptionOperations } from "./operations/notices/subscriptions.ts";
import { addOlderOperations } from "./operations/sessions/older-clients.ts";
import { addOrganizationOperations } from "./operations/organizations.ts";
import { addAutomationFileOperations } from "./operations/repositories/automation-files.ts";
import { addChoiceOperations } from "./operations/repositories/choices.ts";
import { addEgressOperations } from "./operations/repositories/egress.ts";
import { addEnvironmentOperations } from "./operations/repositories/environments.ts";
import { addFindingOperations } from "./operations/repositories/findings.ts";
import { addLimitOperations } from "./operations/repositories/limits.ts";
import { addRepositoryOperations } from "./operations/repositories/repositories.ts";
import { addSetupTrialOperation } from "./operations/repositories/setup-trials.ts";
import { addPreviewOperation } from "./operations/automations/preview.ts";
import { addRegistryOperations } from "./operations/registries.ts";
import { addSecretOperations } from "./operations/secrets.ts";
import { addDownloadOperations } from "./operations/sessions/downloads.ts";
import { createFileQuestions } from "./operations/sessions/file-questions.ts";
import { addFileOperations } from "./operations/sessions/files.ts";
import { addListStream } from "./operations/sessions/list-stream.ts";
import { addLabelOperations } from "./operations/sessions/labels.ts";
import { addMessageOperations } from "./operations/sessions/messages.ts";
import { addShareLinkOperations } from "./operations/sessions/share-links.ts";
import { createSessionChanges } from "./operations/sessions/session-changes.ts";
import { addSessionOperations } from "./operations/sessions/sessions.ts";
import { toSession } from "./operations/sessions/show.ts";
import { addSignInOperations } from "./operations/sign-in.ts";
import { addSystemOperations } from "./operations/system.ts";
import { addTriggerOperations } from "./operations/automations/triggers.ts";
import { addUserOperations } from "./operations/users.ts";
import { addDeliveryOperations, addWebhookOperations } from "./operations/webhooks.ts";
import { addStatus } from "./status.ts";
import { addWebApp, asksForPage } from "./web-app.ts";

/** Failed sign-ins from one address. */
const failuresPerMinute = 20;
/** Any host name may be used for these: probes and scrapers of a cluster use addresses. */
const clusterPaths: ReadonlySet<string> = new Set(statusPaths);
/** Browsers must not guess another content type, and must not send our URLs to other sites. */
const answerHeaders = { "X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer" };
const bodyLimit = 1024 * 1024;
/**
 * Node.js's default limit for headers. An id that is too long must be answered as not found, instead of by the
 * router.
 */
const longestPath = 16 * 1024;
/** Prefix that published clients put before every path. */
const olderPrefix = "/api/public-api";

/** Makes the HTTP server with all operations, their OpenAPI description and the web app. It does not listen yet. */
export async function createApp(options: ApiOptions): Promise<FastifyInstance> {
  const app = Fastify({
    loggerInstance: options.logger,
    logController: new LogController({ disableRequestLogging: true, requestIdLogLabel: "requestId" }),
    bodyLimit,
    // Errors of the router, before an operation is found.
    frameworkErrors: (error, request, reply) => {
      void reply.header("X-Request-Id", request.id).headers(answerHeaders);
      sendError(error, request, reply);
    },
    clientErrorHandler: answerUnreadable,
    // Node.js' own answer would have no body.
    http: { requireHostHeader: false },
    // Fastify's own answer would have another format than our errors: the hooks answer instead.
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
  app.server.on("checkExpectation", refuseExpectation);
  readBodies(app);
  const methods = collectMethods(app);
  await app.register(cookie);
  observeRequests(app, options);
  closeSilentConnections(app);
  const inner = createInnerCalls(app);
  const takeToken = createRateLimit(options.rateLimitPerMinute);
  addHooks(app, options, { methods, inner, takeToken });
  // Must come after the hooks and the request decorations, because they apply to these pages too.
  addDocumentation(app);

  const streams = createStreams(options);
  const events = await createEventStreams(options.database, streams);
  const changes = await createSessionChanges({ ...options, show: (record) => toSession(options, record) });
  const files = await createFileQuestions(options.database);
  app.addHook("preClose", async () => {
    streams.close();
    await Promise.all([events.close(), changes.close(), files.close()]);
  });
  addSessionOperations(app, options, events);
  addListStream(app, streams, changes);
  addLabelOperations(app, options);
  addMessageOperations(app, options);
  addShareLinkOperations(app, options);
  addDownloadOperations(app, options);
  addFileOperations(app, options, files);
  addAnswerOperations(app, options);
  addAutomationOperations(app, options);
  const automationTemplates = openAutomationTemplates();
  addPreviewOperation(app, { ...options, automationTemplates });
  addAutomationTemplateOperations(app, automationTemplates);
  addAutomationStateOperations(app, options);
  addTriggerOperations(app, options);
  await addHookOperations(app, options);
  addJobOperations(app, options);
  addLedgerOperations(app, options);
  addRepositoryOperations(app, options);
  addChoiceOperations(app, options);
  addSetupTrialOperation(app, options);
  addAutomationFileOperations(app, options);
  addEgressOperations(app, options);
  addEnvironmentOperations(app, options);
  addLimitOperations(app, options);
  addFindingOperations(app, options);
  addOrganizationOperations(app, options);
  addSecretOperations(app, options);
  addRegistryOperations(app, options);
  addConnectionOperations(app, options);
  addAccountOperations(app, options);
  addInsightOperations(app, options);
  addNoticeOperations(app, options);
  addSubscriptionOperations(app, options);
  addReadMarkOperations(app, options);
  addGitHubAppOperations(app, options);
  addKeyOperations(app, options);
  const failures = createFailureLimit(failuresPerMinute);
  addLoginOperations(app, options, failures);
  addSignInOperations(app, options, failures);
  addOAuthMetadata(app, options);
  addAuthorizeOperations(app, options);
  await addTokenEndpoints(app, options);
  addGrantOperations(app, options);
  addMcp(app, options, { inner, takeToken });
  addUserOperations(app, options);
  addAuditOperations(app, options);
  addWebhookOperations(app, options);
  addDeliveryOperations(app, options);
  addAgentOperations(app, options);
  addSystemOperations(app, options);
  addOlderOperations(app, options);
  addStatus(app, options);
  const sendPage = await addWebApp(app, options.webDirectory);
  app.setNotFoundHandler((request, reply) =>
    sendPage !== null && asksForPage(request) ? sendPage(reply.status(404)) : methods.refuse(request),
  );
  return app;
}

/**
 * Parses every body as JSON whatever its Content-Type says, because curl sends JSON as a form by default. An empty
 * body counts as none.
 */
function readBodies(app: App): void {
  app.removeAllContentTypeParsers();
  // Without `fatal`, invalid UTF-8 would be replaced silently.
  const utf8 = new TextDecoder("utf-8", { fatal: true });
  app.addContentTypeParser("*", { parseAs: "buffer" }, ({ headers, routeOptions }, body, done) => {
    if (body.length === 0) return done(null, undefined);
    const parse = routeOptions.config.operation?.hasEvent === true ? parseExactly : (JSON.parse as typeof parseExactly);
    try {
      const value = parse(utf8.decode(body as Buffer));
      checkNesting(value, "the body");
      done(null, value);
    } catch (error) {
      const compressed = error instanceof InvalidInputError ? null : compressedProblem(headers);
      done(compressed === null ? (error as Error) : new InvalidInputError(`the body ${compressed}`, { cause: error }));
    }
  });
}

/** State that hooks share with operations. */
interface Shared {
  readonly methods: Methods;
  readonly inner: InnerCalls;
  readonly takeToken: ReturnType<typeof createRateLimit>;
}

function addHooks(app: App, options: ApiOptions, { methods, inner, takeToken }: Shared): void {
  const { database } = options;
  const admit = createAdmission(options);
  const audit = createAudit(database, options.logger);
  let isClosing = false;
  app.addHook("preClose", (done) => {
    isClosing = true;
    done();
  });
  app.addHook("onClose", () => audit.close());
  app.decorateRequest("principal", null);
  app.decorateRequest("resource", "api");
  app.decorateRequest("idempotency", null);
  app.decorateRequest("duplicateOf", null);
  app.addHook("onRequest", async (request, reply) => {
    void reply.header("X-Request-Id", request.id).headers(answerHeaders);
    if (isClosing) throw new UnavailableError("the server is stopping: send the request again", 1);
    requireHost(request);
    const { operation } = request.routeOptions.config;
    if (!clusterPaths.has(request.routeOptions.url ?? ""))
      requireKnownHost(request, options.publicUrl(), options.hosts);
    methods.check(request);
    if (operation === undefined) return;
    void reply.header("Cache-Control", "no-store");
    const isInner = inner.isInner();
    if (isInner) request.resource = "mcp";
    request.principal = await authenticate(options, request, operation);
    // Requests of the MCP server's tools were counted when the tool was called.
    if (request.principal !== null && !isInner) takeToken(request.principal, reply);
  });
  app.addHook("preHandler", async (request, reply) => {
    const { operation } = request.routeOptions.config;
    if (operation?.creates === true) await answerAgainOrBegin(options, request, reply);
    if (operation?.ledger === true && reply.sent && request.duplicateOf !== null) {
      await noteDuplicate(database, organizationOf(request), request.duplicateOf);
    }
    // A request that was accepted before gets its answer again, even if the queue is full now.
    if (operation?.queues === true && !reply.sent) await admit(organizationOf(request));
  });
  app.addHook("onSend", async (request, reply, body) => {
    await storeAnswer(options, request, reply, body);
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
