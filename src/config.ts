import { readFileSync } from "node:fs";
import { availableParallelism } from "node:os";
import { join, resolve } from "node:path";
import { z } from "zod";
import { egressPresets, parseEgressRule, registryHosts, type EgressRule } from "./domain/egress.ts";
import { dollarsSchema } from "./domain/dollars.ts";
import { InvalidInputError } from "./domain/errors.ts";
import { modelPatternSchema } from "./domain/model.ts";
import { agentNameSchema } from "./domain/session.ts";
import { roles } from "./domain/user.ts";

/**
 * Environment and flags become one validated, frozen value here, and nowhere else; every default stands here.
 * Each variable is described in docs/configuration.md.
 */
const forgeSettingsSchema = z.discriminatedUnion("kind", [
  z.strictObject({
    kind: z.literal("github"),
    webUrl: z.url(),
    apiUrl: z.url(),
    token: z.string().min(1).optional(),
    app: z.strictObject({ id: z.string(), privateKey: z.string() }).optional(),
  }),
  z.strictObject({
    kind: z.literal("gitea"),
    webUrl: z.url(),
    apiUrl: z.url(),
    token: z.string().min(1).optional(),
  }),
  z.strictObject({
    kind: z.literal("git"),
    webUrl: z.url(),
    username: z.string().min(1).optional(),
    token: z.string().min(1).optional(),
  }),
]);

/** A provider that an operator adds: any program that speaks the Agent Client Protocol on stdin and stdout. */
export const customProviderSchema = z.strictObject({
  id: z.string().regex(/^[A-Za-z][A-Za-z0-9_-]{0,40}$/u, "must be letters, digits, _ and -, starting with a letter"),
  name: z.string().optional(),
  command: z.string().min(1),
  /** `{model}` stands for the model's name. */
  arguments: z.array(z.string()).default([]),
  environment: z.record(z.string(), z.string()).default({}),
  readOnly: z.array(z.string()).default([]),
  /** Paths below the home, the last part with `*` where needed, where it keeps conversations. */
  state: z
    .array(z.string().regex(/^(?!\/)(?!.*(?:^|\/)\.\.(?:\/|$))/u, "must be a path below the session's home"))
    .default([]),
  defaultModel: z.string().nullable().default(null),
});
export type CustomProvider = z.infer<typeof customProviderSchema>;

const flag = z
  .enum(["true", "false", "1", "0"])
  .transform((value) => value === "true" || value === "1")
  .default(false);
/** `a.example, *.b.example:8443` */
const egressList = z
  .string()
  .transform((value, context): EgressRule[] =>
    value
      .split(/[\s,]+/u)
      .filter((entry) => entry !== "")
      .flatMap((entry) => {
        const rule = parseEgressRule(entry);
        if (rule !== null) return rule;
        context.addIssue(`has ${entry} in it: write <host>, *.<host> or <host>:<port>, with commas between`);
        return [];
      }),
  )
  .default([]);
/** `claude-*, gpt-5*` */
const modelList = z
  .string()
  .transform((value) => value.split(/[\s,]+/u).filter((pattern) => pattern !== ""))
  .pipe(z.array(modelPatternSchema))
  .default(["*"]);
const priceSchema = z.strictObject({
  input: dollarsSchema,
  output: dollarsSchema,
  cacheRead: dollarsSchema.optional(),
  cacheWrite: dollarsSchema.optional(),
});
/** Words, with commas between. */
const names = z
  .string()
  .transform((value) => value.split(/[\s,]+/u).filter((name) => name !== ""))
  .default([]);
