import type { ModelProviderId, ModelProviders } from "../domain/model.ts";

/** Where a request for a model goes, and what opens the door there. */
export interface ModelRoute {
  readonly provider: ModelProviderId;
  /** The operation, without the provider and without a query. */
  readonly path: string;
  readonly url: URL;
  readonly headers: Readonly<Record<string, string>>;
}

interface ProviderRoutes {
  /** Without a version. */
  readonly base: string;
  /** Part of the path that the base address is written with or without. */
  readonly version: RegExp;
  /** What a harness sends to a model, and what it reads of models: a key opens more, and by other methods lists and removes. */
  readonly sends: RegExp;
  readonly reads: RegExp;
  readonly key: (apiKey: string) => Record<string, string>;
}

const bearer = (apiKey: string) => ({ authorization: `Bearer ${apiKey}` });
const sentToOpenAi = /^\/v1\/(?:responses(?:\/compact)?|chat\/completions|completions|embeddings)$/u;
const models = /^\/v1\/models(?:\/[\w.:-]+)?$/u;

const routes: Readonly<Record<ModelProviderId, ProviderRoutes>> = {
  anthropic: {
    base: "https://api.anthropic.com",
    version: /\/v1$/u,
    sends: /^\/v1\/messages(?:\/count_tokens)?$/u,
    reads: models,
    key: (apiKey) => ({ "x-api-key": apiKey }),
  },
  openai: { base: "https://api.openai.com", version: /\/v1$/u, sends: sentToOpenAi, reads: models, key: bearer },
  google: {
    base: "https://generativelanguage.googleapis.com",
    version: /\/v1(?:beta|alpha)?$/u,
    sends:
      /^\/v1(?:beta|alpha)?\/models\/[\w.-]+:(?:generateContent|streamGenerateContent|countTokens|embedContent|batchEmbedContents)$/u,
    reads: /^\/v1(?:beta|alpha)?\/models(?:\/[\w.-]+)?$/u,
    key: (apiKey) => ({ "x-goog-api-key": apiKey }),
  },
  compatible: { base: "", version: /\/v1$/u, sends: sentToOpenAi, reads: models, key: bearer },
};

export const modelPrefix = "/model/";

/** The address of a provider as the sandbox sees it, written as its makers' programs expect it. */
export function modelBaseUrl(origin: string, provider: ModelProviderId): string {
  const url = `${origin}${modelPrefix}${provider}`;
  return provider === "openai" || provider === "compatible" ? `${url}/v1` : url;
}

/** Null for a provider that is not configured, and for a path that is no request of a model. */
export function routeModelRequest(
  providers: ModelProviders,
  { method, url: requestUrl = "" }: { readonly method?: string | undefined; readonly url?: string | undefined },
): ModelRoute | null {
  const [, name = "", path = "", query = ""] = /^\/model\/([a-z]+)(\/[^?#]*)(?:\?(.*))?$/u.exec(requestUrl) ?? [];
  const provider = (["anthropic", "openai", "google", "compatible"] as const).find((id) => id === name);
  if (provider === undefined) return null;
  const configured = providers[provider];
  const { base, version, sends, reads, key } = routes[provider];
  const isKnown = (method === "POST" && sends.test(path)) || (method === "GET" && reads.test(path));
  if (configured === undefined || !isKnown) return null;
  const search = new URLSearchParams(query);
  // Gemini's key may also be there.
  search.delete("key");
  const url = new URL(upstreamOf(configured.baseUrl ?? base, version, path));
  url.search = search.toString();
  return { provider, path, url, headers: configured.apiKey === undefined ? {} : key(configured.apiKey) };
}

/** An address that is written with a version, or with another path, keeps it. */
function upstreamOf(baseUrl: string, version: RegExp, path: string): string {
  const base = baseUrl.replace(/\/+$/u, "");
  return version.test(base) ? `${base}${path.replace(/^\/v1(?:beta|alpha)?/u, "")}` : `${base}${path}`;
}

/** The model that a request asks: in its path where it is Gemini's, else in its body. Null where it asks none. */
export function modelOf({ provider, path }: ModelRoute, body: Buffer): string | null {
  if (provider === "google") return /\/models\/([\w.-]+):/u.exec(path)?.[1] ?? null;
  if (body.length === 0) return null;
  try {
    const { model } = JSON.parse(body.toString("utf8")) as { model?: unknown };
    return typeof model === "string" ? model : "";
  } catch {
    // What is no JSON names no model, and fits no list of models.
    return "";
  }
}
