import { refuseUnlessAllowed } from "../refusal.ts";

/**
 * Words in names of models that search the web, fetch addresses or run code on their own, without a tool in the request
 * that could be refused; and in names that turn this on, or refer to settings stored at the provider. Whole words
 * count, in any case and behind any prefix, so that future models are refused too: an operator can allow exceptions.
 */
const words = [
  // OpenAI's `-search-preview`, `-search-api` and `-deep-research`; Jina's; names of many relays.
  "(?:web|deep)?-?search(?:gpt|ing)?",
  "(?:deep-?)?research(?:er)?",
  "brows(?:e|er|ing)",
  "ground(?:ed|ing)",
  // OpenRouter's `:online`, NanoGPT's `:online/…`, and older ones of Perplexity.
  "online",
  // Perplexity
  "sonar",
  "pplx",
  // Groq
  "compound",
  "exa",
  // Zhipu's, with built-in tools.
  "alltools",
  "assistant",
  // Volcengine's applications, which contain tools and knowledge.
  "bot",
].join("|");
const searching = new RegExp(`(?<![a-z0-9])(?:${words})(?![a-z0-9])`, "iu");
/** Venice's `:enable_web_search=on`, and OpenRouter's presets. */
const settings = /=|@preset(?:\/|$)/iu;

/**
 * Refuses models that search on their own.
 * @param permits what the operator allowed by name
 * @throws RequestRefusedError
 */
export function requireNoSearch(model: string, permits: readonly string[]): void {
  if (searching.test(model) || settings.test(model))
    refuseUnlessAllowed(
      permits,
      `model:${model}`,
      `the model ${model} may search by itself, outside of the sandbox and its list of hosts`,
    );
}
