import type { z } from "zod";
import type * as answerSchemas from "./client-schemas.ts";
import type { Sent } from "./client-stream.ts";
import { OffstageError } from "./domain/errors/errors.ts";
import type { createAutomationSchema, EventContext, updateAutomationSchema } from "./domain/automations/automation.ts";
import type { previewDraftSchema } from "./domain/automations/preview.ts";
import type { LedgerOutcome } from "./domain/automations/ledger-outcome.ts";
import type { createRegistrySchema } from "./domain/environments/registry.ts";
import type { createSecretSchema, updateSecretSchema } from "./domain/environments/secret.ts";
import type { createAccountSchema, updateAccountSchema } from "./domain/people/account.ts";
import type { insightQuerySchema } from "./domain/insight/insight.ts";
import type { createSubscriptionSchema, updateNoticeSettingsSchema } from "./domain/notices/notice.ts";
import type { createKeySchema } from "./domain/people/key.ts";
import type { UpdateOrganization } from "./domain/people/organization.ts";
import type { updateStateSchema } from "./domain/automations/state.ts";
import type { inviteAgainSchema, InviteUser } from "./domain/people/invitation.ts";
import type { updateUserSchema } from "./domain/people/user.ts";
import type { createConnectionSchema, updateConnectionSchema } from "./domain/repositories/connection.ts";
import type { AttentionReason } from "./domain/sessions/attention.ts";
import type { SessionEvent } from "./domain/sessions/event.ts";
import type { changeLabelsSchema } from "./domain/sessions/labels.ts";
import type { createSessionSchema, SessionDetail } from "./domain/sessions/session.ts";
import type { createShareSchema } from "./domain/sessions/share.ts";
import type { SessionStatus } from "./domain/sessions/status.ts";
import type { createWebhookSchema, Delivery, updateWebhookSchema } from "./domain/webhooks/webhook.ts";

/** The server answered with an error; `message` is its sentence, `status` the HTTP status. */
export class ClientError extends OffstageError {
  readonly code = "refused";
  readonly status: number;

  constructor(status: number, message: string, options?: ErrorOptions) {
    super(message, options);
    this.status = status;
  }
}

/** How the client reaches the server. */
export interface ClientOptions {
  /** The server's address without a trailing slash; "" in a page of the server itself. */
  readonly baseUrl: string;
  /** An API key; without one a signed-in browser's cookie is used. */
  readonly key?: string;
  /** Sends requests; by default the global `fetch`. */
  readonly fetch?: typeof fetch;
  /** Loads the forms of answers, during the first request; by default `client-schemas.ts`. */
  readonly schemas?: () => Promise<AnswerSchemas>;
}

/** The form of each answer, by name. */
export type AnswerSchemas = typeof answerSchemas;

/** Parameters of a list. `cursor` is the `nextCursor` of the previous page. */
export interface PageOf {
  readonly limit?: number;
  readonly cursor?: string | undefined;
}

/** Parameters of a list of sessions. */
export interface SessionPageOf extends PageOf {
  /** Any of these. */
  readonly status?: SessionStatus | readonly SessionStatus[] | undefined;
  readonly automationId?: string | undefined;
  readonly repositoryId?: string | undefined;
  /** Id of a user or key; `me`: the caller. */
  readonly requestedBy?: string | undefined;
  /** All of these. */
  readonly label?: string | readonly string[] | undefined;
  /** Default false in a list, and all in a search. */
  readonly archived?: "true" | "false" | "all" | undefined;
  /** Why they need a person: any of these. */
  readonly attention?: AttentionReason | "any" | readonly AttentionReason[] | undefined;
  /** Only those that are unread for the caller. */
  readonly unread?: "true" | undefined;
}

/** Options of a call that creates something. */
export interface CreateOptions {
  /** The same key with the same body within 24 hours gives the first answer again, instead of creating something twice. */
  readonly idempotencyKey?: string | undefined;
}

