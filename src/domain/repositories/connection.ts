import { z } from "zod";
import { text } from "../fields/text.ts";
import { isOldAzureAddress, oldAzureAddress } from "./azure-address.ts";
import { allowedBotsSchema, mentionSchema } from "./calling.ts";
import { forgeKinds, type ForgeKind } from "./repository.ts";

/**
 * How a connection is authorized: with a token, as a GitHub App, or by the forge that the operator configured for the same address,
 * to which the connection adds only the reception of events.
 */
export const connectionCredentials = ["token", "app", "configured"] as const;
/** See `connectionCredentials`. */
export type ConnectionCredentialType = (typeof connectionCredentials)[number];

/** `degraded`: what sessions need is there, something optional is not. `broken`: sessions can't work with it. */
export const connectionStates = ["ok", "degraded", "broken"] as const;
/** See `connectionStates`. */
export type ConnectionState = (typeof connectionStates)[number];

/** Addresses of a kind of forge, unless a connection names others. */
interface UsualAddresses {
  /** The public server of the kind; null: there is none, or several. */
  readonly webUrl: string | null;
  /** The API of a server at this origin; null: the kind has no API. */
  apiUrl(origin: string): string | null;
}

/** The addresses of each kind; a new kind needs its line here, and its check in `src/forges/connections/check-connection.ts`. */
export const usualAddresses: Readonly<Record<ForgeKind, UsualAddresses>> = {
  azure: { webUrl: null, apiUrl: (origin) => origin },
  github: {
    webUrl: "https://github.com",
    apiUrl: (origin) => (origin === "https://github.com" ? "https://api.github.com" : `${origin}/api/v3`),
  },
  gitlab: { webUrl: "https://gitlab.com", apiUrl: (origin) => `${origin}/api/v4` },
  gitea: { webUrl: null, apiUrl: (origin) => `${origin}/api/v1` },
  bitbucket: {
    webUrl: "https://bitbucket.org",
    apiUrl: (origin) => (origin === "https://bitbucket.org" ? "https://api.bitbucket.org/2.0" : `${origin}/2.0`),
  },
  bitbucketDataCenter: { webUrl: null, apiUrl: (origin) => `${origin}/rest/api/latest` },
  git: { webUrl: null, apiUrl: () => null },
};

/** An address of a forge: without credentials, query and fragment, and without a slash at its end. */
export const forgeAddressSchema = z
  .string()
  .max(2_000)
  .transform((value, context) => {
    const problem = addressProblem(value);
    if (problem === null) return new URL(value).href.replace(/\/+$/u, "");
    context.addIssue(problem);
    return z.NEVER;
  });

