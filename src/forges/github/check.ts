import { z } from "zod";
import type { ConnectionCheck, ConnectionProblem } from "../../domain/repositories/connection.ts";
import { accountIdOf } from "../account-id.ts";
import type { ForgeSettings } from "../forge.ts";
import { anyAnswer, callForge, type ForgeAnswer } from "../http/http.ts";
import { wordsOf } from "../http/refusal.ts";
import type { InstallationPermissions } from "./access.ts";
import { createAppCall, UnusableKey } from "./app.ts";

type GitHubSettings = Extract<ForgeSettings, { kind: "github" }>;
/** Fields used of an App (https://docs.github.com/rest/apps/apps#get-the-authenticated-app). */
const permissionsSchema = z.record(z.string(), z.string()).catch({});
const appSchema = z.object({
  slug: z.string().optional().catch(undefined),
  name: z.string().catch("App"),
  html_url: z.string().max(2_000),
  permissions: permissionsSchema,
  events: z.array(z.string()).catch([]),
});
/** Fields used of an installation (https://docs.github.com/rest/apps/apps#list-installations-for-the-authenticated-app). */
const installationSchema = z.object({
  account: z.object({ login: z.string().optional(), slug: z.string().optional() }).nullish().catch(null),
  permissions: permissionsSchema,
  suspended_at: z.string().nullish().catch(null),
});
/** Fields used of a repository (https://docs.github.com/rest/repos/repos#list-repositories-for-the-authenticated-user). */
const repositorySchema = z.object({
  full_name: z.string().regex(/^[\w.-]+\/[\w.-]+$/u),
  permissions: z.object({ push: z.boolean().optional() }).optional(),
  archived: z.boolean().catch(false),
});
type Repository = z.infer<typeof repositorySchema>;

/** The items of a list that are as documented. */
function itemsOf<Item extends z.ZodType>(schema: Item, body: unknown): z.infer<Item>[] {
  return (Array.isArray(body) ? body : []).flatMap((item) => {
    const { data } = schema.safeParse(item);
    return data === undefined ? [] : [data];
  });
}

type Ask = (method: "GET" | "POST", path: string, body?: unknown) => Promise<ForgeAnswer>;

/** A permission that an App or a fine-grained token needs, with its purpose. */
interface Permission {
  readonly name: string;
  /** As GitHub's pages write it. */
  readonly label: string;
  readonly level: "read" | "write";
  readonly why: string;
  readonly essential: boolean;
}

/** Permissions of an App (https://docs.github.com/rest/authentication/permissions-required-for-github-apps). */
const permissions: readonly Permission[] = [
  {
    name: "contents",
    label: "Contents",
    level: "write",
    why: "Sessions fetch repositories and push their branches.",
    essential: true,
  },
  {
    name: "pull_requests",
    label: "Pull requests",
    level: "write",
    why: "Sessions find, open and follow pull requests.",
    essential: true,
  },
  {
    name: "issues",
    label: "Issues",
    level: "write",
    why: "Automations listen to issues, and are answered in them and in pull requests.",
    essential: false,
  },
  {
    name: "checks",
    label: "Checks",
    level: "read",
    why: "A check that fails on a session's pull request comes back to it.",
    essential: false,
  },
  {
    name: "actions",
    label: "Actions",
    level: "read",
    why: "The end of a failed workflow's log comes back to the session.",
    essential: false,
  },
  {
    name: "statuses",
    label: "Commit statuses",
    level: "write",
    why: "Automations listen to commit statuses, and can set them.",
    essential: false,
  },
  {
    name: "workflows",
    label: "Workflows",
    level: "write",
    why: "GitHub refuses pushes that change files in .github/workflows without it.",
    essential: false,
  },
];

/** The permissions and events of an App that Offstage registers by its manifest. */
export const appPermissions: InstallationPermissions = Object.fromEntries(
  permissions.map(({ name, level }) => [name, level]),
);

/** Events that triggers can listen to (https://docs.github.com/webhooks/webhook-events-and-payloads). */
export const appEvents = [
  "issues",
  "issue_comment",
  "pull_request",
  "pull_request_review",
  "pull_request_review_comment",
  "push",
  "check_suite",
  "status",
  "workflow_run",
  "release",
] as const;

/** Repositories on which a fine-grained token is tried before it counts as one that may not push. */
const triedRepositories = 5;
/** A warning comes if a token ends sooner, in ms. */
const soonMs = 14 * 24 * 60 * 60_000;

