import { posix } from "node:path";
import type { ModelProviderId, ModelProviders } from "../../domain/agents/model.ts";
import { sendingPaths, type OperationName } from "../bodies/operations.ts";
import { RequestRefusedError } from "../refusal.ts";

/** The address and credentials of a request to a model. */
export interface UpstreamRoute {
  readonly provider: ModelProviderId;
  /** Null for a request that only reads about models. */
  readonly operation: OperationName | null;
  /** The model that the path names, as Gemini's paths do. */
  readonly pathModel: string | null;
  /** The operation's path, without the provider's prefix and the query. */
  readonly path: string;
  readonly url: URL;
  readonly headers: Readonly<Record<string, string>>;
  /** Whether it is the vendor's own address, whose errors cost nothing: a relay may lose an answer that is billed. */
  readonly isMakers: boolean;
}

interface ProviderRoutes {
  /** Base address without a version. */
  readonly base: string;
  /** Part of the path that a configured base address may or may not include. */
  readonly version: RegExp;
  /** Paths that read about models: the key would also allow other lists, and deletions. */
  readonly reads: RegExp;
  readonly key: (apiKey: string) => Record<string, string>;
}

const bearer = (apiKey: string) => ({ authorization: `Bearer ${apiKey}` });
const models = /^\/v1\/models(?:\/[A-Za-z0-9][\w.:-]*)?$/u;
const version = /\/v1$/u;

const routes: Readonly<Record<ModelProviderId, ProviderRoutes>> = {
  anthropic: { base: "https://api.anthropic.com", version, reads: models, key: (apiKey) => ({ "x-api-key": apiKey }) },
  openai: { base: "https://api.openai.com", version, reads: models, key: bearer },
  google: {
    base: "https://generativelanguage.googleapis.com",
    version: /\/v1(?:beta|alpha)?$/u,
    reads: /^\/v1(?:beta|alpha)?\/models(?:\/[A-Za-z0-9][\w.-]*)?$/u,
    key: (apiKey) => ({ "x-goog-api-key": apiKey }),
  },
  compatible: { base: "", version, reads: models, key: bearer },
};

/** Begin of the paths of requests to models on the gateway. */
export const modelPrefix = "/model/";

/** Base address of a provider as the sandbox sees it, in the form that the vendor's own programs expect. */
export function modelBaseUrl(origin: string, provider: ModelProviderId): string {
  const url = `${origin}${modelPrefix}${provider}`;
  return provider === "openai" || provider === "compatible" ? `${url}/v1` : url;
}

/**
 * Finds a request's route. Compares the path as it is written: a path that decoding or normalising would change (`..`,
 * `//`, `%2f`, `;`, `\`) matches nothing.
 * @throws RequestRefusedError if the provider is not configured, or the path is not one of a request to a model
 */
export function routeModelRequest(
  providers: ModelProviders,
  { method, url: requestUrl = "" }: { readonly method?: string | undefined; readonly url?: string | undefined },
): UpstreamRoute {
  const [, name = "", path = "", query = ""] = /^\/model\/([a-z]+)(\/[\w.:/-]*)(?:\?([^#]*))?$/u.exec(requestUrl) ?? [];
  const provider = (["anthropic", "openai", "google", "compatible"] as const).find((id) => id === name);
  const configured = provider === undefined ? undefined : providers[provider];
  const nothing = new RequestRefusedError(404, "there is no such model provider or operation here");
  if (provider === undefined || configured === undefined || posix.normalize(path) !== path) throw nothing;
  const { base, version: ofBase, reads, key } = routes[provider];
  const sends = method === "POST" ? sendingPaths[provider].find(([pattern]) => pattern.test(path)) : undefined;
  if (sends === undefined && !(method === "GET" && reads.test(path))) throw nothing;
  const url = new URL(upstreamOf(configured.baseUrl ?? base, ofBase, path));
  for (const [parameter, value] of parametersOf(query)) url.searchParams.append(parameter, value);
  return {
    provider,
    operation: sends?.[1] ?? null,
    pathModel: sends?.[0].exec(path)?.[1] ?? null,
    path,
    url,
    headers: configured.apiKey === undefined ? {} : key(configured.apiKey),
    isMakers: configured.baseUrl === undefined,
  };
}

/** Allowed query parameters, and the form of their values. */
const parameters: Readonly<Record<string, RegExp>> = {
  alt: /^(?:sse|json)$/u,
  beta: /^true$/u,
  limit: /^\d{1,5}$/u,
  after_id: /^[\w.:-]{0,200}$/u,
  before_id: /^[\w.:-]{0,200}$/u,
  pageSize: /^\d{1,5}$/u,
  pageToken: /^[\w.=+/-]{0,500}$/u,
};

function parametersOf(query: string): [string, string][] {
  const given = [...new URLSearchParams(query)];
  for (const [index, [name, value]] of given.entries()) {
    const isRepeated = given.findIndex(([other]) => other === name) !== index;
    const pattern = Object.hasOwn(parameters, name) ? parameters[name] : undefined;
    if (isRepeated || (name !== "key" && pattern?.test(value) !== true))
      throw new RequestRefusedError(
        400,
        `the parameter ${JSON.stringify(name.slice(0, 50))} is not known here, or has a value that is not`,
      );
  }
  // Gemini's clients may send the key here: it is the session's token.
  return given.filter(([name]) => name !== "key");
}

/** Joins base address and path; a base address with a version or another path keeps it. */
function upstreamOf(baseUrl: string, ofBase: RegExp, path: string): string {
  const base = baseUrl.replace(/\/+$/u, "");
  return ofBase.test(base) ? `${base}${path.replace(/^\/v1(?:beta|alpha)?/u, "")}` : `${base}${path}`;
}
