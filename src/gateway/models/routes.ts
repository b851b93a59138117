import { posix } from "node:path";
import type { ModelProviderId, ModelProviders } from "../../domain/model.ts";
import { sendingPaths, type OperationName } from "../bodies/operations.ts";
import { RequestRefusedError } from "../refusal.ts";

/** Where a request for a model goes, and what opens the door there. */
export interface ModelRoute {
  readonly provider: ModelProviderId;
  /** What is asked; null if models are only read of. */
  readonly operation: OperationName | null;
  /** The model that the path names, as Gemini's do. */
  readonly pathModel: string | null;
  /** The operation's path, without the provider and without a query. */
  readonly path: string;
  readonly url: URL;
  readonly headers: Readonly<Record<string, string>>;
  /** It is the maker's own address, whose errors cost nothing: what stands between may lose an answer that is billed. */
  readonly isMakers: boolean;
}

interface ProviderRoutes {
  /** Without a version. */
  readonly base: string;
  /** Part of the path that the base address is written with or without. */
  readonly version: RegExp;
  /** What a harness reads of models: a key opens more, and by other methods lists and removes. */
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

export const modelPrefix = "/model/";

/** The address of a provider as the sandbox sees it, written as its makers' programs expect it. */
export function modelBaseUrl(origin: string, provider: ModelProviderId): string {
  const url = `${origin}${modelPrefix}${provider}`;
  return provider === "openai" || provider === "compatible" ? `${url}/v1` : url;
}

/**
 * Compares the path as it is written: one that would be another after decoding or normalising (`..`, `//`, `%2f`, `;`, `\`)
 * is in no list.
 * @throws RequestRefusedError for a provider that is not configured, and for what is no request of a model
 */
export function routeModelRequest(
  providers: ModelProviders,
  { method, url: requestUrl = "" }: { readonly method?: string | undefined; readonly url?: string | undefined },
): ModelRoute {
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

/** What may stand in a query, and how it may look. */
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
    const looks = Object.hasOwn(parameters, name) ? parameters[name] : undefined;
    if (isRepeated || (name !== "key" && looks?.test(value) !== true))
      throw new RequestRefusedError(
        400,
        `the parameter ${JSON.stringify(name.slice(0, 50))} is not known here, or has a value that is not`,
      );
  }
  // Gemini's key may be there: it is the session's token.
  return given.filter(([name]) => name !== "key");
}

/** An address that is written with a version, or with another path, keeps it. */
function upstreamOf(baseUrl: string, ofBase: RegExp, path: string): string {
  const base = baseUrl.replace(/\/+$/u, "");
  return ofBase.test(base) ? `${base}${path.replace(/^\/v1(?:beta|alpha)?/u, "")}` : `${base}${path}`;
}
