import { azurePath, azureSegments } from "../../domain/repositories/azure-address.ts";
import { SessionError } from "../../domain/errors/errors.ts";
import type { RepositoryAddress } from "../../domain/repositories/repository.ts";
import type { ForgeSettings } from "../forge.ts";
import { callForge, type ForgeAnswer, type ForgeRequest } from "../http/http.ts";
import { pathOn } from "../serves.ts";

/** The settings of an Azure DevOps, Services or Server. */
export type AzureSettings = Extract<ForgeSettings, { kind: "azure" }>;

/**
 * The version of the API, which Azure DevOps Server 2022 has too
 * (https://learn.microsoft.com/rest/api/azure/devops/#api-and-tfs-version-mapping).
 */
const apiVersion = "7.0";

/** A repository by its names; a collection is what Services call an organization. */
export interface AzureRepository {
  readonly collection: string;
  readonly project: string;
  readonly repository: string;
}

/** Options of a call; `version` for what is a preview still, as `7.0-preview.3`. */
export type CallOptions = Pick<ForgeRequest, "body" | "onceWithinMs" | "takesPage"> & { readonly version?: string };

/** The API of one server. */
export interface AzureApi {
  readonly host: string;
  readonly headers: Readonly<Record<string, string>>;
  /** @throws SessionError repository_not_found if it is no address of a repository */
  repositoryOf(address: RepositoryAddress): AzureRepository;
  /** The address of its page. */
  pageOf(repository: AzureRepository): string;
  /** The URL of a path below a collection, with the version of the API. */
  urlOf(collection: string, path: string, version?: string): string;
  /** The URL of a path below a repository. */
  repositoryUrl(repository: AzureRepository, path: string): string;
  /** Calls a URL of these. For a list, the answer's body is its items. */
  call(
    url: string,
    method: ForgeRequest["method"],
    signal: AbortSignal,
    options?: Omit<CallOptions, "version">,
  ): Promise<ForgeAnswer>;
}

/**
 * Calls Azure DevOps as it is called with a personal access token: by basic authentication, whatever the user's name
 * (https://learn.microsoft.com/azure/devops/organizations/accounts/use-personal-access-tokens-to-authenticate).
 */
export function createAzureApi({ webUrl, apiUrl, token }: AzureSettings): AzureApi {
  const { host } = new URL(webUrl);
  const headers: Record<string, string> = {
    Accept: "application/json",
    // It says 401 then, instead of sending to a page to sign in.
    "X-TFS-FedAuthRedirect": "Suppress",
    ...(token !== undefined && { Authorization: `Basic ${Buffer.from(`:${token}`).toString("base64")}` }),
  };
  const urlOf: AzureApi["urlOf"] = (collection, path, version = apiVersion) => {
    const url = new URL(`${apiUrl}/${encodeURIComponent(collection)}${path}`);
    url.searchParams.set("api-version", version);
    return url.href;
  };
  return {
    host,
    headers,
    repositoryOf(address) {
      const found = azureSegments(pathOn(webUrl, address).split("/").map(decoded));
      if (found === null) throw noRepository(host, address);
      return found;
    },
    pageOf: (repository) => `${webUrl}/${azurePath(repository)}`,
    urlOf,
    repositoryUrl: ({ collection, project, repository }, path) =>
      urlOf(
        collection,
        `/${encodeURIComponent(project)}/_apis/git/repositories/${encodeURIComponent(repository)}${path}`,
      ),
    call: async (url, method, signal, options = {}) =>
      asForge(
        await callForge(url, {
          method,
          headers,
          signal,
          ...options,
          takesPage: (status, text) => wantsSignIn(status, text) || options.takesPage?.(status, text) === true,
        }),
      ),
  };
}

/** The address of the identities' service, which Services have at a separate host. */
export function identitiesUrl({ apiUrl }: Pick<AzureSettings, "apiUrl">, collection: string, query: string): string {
  const server = apiUrl === "https://dev.azure.com" ? "https://vssps.dev.azure.com" : apiUrl;
  return `${server}/${encodeURIComponent(collection)}/_apis/identities?${query}&api-version=${apiVersion}`;
}

/** As other forges answer: a list is its items, and what wants a person to sign in is a refusal of the token. */
function asForge(answer: ForgeAnswer): ForgeAnswer {
  const { status, headers, body } = answer;
  const isPage = headers.get("content-type")?.startsWith("text/html") === true;
  // `callForge` takes no other page.
  if (status === 203 || (status === 302 && isSignIn(headers)) || (status === 200 && isPage && body === null)) {
    const message =
      "it shows its page to sign in instead of an answer, as it does for a token that is wrong or has ended";
    return { ...answer, status: 401, body: { message } };
  }
  if (status === 401 && !hasMessage(body)) {
    const message = "it does not take the token, which is wrong, has ended, or lacks the scope";
    return { ...answer, body: { message } };
  }
  const { count, value } = (body ?? {}) as { readonly count?: unknown; readonly value?: unknown };
  // Refusals before a request is parsed have this form.
  const { Message: said } = (value ?? {}) as { readonly Message?: unknown };
  if (status >= 400 && typeof said === "string") return { ...answer, body: { message: said } };
  return typeof count === "number" && Array.isArray(value) ? { ...answer, body: value } : answer;
}

const signIn = /_signin|login\.(?:live|microsoftonline)\.com|spsprod/iu;

function isSignIn(headers: Headers): boolean {
  return signIn.test(headers.get("location") ?? "");
}

/** Whether a page in the place of an answer is that for people who are not signed in: status 203, or its words and addresses. */
function wantsSignIn(status: number, text: string): boolean {
  return status === 203 || signIn.test(text) || /\bsign in\b/iu.test(text);
}

function hasMessage(body: unknown): boolean {
  return typeof (body as { message?: unknown } | null)?.message === "string";
}

function decoded(segment: string): string {
  try {
    return decodeURIComponent(segment);
  } catch {
    return segment;
  }
}

function noRepository(host: string, { cloneUrl }: RepositoryAddress): SessionError {
  return new SessionError({
    code: "repository_not_found",
    reason: `${cloneUrl} is no address of a repository on ${host}: such an address has /_git/ and the repository's name at its end.`,
    retryable: false,
    remedy: "Start a session with the address that Azure DevOps shows for cloning.",
  });
}