function addressProblem(value: string): string | null {
  const url = URL.parse(value);
  if (url === null || !/^https?:\/\//iu.test(value)) return "must be an https:// address";
  if (`${url.username}${url.password}` !== "") return "must not contain credentials: send them as credential";
  return /[?#]/u.test(value) ? "must not have a query or a fragment" : null;
}

/** A token for a forge. */
export const forgeTokenSchema = text(16_384).regex(
  /^[\x21-\x7e]+$/u,
  "must be printable ASCII characters without spaces",
);
/** The username for a token, at forges that need one. */
export const forgeUsernameSchema = text(500).regex(/^[^:\p{Cc}]+$/u, "must not contain a colon");
const credentialSchema = z.discriminatedUnion("type", [
  z.object({
    type: z.literal("token"),
    token: forgeTokenSchema,
    username: forgeUsernameSchema.optional().meta({
      description:
        "Of a plain git server, whose token is a password: default `git`. Of Bitbucket, the account's address of an API token. Of Bitbucket Data Center, whose the token is: default `x-token-auth`.",
    }),
  }),
  z.object({
    type: z.literal("app"),
    appId: z.string().regex(/^\d{1,20}$/u, "must be the App's id, a number"),
    privateKey: text(16_384).meta({ description: "The App's private key, as PEM." }),
  }),
  z.object({ type: z.literal("configured") }),
]);
/** A credential as it is sent, and as it is sealed. */
export type ConnectionCredential = z.infer<typeof credentialSchema>;

/** Fields of a connection's body that say who calls Offstage by what. */
const callingFields = {
  mention: mentionSchema.nullable().optional().meta({
    description: "The word that calls Offstage in its comments, such as `offstage`; null: OFFSTAGE_MENTION.",
  }),
  allowedBots: allowedBotsSchema.nullable().optional().meta({
    description: "Logins of the bots that may steer sessions there; null: OFFSTAGE_ALLOWED_BOTS; an empty list: none.",
  }),
};

/** GitLab's signing tokens: 32 bytes in base64. Other secrets are secret tokens, which it sends as they are. */
export const gitlabSigningToken = /^whsec_[A-Za-z0-9+/]{43}=?$/u;

/** A secret that the forge has made for its webhook, as GitLab makes its signing tokens. */
const webhookSecretSchema = text(1_000)
  .regex(/^[\x21-\x7e]{16,}$/u, "must be at least 16 printable ASCII characters without spaces")
  .refine(
    (secret) => !secret.startsWith("whsec_") || gitlabSigningToken.test(secret),
    "must be whole: a signing token of GitLab is whsec_ and 32 bytes in base64",
  )
  .optional()
  .meta({ description: "The secret that the forge signs its deliveries with; omitted: one is made." });

/** Body of a rotation of a webhook's secret. */
export const rotateWebhookSecretSchema = z.object({ webhookSecret: webhookSecretSchema });

/** The problem with repositories of work items at another forge. */
export const noWorkItems = "must be absent: only azure has work items";
const workItemRepositoriesSchema = z
  .record(text(200), text(200))
  .refine((map) => Object.keys(map).length <= 100, "must name at most 100 projects")
  .nullable()
  .optional()
  .meta({
    description:
      'Of azure: the repository that work items are about, by their project, such as `{ "Shop": "backend" }`. Default: that of the project\'s name.',
  });

/** Body of a connection's creation. */
export const createConnectionSchema = z
  .object({
    kind: z.enum(forgeKinds),
    name: text(200).optional().meta({ description: "Default: the address's host." }),
    webUrl: forgeAddressSchema.optional().meta({
      description:
        "The forge's address, or that of one owner on it (`https://github.com/acme`): the longest that fits a repository counts. Default: the public server of the kind.",
    }),
    apiUrl: forgeAddressSchema.optional().meta({ description: "Default: where the kind has its API." }),
    credential: credentialSchema.meta({ description: "Never shown again, and never in a sandbox." }),
    webhookSecret: webhookSecretSchema,
    ...callingFields,
    workItemRepositories: workItemRepositoriesSchema,
  })
  .superRefine(({ kind, webUrl, credential, workItemRepositories }, context) => {
    const issue = (path: string[], message: string): void => context.addIssue({ code: "custom", path, message });
    if (kind === "azure" && isOldAzureAddress(webUrl ?? "")) issue(["webUrl"], oldAzureAddress);
    if (webUrl === undefined && usualAddresses[kind].webUrl === null) issue(["webUrl"], "is required for this kind");
    if (credential.type === "app" && kind !== "github") {
      issue(["credential", "type"], "app is for github only: send a token");
    }
    if (workItemRepositories != null && kind !== "azure") issue(["workItemRepositories"], noWorkItems);
  });

/** Body of a change of a connection: fields that are not sent keep their value. */
export const updateConnectionSchema = z.object({
  name: text(200).optional(),
  credential: credentialSchema.optional(),
  ...callingFields,
  workItemRepositories: workItemRepositoriesSchema,
});

/** Something that a connection's credential lacks. */
export const connectionProblemSchema = z.object({
  missing: z.string().meta({ description: "The scope or permission, or what else is not as it should be." }),
  why: z.string().meta({ description: "What can't be done without it." }),
  remedy: z.string(),
  essential: z.boolean().meta({ description: "Whether sessions can't work without it." }),
});
/** See `connectionProblemSchema`. */
export type ConnectionProblem = z.infer<typeof connectionProblemSchema>;

/** A forge's answer about a credential. */
export interface ConnectionCheck {
  /** Whose it is; null: the forge does not say. */
  readonly account: string | null;
  /** By which id the forge's deliveries name it; null or omitted: the forge does not say. */
  readonly accountId?: string | null;
  /** The name by which people see it, if that is not `account`; null or omitted: the forge does not say. */
  readonly accountName?: string | null;
  readonly problems: readonly ConnectionProblem[];
  /** The page that installs an App on further accounts; null unless it is an App. */
  readonly installUrl?: string | null;
}

/** Most problems that are kept of a check. */
const mostProblems = 20;

/** The state that follows from what is missing. */
export function connectionStateOf(problems: readonly ConnectionProblem[]): ConnectionState {
  if (problems.some(({ essential }) => essential)) return "broken";
  return problems.length === 0 ? "ok" : "degraded";
}

/** The problems that are kept and shown: the essential ones first, texts of the forge bounded. */
export function boundedProblems(problems: readonly ConnectionProblem[]): ConnectionProblem[] {
  const cut = (value: string): string => value.slice(0, 1_000).replaceAll("\0", "").toWellFormed();
  return problems
    .toSorted((a, b) => Number(b.essential) - Number(a.essential))
    .slice(0, mostProblems)
    .map(({ missing, why, remedy, essential }) => ({
      missing: cut(missing),
      why: cut(why),
      remedy: cut(remedy),
      essential,
    }));
}

/** Whether a credential at a forge works, as its last check or use found it. */
export const connectionHealthSchema = z.object({
  state: z.enum(connectionStates),
  checkedAt: z.iso.datetime(),
  problems: z.array(connectionProblemSchema),
});
/** See `connectionHealthSchema`. */
export type ConnectionHealth = z.infer<typeof connectionHealthSchema>;

/** A connection as the API shows it: without its credential. */
export const connectionSchema = z.object({
  id: z.uuid(),
  kind: z.enum(forgeKinds),
  name: z.string(),
  webUrl: z.string(),
  apiUrl: z.string().nullable(),
  credential: z.enum(connectionCredentials),
  account: z.string().nullable().meta({ description: "Whose the credential is; null: the forge does not say." }),
  installUrl: z.string().nullable().meta({ description: "Where its GitHub App is installed on further accounts." }),
  mention: z.string().nullable().meta({ description: "The word that calls Offstage; null: OFFSTAGE_MENTION." }),
  allowedBots: z
    .array(z.string())
    .nullable()
    .meta({ description: "Bots that may steer sessions; null: OFFSTAGE_ALLOWED_BOTS." }),
  workItemRepositories: z
    .record(z.string(), z.string())
    .nullable()
    .default(null)
    .meta({ description: "Repositories that work items are about, by their projects; null: those of their names." }),
  hookUrl: z.string().meta({ description: "The address that the forge's webhook must have." }),
  previousSecretUntil: z.iso.datetime().nullable().meta({
    description: "Until when deliveries that are signed with the webhook secret before are accepted.",
  }),
  health: connectionHealthSchema,
  createdAt: z.iso.datetime(),
  updatedAt: z.iso.datetime(),
});
/** See `connectionSchema`. */
export type Connection = z.infer<typeof connectionSchema>;

/** Answer to a creation and to a rotation of the webhook secret: the only answers that contain the secret. */
export const connectionWithSecretSchema = connectionSchema.extend({
  webhookSecret: z.string().meta({ description: "For the forge's webhook. Never shown again." }),
});

/** Answer to a deletion. */
export const deletedConnectionSchema = connectionSchema.extend({
  repositories: z.number().int().meta({
    description:
      "Connected repositories that it served: from now on the operator's configuration is used for them, if it has one.",
  }),
});