/** Asks GitHub whose a token or App is, and what it may. */
export async function checkGitHub(settings: GitHubSettings, signal: AbortSignal): Promise<ConnectionCheck> {
  const { app, token = "", apiUrl } = settings;
  const request = (method: "GET" | "POST", body: unknown) => ({
    method,
    signal,
    ...anyAnswer,
    ...(body !== undefined && { body }),
  });
  if (app === undefined) {
    const headers = {
      Accept: "application/vnd.github+json",
      "X-GitHub-Api-Version": "2022-11-28",
      Authorization: `Bearer ${token}`,
    };
    return checkToken((method, path, body) => callForge(`${apiUrl}${path}`, { ...request(method, body), headers }));
  }
  const call = createAppCall(app, apiUrl);
  try {
    return await checkApp((method, path, body) => call(path, request(method, body)));
  } catch (error) {
    if (!(error instanceof UnusableKey)) throw error;
    return refused(
      "the App's private key",
      "It can't be used to sign.",
      "Send the .pem file that GitHub gave for the App.",
    );
  }
}

function refused(missing: string, why: string, remedy: string): ConnectionCheck {
  return { account: null, problems: [{ missing, why, remedy, essential: true }] };
}

/** The check's result for an unexpected answer to "who am I?". */
function notKnown({ status, body }: ForgeAnswer, what: string): ConnectionCheck {
  if (status === 401 || status === 403) {
    return refused(`a valid ${what}`, `GitHub refused it: ${wordsOf(body)}.`, `Make a new ${what} and send it.`);
  }
  const why = `The address answered ${status} and not as GitHub's API does: ${wordsOf(body)}.`;
  return refused("GitHub's API", why, "Check apiUrl: it is https://api.github.com, or https://<server>/api/v3.");
}

async function checkToken(ask: Ask): Promise<ConnectionCheck> {
  const answer = await ask("GET", "/user");
  const { id, login } = (answer.body ?? {}) as { id?: unknown; login?: unknown };
  if (answer.status !== 200 || typeof login !== "string") return notKnown(answer, "token");
  const scopes = answer.headers.get("x-oauth-scopes");
  const problems = scopes === null ? await fineGrainedProblems(ask) : classicProblems(scopes);
  return { account: login, accountId: accountIdOf(id), problems: [...problems, ...endsSoon(answer.headers)] };
}

/** Scopes of a classic token (https://docs.github.com/apps/oauth-apps/building-oauth-apps/scopes-for-oauth-apps). */
function classicProblems(header: string): ConnectionProblem[] {
  const scopes = new Set(header.split(",").map((scope) => scope.trim()));
  const remedy = "Add the scope in GitHub's settings of the token, or make a new token with it.";
  const problems: ConnectionProblem[] = [];
  if (!scopes.has("repo")) {
    const why = scopes.has("public_repo")
      ? "The token has public_repo only: sessions can't fetch or push private repositories, nor open pull requests on them."
      : "Sessions can't push branches and open pull requests.";
    problems.push({ missing: "repo", why, remedy, essential: !scopes.has("public_repo") });
  }
  if (!scopes.has("workflow")) {
    const why = "GitHub refuses pushes that change files in .github/workflows without it.";
    problems.push({ missing: "workflow", why, remedy, essential: false });
  }
  return problems;
}

/**
 * GitHub has no call for the rights of a fine-grained token. So the check sends requests without any of their fields,
 * which can't succeed: 422 means that the token has the right, 403 that it lacks it. Nothing is made.
 */
