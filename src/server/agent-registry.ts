import type { Provider } from "../agents/harness.ts";
import { createProviders } from "../agents/providers.ts";
import type { Config } from "../config/config.ts";

/** Makes the providers of agents: the built-in ones and those of the operator. */
export function createAgentRegistry(config: Config): Provider[] {
  return createProviders({ models: config.models, custom: config.customProviders });
}

/** The operator's default agent, or the first provider that can run, with its default model; null if none can. */
export async function chooseDefaultAgent(config: Config, providers: readonly Provider[]): Promise<string | null> {
  if (config.defaultAgent !== null) return config.defaultAgent;
  for (const provider of providers) {
    if ((await provider.problem()) !== null) continue;
    return provider.defaultModel === null ? provider.id : `${provider.id}:${provider.defaultModel}`;
  }
  return null;
}