/** Options of `streamEvents`. */
export interface StreamOptions {
  /** Number of the last known event; default 0, which streams all events. */
  readonly after?: number;
  readonly signal?: AbortSignal;
  /** Called when the connection is made and when it is lost. */
  readonly onConnection?: (connected: boolean) => void;
}

/** The API's client. */
export type Client = ReturnType<typeof createClient>;

/**
 * Makes a client of the API with typed calls, for the command line and the web app. Each call throws ClientError if
 * the server rejects it or its answer does not have the expected format.
 */
export function createClient({
  baseUrl,
  key,
  fetch: send = (...request) => fetch(...request),
  schemas = () => import("./client-schemas.ts"),
}: ClientOptions) {
  const headers: Record<string, string> = key === undefined ? {} : { Authorization: `Bearer ${key}` };

  async function call<Name extends keyof AnswerSchemas>(
    name: Name,
    path: string,
    body?: unknown,
    { idempotencyKey }: CreateOptions = {},
  ): Promise<z.output<AnswerSchemas[Name]>> {
    const loading = schemas();
    // If the request fails too, its error counts.
    loading.catch(() => undefined);
    const response = await send(`${baseUrl}${path}`, {
      headers:
        body === undefined
          ? headers
          : {
              ...headers,
              "Content-Type": "application/json",
              ...(idempotencyKey !== undefined && { "Idempotency-Key": idempotencyKey }),
            },
      ...(body !== undefined && { method: "POST", body: JSON.stringify(body) }),
    });
    if (!response.ok) throw await refusal(response);
    const { [name]: schema } = await loading;
    const read = schema.safeParse(await response.json().catch(nullIfNoJson));
    if (read.success) return read.data as z.output<AnswerSchemas[Name]>;
    throw strange(response, read.error);
  }

  /** An answer that is a file, which is never a page. */
  async function text(path: string): Promise<string> {
    const response = await send(`${baseUrl}${path}`, { headers });
    if (!response.ok) throw await refusal(response);
    if (response.headers.get("Content-Type")?.startsWith("text/html") === true) throw strange(response);
    return response.text();
  }

  function strange({ status }: Response, cause?: Error): ClientError {
    const server = baseUrl === "" ? "the server" : baseUrl;
    const words = `${server} did not answer like this version of Offstage: check the address and the server's version`;
    return new ClientError(status, words, { cause });
  }

  return {
    /** An operation that has no method below, by the name of its answer's form. */
    call,
    session: {
      create: (body: z.input<typeof createSessionSchema>, options?: CreateOptions) =>
        call("sessionSchema", "/session/create", body, options),
      list: (page: SessionPageOf = {}) => call("sessionsPage", `/session/list${query({ ...page })}`),
      search: (q: string, page: SessionPageOf = {}) => call("sessionsPage", `/session/search${query({ q, ...page })}`),
      get: (id: string) => call("sessionDetailSchema", `/session/${id}`),
      answers: (id: string, page: PageOf = {}) =>
        call("answersPage", `/session/${id}/answer/list${query({ ...page })}`),
      /** Makes a link that shows the session; its address is in this answer alone. */
      share: (id: string, body: z.input<typeof createShareSchema> = {}) =>
        call("createdShareSchema", `/session/${id}/share/create`, body),
      shares: (id: string, page: PageOf = {}) => call("sharesPage", `/session/${id}/share/list${query({ ...page })}`),
      revokeShare: (id: string, shareId: string) => call("shareSchema", `/session/${id}/share/${shareId}/revoke`, {}),
      queue: (id: string) => call("sessionDetailSchema", `/session/${id}/queue`, {}),
      cancel: (id: string) => call("sessionDetailSchema", `/session/${id}/cancel`, {}),
      delete: (id: string) => call("emptySchema", `/session/${id}/delete`, {}),
      setBudget: (id: string, body: { budgetUsd: number | null }) =>
        call("sessionDetailSchema", `/session/${id}/budget`, body),
      resolveConflicts: (id: string) => call("sessionDetailSchema", `/session/${id}/resolve-conflicts`, {}),
      message: (id: string, body: { message: string }, options?: CreateOptions) =>
        call("sessionDetailSchema", `/session/${id}/message`, body, options),
      messages: (id: string, page: PageOf = {}) =>
        call("messagesPage", `/session/${id}/message/list${query({ ...page })}`),
      withdraw: (id: string, messageId: string) =>
        call("sessionDetailSchema", `/session/${id}/message/${messageId}/withdraw`, {}),
      labels: (id: string, body: z.input<typeof changeLabelsSchema>) =>
        call("sessionDetailSchema", `/session/${id}/labels`, body),
      /** Counts the caller's own ended sessions that are unread. */
      unread: () => call("unreadSchema", "/session/unread"),
      markRead: (id: string) => call("emptySchema", `/session/${id}/read`, {}),
      markAllRead: () => call("emptySchema", "/session/read-all", {}),
      archive: (id: string) => call("sessionDetailSchema", `/session/${id}/archive`, {}),
      unarchive: (id: string) => call("sessionDetailSchema", `/session/${id}/unarchive`, {}),
      /** A text for `git apply`. @param repositoryId omitted: of all repositories, each in its folder */
      patch: (id: string, repositoryId?: string) => text(`/session/${id}/patch${query({ repositoryId })}`),
      transcript: (id: string, format: "markdown" | "json" = "markdown") =>
        text(`/session/${id}/transcript${query({ format })}`),
      events: (id: string, page: { after?: string; limit?: number } = {}) =>
        call("eventPageSchema", `/session/${id}/events${query(page)}`),
      diff: (id: string) => call("sessionDiffSchema", `/session/${id}/diff`),
    },
    label: {
      list: (page: PageOf & { readonly prefix?: string | undefined } = {}) =>
        call("labelPageSchema", `/label/list${query({ ...page })}`),
    },
    automation: {
      create: (body: z.input<typeof createAutomationSchema>) => call("automationSchema", "/automation/create", body),
      list: (page: PageOf = {}) => call("automationsPage", `/automation/list${query({ ...page })}`),
      get: (keyOrId: string) => call("automationSchema", `/automation/${keyOrId}`),
      update: (keyOrId: string, body: z.input<typeof updateAutomationSchema>) =>
        call("automationSchema", `/automation/${keyOrId}/update`, body),
      delete: (keyOrId: string) => call("automationSchema", `/automation/${keyOrId}/delete`, {}),
      /** The answer contains the secret, if the trigger has one, only this once; so do those of `create` and `update`. */
      rotateTrigger: (keyOrId: string, triggerId: string) =>
        call("triggerSchema", `/automation/${keyOrId}/trigger/${triggerId}/rotate`, {}),
      /** The prompt that this event would produce. */
      preview: (keyOrId: string, event: EventContext) =>
        call("automationPreviewSchema", `/automation/${keyOrId}/preview`, { event }),
      /** Previews an event with a draft or a saved automation: the prompt, and each trigger's decision. */
      previewDraft: (body: z.input<typeof previewDraftSchema>) => call("previewSchema", "/automation/preview", body),
      templates: () => call("automationTemplatesSchema", "/automation/template/list"),
      trigger: (keyOrId: string, event: EventContext, options?: CreateOptions) =>
        call("queuedJobSchema", `/automation/${keyOrId}/trigger`, event, options),
      state: (keyOrId: string) => call("stateSchema", `/automation/${keyOrId}/state`),
      updateState: (keyOrId: string, body: z.input<typeof updateStateSchema>) =>
        call("stateSchema", `/automation/${keyOrId}/state/update`, body),
      runs: (keyOrId: string, page: PageOf = {}) =>
        call("runsPage", `/automation/${keyOrId}/runs${query({ ...page })}`),
    },
    organization: {
      get: () => call("organizationSchema", "/organization"),
      update: (body: UpdateOrganization) => call("organizationSchema", "/organization/update", body),
    },
    key: {
      /** The answer contains the key itself, only this once. */
      create: (body: z.input<typeof createKeySchema>) => call("createdKeySchema", "/key/create", body),
      list: (page: PageOf = {}) => call("keysPage", `/key/list${query({ ...page })}`),
      revoke: (id: string) => call("keySchema", `/key/${id}/revoke`, {}),
    },
    secret: {
      create: (body: z.input<typeof createSecretSchema>) => call("secretSchema", "/secret/create", body),
      list: (page: PageOf = {}) => call("secretsPage", `/secret/list${query({ ...page })}`),
      update: (id: string, body: z.input<typeof updateSecretSchema>) =>
        call("secretSchema", `/secret/${id}/update`, body),
      delete: (id: string) => call("secretSchema", `/secret/${id}/delete`, {}),
    },
    registry: {
      create: (body: z.input<typeof createRegistrySchema>) => call("registrySchema", "/registry/create", body),
      list: (page: PageOf = {}) => call("registriesPage", `/registry/list${query({ ...page })}`),
      delete: (id: string) => call("registrySchema", `/registry/${id}/delete`, {}),
    },
    connection: {
      /** The answers of this and of `rotateSecret` contain the webhook's secret, only this once. */
      create: (body: z.input<typeof createConnectionSchema>) =>
        call("connectionWithSecretSchema", "/connection/create", body),
      /** Begins to register a GitHub App: this browser goes on at `formUrl`. */
      startGitHubApp: (body: { name?: string; webUrl?: string; account?: string }) =>
        call("githubAppFormSchema", "/connection/github-app/start", body),
      list: (page: PageOf = {}) => call("connectionsPage", `/connection/list${query({ ...page })}`),
      update: (id: string, body: z.input<typeof updateConnectionSchema>) =>
        call("connectionSchema", `/connection/${id}/update`, body),
      check: (id: string) => call("connectionSchema", `/connection/${id}/check`, {}),
      /** @param webhookSecret the forge's own; omitted: one is made */
      rotateSecret: (id: string, webhookSecret?: string) =>
        call("connectionWithSecretSchema", `/connection/${id}/rotate-secret`, { webhookSecret }),
      delete: (id: string) => call("deletedConnectionSchema", `/connection/${id}/delete`, {}),
    },
    account: {
      create: (body: z.input<typeof createAccountSchema>) => call("accountSchema", "/account/create", body),
      list: (page: PageOf = {}) => call("accountsPage", `/account/list${query({ ...page })}`),
      update: (id: string, body: z.input<typeof updateAccountSchema>) =>
        call("accountSchema", `/account/${id}/update`, body),
      check: (id: string) => call("accountSchema", `/account/${id}/check`, {}),
      delete: (id: string) => call("accountSchema", `/account/${id}/delete`, {}),
    },
    notices: {
      settings: () => call("noticeSettingsSchema", "/notice/settings"),
      update: (body: z.input<typeof updateNoticeSettingsSchema>) =>
        call("noticeSettingsSchema", "/notice/settings/update", body),
      test: () => call("testedNoticesSchema", "/notice/test", {}),
      subscribe: (body: z.input<typeof createSubscriptionSchema>) =>
        call("subscriptionSchema", "/subscription/create", body),
      subscriptions: (page: PageOf = {}) => call("subscriptionsPage", `/subscription/list${query({ ...page })}`),
      unsubscribe: (id: string) => call("subscriptionSchema", `/subscription/${id}/delete`, {}),
    },
    audit: {
      list: (page: PageOf & { readonly outcome?: string | undefined } = {}) =>
        call("auditPage", `/audit/list${query({ ...page })}`),
    },
    /** Figures of the organization's sessions. */
    insight: {
      figures: (asked: z.input<typeof insightQuerySchema> = {}) =>
        call("insightSchema", `/insight/figures${query({ ...asked })}`),
      csv: (asked: z.input<typeof insightQuerySchema> = {}) => text(`/insight/csv${query({ ...asked })}`),
      /** The address at which a signed-in browser downloads that as a file. */
      csvAddress: (asked: z.input<typeof insightQuerySchema> = {}) => `${baseUrl}/insight/csv${query({ ...asked })}`,
    },
    job: {
      get: (id: string) => call("jobSchema", `/job/${id}`),
      /** Cancels the run: its job, or all of its sessions that have not ended. */
      cancel: (id: string) => call("jobSchema", `/job/${id}/cancel`, {}),
    },
    agent: { list: () => call("agentListSchema", "/agent/list") },
    /** The caller, and their scopes. */
    me: () => call("meSchema", "/me"),
    repository: {
      /** Allows the sandboxes of the repository's sessions to reach a host, written `<host>:<port>`. */
      allow: (id: string, host: string) => call("egressSchema", `/repository/${id}/allow`, { host }),
      list: (page: PageOf = {}) => call("repositoriesPage", `/repository/list${query({ ...page })}`),
      /** Repositories that the organization's forges show, connected or not. */
      search: (q: string) => call("offeredRepositoriesSchema", `/repository/search${query({ q })}`),
      branches: (url: string, q = "") => call("offeredBranchesSchema", `/repository/branches${query({ url, q })}`),
      files: (url: string, branch: string, q = "") =>
        call("offeredFilesSchema", `/repository/files${query({ url, branch, q })}`),
      trySetup: (id: string, body: { branch?: string } = {}) =>
        call("sessionSchema", `/repository/${id}/try-setup`, body),
    },
    system: {
      health: () => call("systemHealthSchema", "/system/health"),
    },
    user: {
      list: (page: PageOf = {}) => call("usersPage", `/user/list${query({ ...page })}`),
      update: (id: string, body: z.input<typeof updateUserSchema>) => call("userSchema", `/user/${id}/update`, body),
      erase: (id: string) => call("userSchema", `/user/${id}/erase`, {}),
      /** The answers of this and of `inviteAgain` have the link, only this once. */
      invite: (body: InviteUser) => call("invitationSchema", "/user/invite", body),
      inviteAgain: (id: string, body: z.input<typeof inviteAgainSchema> = {}) =>
        call("invitationSchema", `/user/${id}/invite`, body),
    },
    ledger: {
      list: (page: PageOf & { readonly automationId?: string; readonly outcome?: LedgerOutcome } = {}) =>
        call("ledgerPage", `/ledger/list${query({ ...page })}`),
      get: (id: string) => call("ledgerEntrySchema", `/ledger/${id}`),
      /** A repeated trigger is a new job; an event that is decided again is a new entry. */
      replay: (id: string) => call("replayedSchema", `/ledger/${id}/replay`, {}),
    },
    webhook: {
      /** The answers of this and of `rotate` contain the secret, only this once. */
      create: (body: z.input<typeof createWebhookSchema>) => call("createdWebhookSchema", "/webhook/create", body),
      list: (page: PageOf = {}) => call("webhooksPage", `/webhook/list${query({ ...page })}`),
      get: (id: string) => call("webhookSchema", `/webhook/${id}`),
      update: (id: string, body: z.input<typeof updateWebhookSchema>) =>
        call("webhookSchema", `/webhook/${id}/update`, body),
      rotate: (id: string) => call("createdWebhookSchema", `/webhook/${id}/rotate`, {}),
      delete: (id: string) => call("webhookSchema", `/webhook/${id}/delete`, {}),
      test: (id: string) => call("deliveryDetailSchema", `/webhook/${id}/test`, {}),
    },
    delivery: {
      list: (page: PageOf & { readonly webhookId?: string; readonly status?: Delivery["status"] } = {}) =>
        call("deliveriesPage", `/delivery/list${query({ ...page })}`),
      get: (id: string) => call("deliveryDetailSchema", `/delivery/${id}`),
      resend: (id: string) => call("deliveryDetailSchema", `/delivery/${id}/resend`, {}),
    },
    /** Programs that people let act for them. */
    grant: {
      list: (page: PageOf = {}) => call("grantsPage", `/grant/list${query({ ...page })}`),
      revoke: (id: string) => call("grantSchema", `/grant/${id}/revoke`, {}),
    },
    /** A program's request to the signed-in person. */
    oauthRequest: {
      get: (id: string) => call("consentSchema", `/oauth/request/${id}`),
      /** The browser goes on at `redirectUrl`. */
      decide: (id: string, body: { allow: boolean }) => call("redirectSchema", `/oauth/request/${id}/decide`, body),
    },
    login: {
      methods: () => call("signInMethods", "/login/methods"),
      create: (body: { token: string } | { key: string }) => call("signedInSchema", "/login/create", body),
      delete: () => call("emptySchema", "/login/delete", {}),
      list: (page: PageOf = {}) => call("loginsPage", `/login/list${query({ ...page })}`),
      revoke: (id: string) => call("loginSchema", `/login/${id}/revoke`, {}),
    },
    /** Changes of the list of sessions from now on. */
    streamSessions: (options: Omit<StreamOptions, "after"> = {}) =>
      streamSessions(`${baseUrl}/session/changes`, { headers, schemas, send, refusal, strange, ...options }),
    streamEvents: (id: string, options: StreamOptions = {}) =>
      streamEvents(`${baseUrl}/session/${id}/events`, { headers, schemas, send, refusal, strange, ...options }),
  };
}