async function fineGrainedProblems(ask: Ask): Promise<ConnectionProblem[]> {
  const remedy = "Add the permission in GitHub's settings of the token.";
  const listed = await ask("GET", "/user/repos?per_page=50&sort=pushed");
  const repositories = itemsOf(repositorySchema, listed.body)
    .filter((repository) => repository.permissions?.push === true && !repository.archived)
    .slice(0, triedRepositories);
  const [first] = repositories;
  if (first === undefined) {
    const why = "The token sees no repository that its user may push to.";
    return [{ missing: "access to a repository", why, remedy: "Give the token repositories.", essential: false }];
  }
  let pushable: Repository | null = null;
  for (const repository of repositories) {
    if ((await ask("POST", `/repos/${repository.full_name}/git/refs`, {})).status !== 403) {
      pushable = repository;
      break;
    }
  }
  const problemOf = (name: string, on: string): ConnectionProblem[] =>
    permissions
      .filter((permission) => permission.name === name)
      .map(({ label, level, why, essential }) => ({
        missing: `${label}: ${level} (on ${on})`,
        why,
        remedy,
        essential,
      }));
  const on = (pushable ?? first).full_name;
  const problems = pushable === null ? problemOf("contents", on) : [];
  if ((await ask("POST", `/repos/${on}/pulls`, {})).status === 403) problems.push(...problemOf("pull_requests", on));
  if ((await ask("POST", `/repos/${on}/labels`, {})).status === 403) problems.push(...problemOf("issues", on));
  // No commit has this name.
  const status = await ask("POST", `/repos/${on}/statuses/${"0".repeat(40)}`, {});
  if (status.status === 403) problems.push(...problemOf("statuses", on));
  return problems;
}

/** GitHub reports the end of a token that expires. */
function endsSoon(headers: Headers): ConnectionProblem[] {
  const expiration = headers.get("github-authentication-token-expiration");
  const at = expiration === null ? Number.NaN : Date.parse(expiration.replace(" UTC", "Z").replace(" ", "T"));
  if (!(at - Date.now() < soonMs)) return [];
  const missing = `a token that lives longer than until ${new Date(at).toISOString().slice(0, 10)}`;
  const why = "From then on GitHub refuses it, and sessions fail.";
  return [{ missing, why, remedy: "Make a new token and send it.", essential: false }];
}

async function checkApp(ask: Ask): Promise<ConnectionCheck> {
  const answer = await ask("GET", "/app");
  const { data: app } = appSchema.safeParse(answer.body);
  if (answer.status !== 200 || app === undefined) return notKnown(answer, "App id and private key");
  const granted = app.permissions;
  const problems = missingOf(granted, "", `Add the permission at ${app.html_url}.`);
  const events = appEvents.filter((event) => !app.events.includes(event));
  if (events.length > 0) {
    const why = "Automations can't be triggered by these events.";
    const remedy = `Subscribe to them at ${app.html_url}.`;
    problems.push({ missing: `events: ${events.join(", ")}`, why, remedy, essential: false });
  }
  const installUrl = `${app.html_url}/installations/new`;
  problems.push(...(await installationProblems(ask, granted, installUrl)));
  return { account: app.slug ?? app.name, problems, installUrl };
}

/** @param on ` on acme`; empty: of the App itself */
function missingOf(granted: InstallationPermissions, on: string, remedy: string): ConnectionProblem[] {
  return permissions
    .filter(({ name, level }) => granted[name] !== "write" && (level === "write" || granted[name] !== "read"))
    .map(({ label, level, why, essential }) => ({ missing: `${label}: ${level}${on}`, why, remedy, essential }));
}

async function installationProblems(
  ask: Ask,
  app: InstallationPermissions,
  installUrl: string,
): Promise<ConnectionProblem[]> {
  const answer = await ask("GET", "/app/installations?per_page=100");
  if (answer.status !== 200 || !Array.isArray(answer.body)) {
    return [
      { missing: "the list of installations", why: wordsOf(answer.body), remedy: "Check again.", essential: false },
    ];
  }
  const installations = itemsOf(installationSchema, answer.body);
  if (installations.length === 0) {
    const why = "The App has no repositories yet.";
    return [{ missing: "an installation", why, remedy: `Install the App at ${installUrl}.`, essential: false }];
  }
  return installations.flatMap(({ account, suspended_at: suspendedAt, permissions: given }) => {
    const name = account?.login ?? account?.slug ?? "an account";
    if (suspendedAt != null) {
      const why = `The installation on ${name} is suspended: its repositories can't be reached.`;
      return [
        {
          missing: `the installation on ${name}`,
          why,
          remedy: "Let it go on in the account's settings.",
          essential: false,
        },
      ];
    }
    // The App's own missing permissions are reported once.
    return missingOf(given, "", "")
      .filter(({ missing }) => !missingOf(app, "", "").some((problem) => problem.missing === missing))
      .map((problem) => ({
        ...problem,
        missing: `${problem.missing} (on ${name})`,
        remedy: `Accept the App's new permissions in the settings of ${name}.`,
        essential: false,
      }));
  });
}
