import { z } from "zod";
import { modelPatternSchema } from "../domain/agents/model.ts";
import { egressPresets } from "../domain/environments/egress.ts";
import { dollarsSchema } from "../domain/fields/dollars.ts";
import { roles } from "../domain/people/user.ts";
import { isOldAzureAddress, oldAzureAddress } from "../domain/repositories/azure-address.ts";
import { mentionSchema } from "../domain/repositories/calling.ts";
import { agentNameSchema } from "../domain/sessions/session.ts";
import {
  directList,
  egressList,
  flag,
  headerList,
  json,
  modelList,
  names,
  permitList,
  proxyAddress,
  signInUrl,
  uidRange,
  integer,
} from "./fields.ts";

/** A person as commits name one. */
const identity = z.string().regex(/^[^<>\n]+ <[^<>\s]+@[^<>\s]+>$/u, "must be written Name <address@host>");
/** A URL that paths are appended to, so without trailing slashes. */
const address = z.url().transform((value) => value.replace(/\/+$/u, ""));

const forgeSettingsSchema = z.discriminatedUnion("kind", [
  z.strictObject({
    kind: z.literal("azure"),
    webUrl: address.refine((url) => !isOldAzureAddress(url), oldAzureAddress),
    apiUrl: address,
    token: z.string().min(1).optional(),
  }),
  z.strictObject({
    kind: z.literal("github"),
    webUrl: address,
    apiUrl: address,
    token: z.string().min(1).optional(),
    app: z.strictObject({ id: z.string(), privateKey: z.string() }).optional(),
  }),
  z.strictObject({
    kind: z.literal("gitlab"),
    webUrl: address,
    apiUrl: address,
    token: z.string().min(1).optional(),
  }),
  z.strictObject({
    kind: z.literal("gitea"),
    webUrl: address,
    apiUrl: address,
    token: z.string().min(1).optional(),
  }),
  z.strictObject({
    kind: z.literal("bitbucket"),
    webUrl: address,
    apiUrl: address,
    username: z.string().min(1).optional(),
    token: z.string().min(1).optional(),
  }),
  z.strictObject({
    kind: z.literal("bitbucketDataCenter"),
    webUrl: address,
    apiUrl: address,
    username: z.string().min(1).optional(),
    token: z.string().min(1).optional(),
  }),
  z.strictObject({
    kind: z.literal("git"),
    webUrl: address,
    username: z.string().min(1).optional(),
    token: z.string().min(1).optional(),
  }),
]);

/**
 * A provider that an operator adds: any program that speaks the Agent Client Protocol
 * (https://agentclientprotocol.com) on stdin and stdout.
 */
const customProviderSchema = z.strictObject({
  id: z.string().regex(/^[A-Za-z][A-Za-z0-9_-]{0,40}$/u, "must be letters, digits, _ and -, starting with a letter"),
  name: z.string().optional(),
  command: z.string().min(1),
  /** `{model}` is replaced by the model's name, `{reasoning}` by the level of reasoning. */
  arguments: z.array(z.string()).default([]),
  environment: z.record(z.string(), z.string()).default({}),
  readOnly: z.array(z.string()).default([]),
  /** Paths below the home folder where it keeps conversations; the last segment may contain `*`. */
  state: z
    .array(z.string().regex(/^(?!\/)(?!.*(?:^|\/)\.\.(?:\/|$))/u, "must be a path below the session's home"))
    .default([]),
  defaultModel: z.string().nullable().default(null),
  /** Levels of reasoning that a session may name after the model; default: low, medium and high. */
  reasoningLevels: z.array(z.string().regex(/^[a-z][a-z0-9_-]{0,30}$/u)).optional(),
});

const priceSchema = z.strictObject({
  input: dollarsSchema,
  output: dollarsSchema,
  cacheRead: dollarsSchema.optional(),
  cacheWrite: dollarsSchema.optional(),
  cacheHour: dollarsSchema.optional(),
  sound: dollarsSchema.optional(),
});