/** `name=value,name=value`, each part written as in a URL: the form that OpenTelemetry's specification gives. */
const headerList = z
  .string()
  .transform((value, context): Record<string, string> => {
    const entries = value.split(",").filter((entry) => entry.trim() !== "");
    const pairs = entries.map((entry) => /^\s*([!#$%&'*+.^`|~\w-]+)\s*=\s*(.*?)\s*$/u.exec(entry));
    if (pairs.some((pair) => pair === null)) context.addIssue("must be written <name>=<value>, with commas between");
    return Object.fromEntries(pairs.map((pair) => [pair?.[1] ?? "", decoded(pair?.[2] ?? "")]));
  })
  .default({});
/** Who vouches for people is asked over a connection that nobody can change, or on this machine. */
const signInUrl = z
  .url()
  .transform((value) => value.replace(/\/+$/u, ""))
  .refine((value) => {
    const { protocol, hostname } = new URL(value);
    return protocol === "https:" || (protocol === "http:" && ["127.0.0.1", "[::1]", "localhost"].includes(hostname));
  }, "must be an https:// address");
const whole = (minimum: number, maximum: number, byDefault: number) =>
  z.coerce.number().int().min(minimum).max(maximum).default(byDefault);
const json = <T extends z.ZodType>(schema: T) =>
  z
    .string()
    .transform((value, context): unknown => {
      try {
        return JSON.parse(value);
      } catch {
        context.addIssue("must be JSON");
        return z.NEVER;
      }
    })
    .pipe(schema);

export const environmentSchema = z.object({
  OFFSTAGE_DATA: z.string().min(1).default("./.offstage"),
  OFFSTAGE_HOST: z.string().min(1).default("127.0.0.1"),
  OFFSTAGE_PORT: whole(0, 65_535, 4747),
  OFFSTAGE_PUBLIC_URL: z.url().optional(),
  OFFSTAGE_HOSTS: names,
  OFFSTAGE_TRUSTED_PROXIES: names,
  OFFSTAGE_WORKSPACE_DAYS: whole(1, 36_500, 14),
  OFFSTAGE_CHECKPOINT_MB: whole(0, 1_024, 128),
  OFFSTAGE_WEBHOOK_HOSTS: names,
  OFFSTAGE_DELIVERY_DAYS: whole(1, 36_500, 30),
  OFFSTAGE_PULL_REQUEST_MINUTES: whole(0, 10_080, 5),
  OFFSTAGE_AUDIT_DAYS: whole(1, 36_500, 365),
  OFFSTAGE_EVENT_DAYS: whole(0, 36_500, 0),
  OFFSTAGE_JOB_DAYS: whole(0, 36_500, 0),
  OFFSTAGE_RECORDING_DAYS: whole(0, 36_500, 30),
  OFFSTAGE_MIRROR_DAYS: whole(0, 36_500, 30),
  OFFSTAGE_MIRRORS_MB: whole(0, 100_000_000, 0),
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
  OFFSTAGE_ADMINS: names,
  OFFSTAGE_SIGN_IN_DOMAINS: names,
  OFFSTAGE_SIGN_IN_GITHUB_ORGANIZATIONS: names,
  OFFSTAGE_DEFAULT_ROLE: z.enum(roles).default("member"),
  OFFSTAGE_SANDBOX: z.enum(["bubblewrap", "container", "none"]).default("bubblewrap"),
  OFFSTAGE_CONTAINER_SOCKET: z.string().min(1).default("/var/run/docker.sock"),
  OFFSTAGE_CONTAINER_IMAGE: z.string().min(1).default("node:24-bookworm"),
  OFFSTAGE_CONTAINER_RUNTIME: z.string().min(1).optional(),
  OFFSTAGE_CONCURRENCY: whole(1, 1_000, 4),
  OFFSTAGE_MAX_RUNNING_PER_ORGANIZATION: whole(1, 100_000, 20),
  OFFSTAGE_MAX_RUNNING_PER_REPOSITORY: whole(0, 100_000, 0),
  OFFSTAGE_QUEUE_LIMIT: whole(1, 10_000_000, 100_000),
  OFFSTAGE_MIN_FREE_MB: whole(0, 100_000_000, 256),
  OFFSTAGE_ALLOW_LOCAL_REPOSITORIES: flag,
  OFFSTAGE_DEFAULT_AGENT: agentNameSchema.optional(),
  OFFSTAGE_PROVIDERS: json(z.array(customProviderSchema)).optional(),
  OFFSTAGE_SANDBOX_MEMORY_MB: whole(256, 1_048_576, 8_192),
  OFFSTAGE_SANDBOX_PROCESSES: whole(64, 1_000_000, 4_096),
  OFFSTAGE_SANDBOX_DISK_MB: whole(16, 100_000_000, 20_480),
  OFFSTAGE_SANDBOX_CPUS: z.coerce.number().min(0.1).max(1_024).optional(),
  OFFSTAGE_MODELS: modelList,
  OFFSTAGE_PRICES: json(z.record(modelPatternSchema, priceSchema)).optional(),
  OFFSTAGE_RECORD: flag,
  OFFSTAGE_EGRESS: z.enum(egressPresets).default("registries"),
  OFFSTAGE_EGRESS_ALLOW: egressList,
  OFFSTAGE_PERMISSIONS: z.enum(["allow", "deny"]).default("allow"),
  OFFSTAGE_STALL_SECONDS: whole(1, 86_400, 600),
  OFFSTAGE_SETUP_MINUTES: whole(1, 1_440, 30),
  OFFSTAGE_SETUP_CACHE_MB: whole(0, 100_000_000, 10_240),
  OFFSTAGE_TURN_MINUTES: whole(1, 14_400, 240),
  OFFSTAGE_DRAIN_SECONDS: whole(0, 86_400, 10),
  OFFSTAGE_LEASE_SECONDS: whole(1, 600, 12),
  OFFSTAGE_RATE_LIMIT_PER_MINUTE: whole(1, 1_000_000, 600),
  OFFSTAGE_COMMIT_AUTHOR: z
    .string()
    .regex(/^[^<>\n]+ <[^<>\s]+@[^<>\s]+>$/u, "must be written Name <address@host>")
    .default("Offstage <offstage@localhost>"),
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
  OFFSTAGE_S3_ACCESS_KEY_ID: z.string().regex(/^\S+$/u, "must have no blanks in it").optional(),
  OFFSTAGE_S3_SECRET_ACCESS_KEY: z.string().regex(/^\S+$/u, "must have no blanks in it").optional(),
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
  OFFSTAGE_FORGES: json(z.array(forgeSettingsSchema)).optional(),
  GITHUB_TOKEN: z.string().min(1).optional(),
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

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

type Environment = z.infer<typeof environmentSchema>;

/** Flags of the command line; each wins over its variable. */
export interface ConfigFlags {
  readonly data?: string | undefined;
  readonly host?: string | undefined;
  readonly port?: string | undefined;
  readonly sandbox?: string | undefined;
}

const flagVariables = {
  data: "OFFSTAGE_DATA",
  host: "OFFSTAGE_HOST",
  port: "OFFSTAGE_PORT",
  sandbox: "OFFSTAGE_SANDBOX",
} as const;

export type Config = ReturnType<typeof readConfig>;

/**
 * @throws InvalidInputError naming the variable or flag, its problem and so its mend
 */
export function readConfig(variables: Readonly<Record<string, string | undefined>>, flags: ConfigFlags = {}) {
  const merged: Record<string, string | undefined> = {};
  // An empty variable is one that is not set, as shells and Compose files write it.
  for (const [name, value] of Object.entries(variables)) if (value !== "") merged[name] = value;
  for (const [name, variable] of Object.entries(flagVariables)) {
    const value = flags[name as keyof ConfigFlags];
    if (value !== undefined) merged[variable] = value;
  }
  const parsed = environmentSchema.safeParse(merged);
  if (!parsed.success) {
    const issue = parsed.error.issues[0];
    const variable = String(issue?.path[0]);
    const ofFlag = Object.entries(flagVariables).find(
      ([name, named]) => named === variable && flags[name as keyof ConfigFlags] !== undefined,
    );
    throw new InvalidInputError(`${ofFlag === undefined ? variable : `--${ofFlag[0]}`}: ${issue?.message}`);
  }
  return Object.freeze(configOf(parsed.data));
}

function configOf(environment: Environment) {
  const data = resolve(environment.OFFSTAGE_DATA);
  const author = /^(.*) <(.*)>$/u.exec(environment.OFFSTAGE_COMMIT_AUTHOR);
  return {
    data,
    databaseUrl: environment.DATABASE_URL ?? null,
    databaseDirectory: join(data, "postgres"),
    host: environment.OFFSTAGE_HOST,
    port: environment.OFFSTAGE_PORT,
    /** Null: derived from the address that the server listens on. */
    publicUrl: environment.OFFSTAGE_PUBLIC_URL?.replace(/\/+$/u, "") ?? null,
    hosts: environment.OFFSTAGE_HOSTS.map((name) => name.toLowerCase()),
    trustedProxies: environment.OFFSTAGE_TRUSTED_PROXIES,
    checkpointBytes: environment.OFFSTAGE_CHECKPOINT_MB * 1024 * 1024,
    webhookHosts: environment.OFFSTAGE_WEBHOOK_HOSTS.map((name) => name.toLowerCase()),
    pullRequestMinutes: environment.OFFSTAGE_PULL_REQUEST_MINUTES,
    /** How long things are kept, in days; 0: for ever. */
    retention: {
      workspaceDays: environment.OFFSTAGE_WORKSPACE_DAYS,
      auditDays: environment.OFFSTAGE_AUDIT_DAYS,
      deliveryDays: environment.OFFSTAGE_DELIVERY_DAYS,
      eventDays: environment.OFFSTAGE_EVENT_DAYS,
      jobDays: environment.OFFSTAGE_JOB_DAYS,
      recordingDays: environment.OFFSTAGE_RECORDING_DAYS,
      mirrorDays: environment.OFFSTAGE_MIRROR_DAYS,
      /** Of all mirrors together; 0: no limit. */
      mirrorsBytes: environment.OFFSTAGE_MIRRORS_MB * 1024 * 1024,
    },
    adminKey: environment.OFFSTAGE_ADMIN_KEY ?? null,
    ...signInOf(environment),
    /** Null: kept in a file of its own below the data folder. */
    masterKey: environment.OFFSTAGE_MASTER_KEY ?? null,
    sandbox: environment.OFFSTAGE_SANDBOX,
    container: {
      socket: environment.OFFSTAGE_CONTAINER_SOCKET,
      image: environment.OFFSTAGE_CONTAINER_IMAGE,
      runtime: environment.OFFSTAGE_CONTAINER_RUNTIME ?? null,
    },
    concurrency: environment.OFFSTAGE_CONCURRENCY,
    maxRunningPerOrganization: environment.OFFSTAGE_MAX_RUNNING_PER_ORGANIZATION,
    /** Null: any number. */
    maxRunningPerRepository: environment.OFFSTAGE_MAX_RUNNING_PER_REPOSITORY || null,
    queueLimit: environment.OFFSTAGE_QUEUE_LIMIT,
    minimumFreeBytes: environment.OFFSTAGE_MIN_FREE_MB * 1024 * 1024,
    allowLocalRepositories: environment.OFFSTAGE_ALLOW_LOCAL_REPOSITORIES,
    defaultAgent: environment.OFFSTAGE_DEFAULT_AGENT ?? null,
    customProviders: environment.OFFSTAGE_PROVIDERS ?? [],
    permissions: environment.OFFSTAGE_PERMISSIONS,
    limits: {
      memoryBytes: environment.OFFSTAGE_SANDBOX_MEMORY_MB * 1024 * 1024,
      processes: environment.OFFSTAGE_SANDBOX_PROCESSES,
      diskBytes: environment.OFFSTAGE_SANDBOX_DISK_MB * 1024 * 1024,
      cpus: environment.OFFSTAGE_SANDBOX_CPUS ?? availableParallelism(),
    },
    allowedModels: environment.OFFSTAGE_MODELS,
    prices: environment.OFFSTAGE_PRICES ?? {},
    recordsModels: environment.OFFSTAGE_RECORD,
    egress: {
      open: environment.OFFSTAGE_EGRESS === "open",
      rules: [...(environment.OFFSTAGE_EGRESS === "none" ? [] : registryHosts), ...environment.OFFSTAGE_EGRESS_ALLOW],
    },
    stallMs: environment.OFFSTAGE_STALL_SECONDS * 1_000,
    setupLimitMs: environment.OFFSTAGE_SETUP_MINUTES * 60_000,
    setupCacheBytes: environment.OFFSTAGE_SETUP_CACHE_MB * 1024 * 1024,
    turnLimitMs: environment.OFFSTAGE_TURN_MINUTES * 60_000,
    drainMs: environment.OFFSTAGE_DRAIN_SECONDS * 1_000,
    leaseMs: environment.OFFSTAGE_LEASE_SECONDS * 1_000,
    rateLimitPerMinute: environment.OFFSTAGE_RATE_LIMIT_PER_MINUTE,
    commitAuthor: { name: author?.[1] ?? "", email: author?.[2] ?? "" },
    logLevel: environment.OFFSTAGE_LOG_LEVEL,
    metricsToken: environment.OFFSTAGE_METRICS_TOKEN ?? null,
    /** Of a worker that runs alone; null: it serves nothing. */
    metricsPort: environment.OFFSTAGE_METRICS_PORT ?? null,
    /** Null: no traces. */
    traces:
      environment.OTEL_EXPORTER_OTLP_ENDPOINT === undefined
        ? null
        : {
            endpoint: environment.OTEL_EXPORTER_OTLP_ENDPOINT.replace(/\/+$/u, ""),
            headers: environment.OTEL_EXPORTER_OTLP_HEADERS,
            serviceName: environment.OTEL_SERVICE_NAME,
            share: environment.OTEL_TRACES_SAMPLER_ARG,
          },
    /** S3-compatible store of large artifacts. Null: they are in the database. */
    objects: objectsOf(environment),
    forges: forgesOf(environment),
    models: modelsOf(environment),
  } as const;
}

/** Whether all of these are set. @throws InvalidInputError where only some are */
function together(environment: Environment, named: readonly (keyof Environment)[]): boolean {
  const missing = named.find((name) => environment[name] === undefined);
  const present = named.find((name) => environment[name] !== undefined);
  if (present === undefined) return false;
  if (missing !== undefined) throw new InvalidInputError(`${missing}: must be set beside ${present}`);
  return true;
}

function objectsOf(environment: Environment) {
  const { OFFSTAGE_S3_ENDPOINT: endpoint = "", OFFSTAGE_S3_BUCKET: bucket = "" } = environment;
  const { OFFSTAGE_S3_ACCESS_KEY_ID: accessKeyId = "", OFFSTAGE_S3_SECRET_ACCESS_KEY: secretAccessKey = "" } =
    environment;
  const { OFFSTAGE_S3_PREFIX: prefix = "" } = environment;
  const isSet = together(environment, [
    "OFFSTAGE_S3_ENDPOINT",
    "OFFSTAGE_S3_BUCKET",
    "OFFSTAGE_S3_ACCESS_KEY_ID",
    "OFFSTAGE_S3_SECRET_ACCESS_KEY",
  ]);
  if (!isSet) return null;
  return {
    endpoint: endpoint.replace(/\/+$/u, ""),
    bucket,
    region: environment.OFFSTAGE_S3_REGION,
    accessKeyId,
    secretAccessKey,
    /** Before every key; empty, or with a slash at its end. */
    prefix: prefix === "" ? "" : `${prefix.replace(/\/+$/u, "")}/`,
  };
}

function signInOf(environment: Environment) {
  const lower = (values: readonly string[]): string[] => values.map((value) => value.toLowerCase());
  const { OFFSTAGE_OIDC_ISSUER: issuer = "", OFFSTAGE_OIDC_CLIENT_ID: oidcId = "" } = environment;
  const { OFFSTAGE_OIDC_CLIENT_SECRET: oidcSecret = "", OFFSTAGE_GITHUB_OAUTH_CLIENT_ID: githubId = "" } = environment;
  const { OFFSTAGE_GITHUB_OAUTH_CLIENT_SECRET: githubSecret = "" } = environment;
  const githubOrganizations = lower(environment.OFFSTAGE_SIGN_IN_GITHUB_ORGANIZATIONS);
  return {
    oidc: together(environment, ["OFFSTAGE_OIDC_ISSUER", "OFFSTAGE_OIDC_CLIENT_ID", "OFFSTAGE_OIDC_CLIENT_SECRET"])
      ? {
          issuer,
          clientId: oidcId,
          clientSecret: oidcSecret,
          name: environment.OFFSTAGE_OIDC_NAME,
          trustEmail: environment.OFFSTAGE_OIDC_TRUST_EMAIL,
        }
      : null,
    githubSignIn: together(environment, ["OFFSTAGE_GITHUB_OAUTH_CLIENT_ID", "OFFSTAGE_GITHUB_OAUTH_CLIENT_SECRET"])
      ? {
          webUrl: environment.OFFSTAGE_GITHUB_OAUTH_URL,
          apiUrl: environment.OFFSTAGE_GITHUB_OAUTH_API_URL,
          clientId: githubId,
          clientSecret: githubSecret,
          asksOrganizations: githubOrganizations.length > 0,
        }
      : null,
    signInPolicy: {
      admins: lower(environment.OFFSTAGE_ADMINS),
      domains: lower(environment.OFFSTAGE_SIGN_IN_DOMAINS),
      githubOrganizations,
      defaultRole: environment.OFFSTAGE_DEFAULT_ROLE,
    },
  };
}

function forgesOf(environment: Environment) {
  const forges = [...(environment.OFFSTAGE_FORGES ?? [])];
  const github = { kind: "github", webUrl: "https://github.com", apiUrl: "https://api.github.com" } as const;
  if (environment.OFFSTAGE_GITHUB_APP_ID !== undefined) {
    const file = environment.OFFSTAGE_GITHUB_APP_PRIVATE_KEY_FILE;
    if (file === undefined) {
      throw new InvalidInputError("OFFSTAGE_GITHUB_APP_PRIVATE_KEY_FILE: must be set beside OFFSTAGE_GITHUB_APP_ID");
    }
    forges.push({ ...github, app: { id: environment.OFFSTAGE_GITHUB_APP_ID, privateKey: readKeyFile(file) } });
  } else if (!forges.some((forge) => forge.webUrl === github.webUrl)) {
    forges.push(environment.GITHUB_TOKEN === undefined ? github : { ...github, token: environment.GITHUB_TOKEN });
  }
  return forges;
}

function readKeyFile(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch (cause) {
    throw new InvalidInputError(`OFFSTAGE_GITHUB_APP_PRIVATE_KEY_FILE: ${path} can't be read`, { cause });
  }
}

function modelsOf(environment: Environment) {
  return {
    ...(environment.ANTHROPIC_API_KEY !== undefined && {
      anthropic: {
        apiKey: environment.ANTHROPIC_API_KEY,
        ...(environment.ANTHROPIC_BASE_URL !== undefined && { baseUrl: environment.ANTHROPIC_BASE_URL }),
      },
    }),
    ...(environment.OPENAI_API_KEY !== undefined && {
      openai: {
        apiKey: environment.OPENAI_API_KEY,
        ...(environment.OPENAI_BASE_URL !== undefined && { baseUrl: environment.OPENAI_BASE_URL }),
      },
    }),
    ...(environment.GEMINI_API_KEY !== undefined && {
      google: {
        apiKey: environment.GEMINI_API_KEY,
        ...(environment.GOOGLE_GEMINI_BASE_URL !== undefined && { baseUrl: environment.GOOGLE_GEMINI_BASE_URL }),
      },
    }),
    ...(environment.OFFSTAGE_MODEL_BASE_URL !== undefined && {
      compatible: {
        baseUrl: environment.OFFSTAGE_MODEL_BASE_URL,
        ...(environment.OFFSTAGE_MODEL_API_KEY !== undefined && { apiKey: environment.OFFSTAGE_MODEL_API_KEY }),
        ...(environment.OFFSTAGE_MODEL !== undefined && { model: environment.OFFSTAGE_MODEL }),
      },
    }),
  };
}