function query(parameters: Record<string, string | number | readonly string[] | undefined>): string {
  const given = Object.entries(parameters).flatMap(([name, value]) =>
    [value ?? []].flat().map((each): [string, string] => [name, String(each)]),
  );
  return given.length === 0 ? "" : `?${new URLSearchParams(given).toString()}`;
}

/** A connection that was lost in the midst is no answer of another program. */
function nullIfNoJson(error: unknown): null {
  if (error instanceof SyntaxError) return null;
  throw error;
}

async function refusal(response: Response): Promise<ClientError> {
  const body: unknown = await response.json().catch(() => null);
  const { error } = (body ?? {}) as { readonly error?: unknown };
  return new ClientError(response.status, typeof error === "string" ? error : `the server answered ${response.status}`);
}

/**
 * Streams a session's events in order, each once, until the session has ended. A lost connection is made again from
 * the last event.
 * @throws ClientError if the server rejects the request, so that a retry would not help
 */
async function* streamEvents(
  url: string,
  { after = 0, schemas, ...options }: StreamOptions & Required<Pick<ClientOptions, "schemas">> & Sent,
): AsyncGenerator<SessionEvent> {
  const loading = schemas();
  const { streamMessages } = await import("./client-stream.ts");
  let seen = after;
  for await (const { data } of streamMessages(url, { ...options, lastId: String(after) })) {
    const payload: unknown = JSON.parse(data);
    const { numberedSchema, sessionEventSchema } = await loading;
    const { seq } = numberedSchema.parse(payload);
    if (seq <= seen) continue;
    seen = seq;
    const event = sessionEventSchema.safeParse(payload);
    // A newer server has events that this client does not know: without them it still knows the others.
    if (event.success) yield event.data;
  }
}

/**
 * Something that happened to the list of sessions; `reset`: the list must be read again, since earlier changes are not
 * known.
 */
export type SessionChange =
  | { readonly type: "reset" }
  | { readonly type: "session"; readonly session: SessionDetail }
  | { readonly type: "deleted"; readonly id: string };

/**
 * Streams what happens to the list of sessions, until it is aborted. A lost connection is made again.
 * @throws ClientError if the server rejects the request, so that a retry would not help
 */
async function* streamSessions(
  url: string,
  { schemas, ...options }: Omit<StreamOptions, "after"> & Required<Pick<ClientOptions, "schemas">> & Sent,
): AsyncGenerator<SessionChange> {
  const loading = schemas();
  const { streamMessages } = await import("./client-stream.ts");
  for await (const { event, data } of streamMessages(url, { ...options, lastId: null })) {
    const { sessionDetailSchema, deletedSchema } = await loading;
    const payload: unknown = JSON.parse(data);
    if (event === "session") {
      const session = sessionDetailSchema.safeParse(payload);
      if (session.success) yield { type: "session", session: session.data };
    } else if (event === "deleted") yield { type: "deleted", id: deletedSchema.parse(payload).id };
    else if (event === "reset") yield { type: "reset" };
  }
}