/** Every variable that is read, with its default and range. docs/configuration.md describes each of them. */
export const variablesSchema = z.object({
  OFFSTAGE_DATA: z.string().min(1).optional(),
  OFFSTAGE_HOST: z.string().min(1).default("127.0.0.1"),
  OFFSTAGE_PORT: integer(0, 65_535, 4747),
  OFFSTAGE_PUBLIC_URL: z.url().optional(),
  OFFSTAGE_HOSTS: names,
  OFFSTAGE_TRUSTED_PROXIES: names,
  OFFSTAGE_WORKSPACE_DAYS: integer(1, 36_500, 14),
  OFFSTAGE_CHECKPOINT_MB: integer(0, 1_024, 128),
  OFFSTAGE_WEBHOOK_HOSTS: names,
  OFFSTAGE_REGISTRY_HOSTS: names,
  OFFSTAGE_FORGE_HOSTS: names,
  OFFSTAGE_PROGRAM_HOSTS: names,
  OFFSTAGE_DELIVERY_DAYS: integer(1, 36_500, 30),
  OFFSTAGE_PULL_REQUEST_MINUTES: integer(0, 10_080, 5),
  OFFSTAGE_MENTION: mentionSchema.default("offstage"),
  OFFSTAGE_ALLOWED_BOTS: names,
  OFFSTAGE_CONVERSATION_TURNS: integer(0, 10_000, 50),
  OFFSTAGE_CONVERSATION_BOT_TURNS: integer(0, 10_000, 5),
  OFFSTAGE_CONVERSATION_SESSIONS: integer(0, 1_000, 5),
  OFFSTAGE_CONVERSATION_USD: dollarsSchema.default(50),
  OFFSTAGE_CHECK_ROUNDS: integer(0, 100, 3),
  OFFSTAGE_CHECK_SECONDS: integer(0, 3_600, 20),
  OFFSTAGE_RESOLVE_THREADS: flag,
  OFFSTAGE_CONFLICT_ROUNDS: integer(0, 100, 3),
  OFFSTAGE_SMTP_URL: z.url({ protocol: /^smtps?$/u, error: "must be smtp://… or smtps://…" }).optional(),
  OFFSTAGE_MAIL_FROM: z
    .string()
    .max(320)
    .refine(
      (from) => /^(?:[^<>\r\n"]*<)?[^\s<>"@]+@[^\s<>"@]+>?$/u.test(from),
      "must be an address, or a name with an address: Offstage <offstage@company.example>",
    )
    .optional(),
  OFFSTAGE_AUDIT_DAYS: integer(1, 36_500, 365),
  OFFSTAGE_EVENT_DAYS: integer(0, 36_500, 365),
  OFFSTAGE_DIFF_DAYS: integer(0, 36_500, 365),
  OFFSTAGE_SESSION_DAYS: integer(0, 36_500, 0),
  OFFSTAGE_EVENTS_MB: integer(0, 1_000_000_000, 20_480),
  OFFSTAGE_SESSION_EVENTS_MB: integer(0, 1_000_000, 512),
  OFFSTAGE_JOBS_MB: integer(0, 1_000_000_000, 4_096),
  OFFSTAGE_JOB_DAYS: integer(0, 36_500, 365),
  OFFSTAGE_RECORDING_DAYS: integer(0, 36_500, 30),
  OFFSTAGE_MIRROR_DAYS: integer(0, 36_500, 30),
  OFFSTAGE_MIRRORS_MB: integer(0, 100_000_000, 0),
  OFFSTAGE_CHECKOUTS_MB: integer(0, 100_000_000, 10_240),
  OFFSTAGE_FETCH_MB: integer(1, 100_000_000, 20_480),
  OFFSTAGE_FETCH_MEMORY_MB: integer(256, 100_000_000, 4_096),
  OFFSTAGE_FETCH_MINUTES: integer(1, 1_440, 60),
  OFFSTAGE_ADMIN_KEY: z.string().min(32, "must be at least 32 characters").optional(),
  OFFSTAGE_MASTER_KEY: z.string().min(1).optional(),
  DATABASE_URL: z
    .string()
    .regex(/^postgres(?:ql)?:\/\//u, "must start with postgres:// or postgresql://")
    .optional(),
  OFFSTAGE_OIDC_ISSUER: signInUrl.optional(),
  OFFSTAGE_OIDC_CLIENT_ID: z.string().min(1).optional(),
  OFFSTAGE_OIDC_CLIENT_SECRET: z.string().min(1).optional(),
  OFFSTAGE_OIDC_NAME: z.string().min(1).default("single sign-on"),
  OFFSTAGE_OIDC_TRUST_EMAIL: flag,
  OFFSTAGE_GITHUB_OAUTH_CLIENT_ID: z.string().min(1).optional(),
  OFFSTAGE_GITHUB_OAUTH_CLIENT_SECRET: z.string().min(1).optional(),
  OFFSTAGE_GITHUB_OAUTH_URL: signInUrl.default("https://github.com"),
  OFFSTAGE_GITHUB_OAUTH_API_URL: signInUrl.default("https://api.github.com"),
  OFFSTAGE_SLACK_API_URL: signInUrl.default("https://slack.com/api"),
  OFFSTAGE_LINEAR_API_URL: signInUrl.default("https://api.linear.app/graphql"),
  OFFSTAGE_ADMINS: names,
  OFFSTAGE_SIGN_IN_DOMAINS: names,
  OFFSTAGE_SIGN_IN_GITHUB_ORGANIZATIONS: names,
  OFFSTAGE_SIGN_IN_DAYS: integer(1, 365, 30),
  OFFSTAGE_DEFAULT_ROLE: z.enum(roles).default("member"),
  OFFSTAGE_SANDBOX: z.enum(["bubblewrap", "container", "none"]).default("bubblewrap"),
  OFFSTAGE_CONTAINER_SOCKET: z.string().min(1).default("/var/run/docker.sock"),
  OFFSTAGE_CONTAINER_IMAGE: z.string().min(1).default("node:24-bookworm"),
  OFFSTAGE_CONTAINER_RUNTIME: z.string().min(1).optional(),
  OFFSTAGE_DEVCONTAINER_IMAGES: names,
  OFFSTAGE_CONCURRENCY: integer(1, 1_000, 4),
  OFFSTAGE_MAX_RUNNING_PER_ORGANIZATION: integer(1, 100_000, 20),
  OFFSTAGE_MAX_RUNNING_PER_REPOSITORY: integer(0, 100_000, 0),
  OFFSTAGE_QUEUE_LIMIT: integer(1, 10_000_000, 100_000),
  OFFSTAGE_MIN_FREE_MB: integer(0, 100_000_000, 256),
  OFFSTAGE_ALLOW_LOCAL_REPOSITORIES: flag,
  OFFSTAGE_FORKS: flag,
  OFFSTAGE_DEFAULT_AGENT: agentNameSchema.optional(),
  OFFSTAGE_PROVIDERS: json(z.array(customProviderSchema)).optional(),
  OFFSTAGE_SANDBOX_MEMORY_MB: integer(256, 1_048_576, 8_192),
  OFFSTAGE_SANDBOX_PROCESSES: integer(64, 1_000_000, 4_096),
  OFFSTAGE_SANDBOX_DISK_MB: integer(16, 100_000_000, 20_480),
  OFFSTAGE_SANDBOX_DISK: z.enum(["watch", "image"]).default("watch"),
  OFFSTAGE_WORKSPACES: z.enum(["auto", "overlay", "copy", "checkout"]).default("auto"),
  OFFSTAGE_SANDBOX_FILES: integer(1_000, 1_000_000_000, 1_000_000),
  OFFSTAGE_SANDBOX_UIDS: uidRange.optional(),
  OFFSTAGE_WARM: z.coerce.number().int().min(0).max(100).optional(),
  OFFSTAGE_SANDBOX_CPUS: z.coerce.number().min(0.1).max(1_024).optional(),
  OFFSTAGE_MODELS: modelList,
  OFFSTAGE_MODEL_ALLOW: permitList,
  OFFSTAGE_PRICES: json(z.record(modelPatternSchema, priceSchema)).optional(),
  OFFSTAGE_RECORD: flag,
  OFFSTAGE_EGRESS: z.enum(egressPresets).default("registries"),
  OFFSTAGE_EGRESS_ALLOW: egressList,
  OFFSTAGE_PERMISSIONS: z.enum(["allow", "deny"]).default("allow"),
  OFFSTAGE_STALL_SECONDS: integer(1, 86_400, 600),
  OFFSTAGE_RETRY_HOURS: integer(0, 720, 24),
  OFFSTAGE_SETUP_MINUTES: integer(1, 1_440, 30),
  OFFSTAGE_SETUP_CACHE_MB: integer(0, 100_000_000, 10_240),
  OFFSTAGE_TURN_MINUTES: integer(1, 14_400, 240),
  OFFSTAGE_DRAIN_SECONDS: integer(0, 86_400, 10),
  OFFSTAGE_LEASE_SECONDS: integer(1, 600, 12),
  OFFSTAGE_RATE_LIMIT_PER_MINUTE: integer(1, 1_000_000, 600),
  OFFSTAGE_DELIVERIES_PER_MINUTE: integer(1, 1_000_000, 30_000),
  OFFSTAGE_COMMIT_AUTHOR: identity.default("Offstage <offstage@localhost>"),
  OFFSTAGE_COMMIT_COMMITTER: identity.optional(),
  OFFSTAGE_SIGNING_KEY_FILE: z.string().min(1).optional(),
  OFFSTAGE_S3_ENDPOINT: z
    .url({ protocol: /^https?$/u, error: "must be an http:// or https:// address" })
    .regex(/^[^@?#]*$/u, "must be an address alone: keys and bucket have variables of their own")
    .optional(),
  OFFSTAGE_S3_BUCKET: z
    .string()
    .regex(/^[A-Za-z0-9][A-Za-z0-9._-]{1,61}[A-Za-z0-9]$/u, "must be a bucket's name: 3 to 63 letters, digits, . and -")
    .optional(),
  OFFSTAGE_S3_REGION: z
    .string()
    .regex(/^[A-Za-z0-9-]{1,64}$/u, "must be letters, digits and -")
    .default("us-east-1"),
  OFFSTAGE_S3_ACCESS_KEY_ID: z.string().regex(/^\S+$/u, "must not contain white space").optional(),
  OFFSTAGE_S3_SECRET_ACCESS_KEY: z.string().regex(/^\S+$/u, "must not contain white space").optional(),
  OFFSTAGE_S3_PREFIX: z
    .string()
    .regex(
      /^[A-Za-z0-9_-][A-Za-z0-9._-]*(?:\/[A-Za-z0-9_-][A-Za-z0-9._-]*)*\/?$/u,
      "must be letters, digits, . _ - and /",
    )
    .optional(),
  OFFSTAGE_METRICS_TOKEN: z.string().min(16, "must be at least 16 characters").optional(),
  OFFSTAGE_METRICS_PORT: z.coerce.number().int().min(0).max(65_535).optional(),
  OTEL_EXPORTER_OTLP_ENDPOINT: z
    .url({ protocol: /^https?$/u, error: "must be an http:// or https:// address" })
    .optional(),
  OTEL_EXPORTER_OTLP_HEADERS: headerList,
  OTEL_SERVICE_NAME: z.string().min(1).default("offstage"),
  OTEL_TRACES_SAMPLER_ARG: z.coerce.number().min(0).max(1).default(1),
  OFFSTAGE_LOG_LEVEL: z.enum(["trace", "debug", "info", "warn", "error", "fatal", "silent"]).default("info"),
  OFFSTAGE_LOG_FORMAT: z.enum(["auto", "json", "text"]).default("auto"),
  OFFSTAGE_FORGES: json(z.array(forgeSettingsSchema)).optional(),
  HTTPS_PROXY: proxyAddress.optional(),
  HTTP_PROXY: proxyAddress.optional(),
  NO_PROXY: directList,
  OFFSTAGE_SSH_KEYS: json(
    z.record(
      z.string().regex(/^[a-z0-9._-]+(?::\d{1,5})?$/u, "must be a host in lower case, or <host>:<port>"),
      z.string().min(1),
    ),
  ).optional(),
  OFFSTAGE_SSH_KNOWN_HOSTS: z.string().min(1).optional(),
  SSH_AUTH_SOCK: z.string().min(1).optional(),
  OFFSTAGE_CA_FILE: z.string().min(1).optional(),
  OFFSTAGE_CA_IN_SANDBOX: flag,
  GITHUB_TOKEN: z.string().min(1).optional(),
  GITLAB_TOKEN: z.string().min(1).optional(),
  OFFSTAGE_GITHUB_APP_ID: z.string().min(1).optional(),
  OFFSTAGE_GITHUB_APP_PRIVATE_KEY_FILE: z.string().min(1).optional(),
  ANTHROPIC_API_KEY: z.string().min(1).optional(),
  ANTHROPIC_BASE_URL: z.url().optional(),
  OPENAI_API_KEY: z.string().min(1).optional(),
  OPENAI_BASE_URL: z.url().optional(),
  GEMINI_API_KEY: z.string().min(1).optional(),
  GOOGLE_GEMINI_BASE_URL: z.url().optional(),
  OFFSTAGE_MODEL_BASE_URL: z.url().optional(),
  OFFSTAGE_MODEL_API_KEY: z.string().min(1).optional(),
  OFFSTAGE_MODEL: z.string().min(1).optional(),
});

/** The validated variables. */
export type Variables = z.infer<typeof variablesSchema>;
