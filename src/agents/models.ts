import type { ModelProviders } from "../domain/agents/model.ts";

/** The provider of a model, with its address and key. */
export interface ModelChoice {
  readonly provider: keyof ModelProviders;
  /** The name as the provider knows it. */
  readonly model: string;
  readonly apiKey: string | undefined;
  readonly baseUrl: string | undefined;
}

/**
 * Models of sessions that name none: coding models that the vendors' own harnesses and the AI SDK know, as of November
 * 2026.
 */
export const defaultModels = {
  anthropic: "claude-sonnet-5-5",
  openai: "gpt-5.6-sol",
  google: "gemini-3.1-pro-preview",
} as const;

const families: readonly (readonly [keyof typeof defaultModels, RegExp])[] = [
  ["anthropic", /^claude/u],
  ["openai", /^(?:gpt|o\d|codex)/u],
  ["google", /^gemini/u],
];

/** Message if no provider is configured, with the remedy. */
export const noModel =
  "no model is configured: set ANTHROPIC_API_KEY, OPENAI_API_KEY or GEMINI_API_KEY, or OFFSTAGE_MODEL_BASE_URL and OFFSTAGE_MODEL";

/**
 * Finds the provider of a model. `<provider>/<model>` names a configured provider; else the name's family decides
 * (`claude…`, `gpt…`, `gemini…`), and every other name goes to the compatible provider, whose own names may contain
 * slashes. Null if the provider is not configured.
 */
export function chooseModel(models: ModelProviders, model: string): ModelChoice | null {
  const slash = model.indexOf("/");
  const prefix = model.slice(0, Math.max(slash, 0));
  if (isProvider(prefix) && models[prefix] !== undefined) return choiceOf(models, prefix, model.slice(slash + 1));
  const family = families.find(([provider, name]) => name.test(model) && models[provider] !== undefined)?.[0];
  const provider = family ?? (["compatible", "anthropic", "openai", "google"] as const).find((id) => models[id]);
  return provider === undefined ? null : choiceOf(models, provider, model);
}

function choiceOf(models: ModelProviders, provider: keyof ModelProviders, model: string): ModelChoice {
  return { provider, model, apiKey: models[provider]?.apiKey, baseUrl: models[provider]?.baseUrl };
}

function isProvider(name: string): name is keyof ModelProviders {
  return name === "anthropic" || name === "openai" || name === "google" || name === "compatible";
}

/** The default model of the first configured provider; a compatible provider with a configured model comes first. */
export function defaultModelOf(models: ModelProviders): string | null {
  if (models.compatible?.model !== undefined) return models.compatible.model;
  const provider = (["anthropic", "openai", "google"] as const).find((id) => models[id] !== undefined);
  return provider === undefined ? null : defaultModels[provider];
}

/**
 * Base address as AI SDK packages expect it: with the version. `ANTHROPIC_BASE_URL` and `GOOGLE_GEMINI_BASE_URL` have
 * none, as the vendors' own programs read them; `OPENAI_BASE_URL` has one.
 */
export function sdkBaseUrl({ provider, baseUrl }: Pick<ModelChoice, "provider" | "baseUrl">): string | undefined {
  const url = baseUrl?.replace(/\/+$/u, "");
  if (url === undefined || /\/v\d\w*$/u.test(url)) return url;
  if (provider === "anthropic") return `${url}/v1`;
  return provider === "google" ? `${url}/v1beta` : url;
}
