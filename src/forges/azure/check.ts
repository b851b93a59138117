import type { ConnectionCheck, ConnectionProblem } from "../../domain/repositories/connection.ts";
import { accountIdOf } from "../account-id.ts";
import type { ForgeAnswer, ForgeRequest } from "../http/http.ts";
import { wordsOf } from "../http/refusal.ts";
import { accountOf, shownNameOf, userIdOf } from "./account.ts";
import { createAzureApi, identitiesUrl, type AzureApi, type AzureSettings } from "./api.ts";

/** No repository, project, person or work item has it. */
const nothing = "00000000-0000-0000-0000-000000000000";

/** A scope, and a request that a token without it is refused for that reason, and any other because there is no such thing. */
interface Trial extends ConnectionProblem {
  readonly method: ForgeRequest["method"];
  readonly url: (api: AzureApi, settings: AzureSettings, organization: string) => string;
}

const below =
  (path: string, version?: string): Trial["url"] =>
  (api, _, organization) =>
    api.urlOf(organization, path, version);

const trials: readonly Trial[] = [
  {
    missing: "Code: Read & write",
    why: "Sessions fetch repositories, push branches, and find, open and answer pull requests.",
    essential: true,
    method: "POST",
    url: below(`/${nothing}/_apis/git/repositories/${nothing}/pullrequests`),
    remedy: "Add the scope to the token, or make a new one.",
  },
  {
    missing: "Work Items: Read & write",
    why: "Answers in the discussion of a work item need it.",
    essential: false,
    method: "POST",
    url: below(`/${nothing}/_apis/wit/workItems/0/comments`, "7.0-preview.3"),
    remedy: "Add the scope to the token, if sessions are to answer there.",
  },
  {
    missing: "Build: Read",
    why: "The end of a failed build's log can't be read without it.",
    essential: false,
    method: "GET",
    url: below(`/${nothing}/_apis/build/builds/0/timeline`),
    remedy: "Add the scope to the token.",
  },
  {
    missing: "Identity: Read",
    why: "Whether a person may write to a repository can't be asked without it.",
    essential: false,
    method: "GET",
    url: (_, settings, organization) => identitiesUrl(settings, organization, `identityIds=${nothing}`),
    remedy: "Add the scope to the token.",
  },
];

/**
 * Asks Azure DevOps whose a token is, and tries each scope with a request for something that does not exist, so that nothing is made:
 * a personal access token can't be asked for its scopes with itself.
 */
export async function checkAzure(settings: AzureSettings, signal: AbortSignal): Promise<ConnectionCheck> {
  const organization = organizationIn(settings);
  if (organization === null) return { account: null, problems: [withoutOrganization(settings)] };
  const api = createAzureApi(settings);
  const user = await api.call(api.urlOf(organization, "/_apis/connectionData", "7.0-preview"), "GET", signal);
  const account = accountOf(user.body);
  if (user.status !== 200 || account === null) return { account: null, problems: [notKnown(user)] };
  const problems: ConnectionProblem[] = [];
  for (const { method, url, ...problem } of trials) {
    const answer = await api.call(
      url(api, settings, organization),
      method,
      signal,
      method === "POST" ? { body: {} } : {},
    );
    if (answer.status === 401 || answer.status === 403) problems.push(problem);
  }
  return { account, accountId: accountIdOf(userIdOf(user.body)), accountName: shownNameOf(user.body), problems };
}

/** The organization, or collection of a server, in the address; null: it ends before one. */
function organizationIn({ webUrl, apiUrl }: AzureSettings): string | null {
  const server = new URL(apiUrl).pathname.replace(/\/+$/u, "").toLowerCase();
  const path = new URL(webUrl).pathname;
  const rest = path.toLowerCase().startsWith(`${server}/`) ? path.slice(server.length) : path;
  const first = rest.split("/").find((segment) => segment !== "");
  return first === undefined ? null : decodeURIComponent(first);
}

function withoutOrganization({ webUrl }: AzureSettings): ConnectionProblem {
  return {
    missing: "an organization in the address",
    why: `${webUrl} names a server, and a token is checked in an organization (of a server of your own: a collection).`,
    remedy: "Connect an address such as https://dev.azure.com/<organization> or https://<server>/<collection>.",
    essential: true,
  };
}

function notKnown({ status, body }: ForgeAnswer): ConnectionProblem {
  if (status === 200 || status === 401 || status === 403) {
    const why = `The forge refused it: ${status === 200 ? "it knows no user of the token" : wordsOf(body)}.`;
    const remedy = "Make a new token for this organization and send it.";
    return { missing: "a valid token", why, remedy, essential: true };
  }
  const why = `The address answered ${status} and not as the API of Azure DevOps does: ${wordsOf(body)}.`;
  const remedy = "Check the organization's name, and apiUrl: it is the server's address without the organization.";
  return { missing: "the API of Azure DevOps", why, remedy, essential: true };
}
