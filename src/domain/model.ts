/** Where models are asked: as the configuration found it, or as a sandbox sees it, with the gateway's address and token. */
export interface ModelProviders {
  readonly anthropic?: { readonly apiKey: string; readonly baseUrl?: string };
  readonly openai?: { readonly apiKey: string; readonly baseUrl?: string };
  readonly google?: { readonly apiKey: string; readonly baseUrl?: string };
  /** Anything that speaks OpenAI's Chat Completions. */
  readonly compatible?: { readonly baseUrl: string; readonly apiKey?: string; readonly model?: string };
}

export type ModelProviderId = keyof ModelProviders;
export const modelProviderIds = ["anthropic", "openai", "google", "compatible"] as const;
