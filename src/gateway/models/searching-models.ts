import { refuseUnlessAllowed } from "../refusal.ts";

/**
 * Models that search for what they answer, read addresses or run code by themselves, with no tool in the request that could be
 * refused; and names that turn that on, or stand for settings that the provider has stored. Whole words of a name count, in any
 * capitals and behind any prefix, so that a model of tomorrow is refused too: an operator can allow what is none.
 */
const words = [
  // OpenAI's `-search-preview`, `-search-api` and `-deep-research`; Jina's; the names of many relays.
  "(?:web|deep)?-?search(?:gpt|ing)?",
  "(?:deep-?)?research(?:er)?",
  "brows(?:e|er|ing)",
  "ground(?:ed|ing)",
  // OpenRouter's `:online`, NanoGPT's `:online/…`, Perplexity's of old.
  "online",
  // Perplexity
  "sonar",
  "pplx",
  // Groq
  "compound",
  "exa",
  // Zhipu's, with tools of their own.
  "alltools",
  "assistant",
  // Volcengine's applications, which hold tools and knowledge.
  "bot",
].join("|");
const searching = new RegExp(`(?<![a-z0-9])(?:${words})(?![a-z0-9])`, "iu");
/** Venice's `:enable_web_search=on`, and OpenRouter's presets. */
const settings = /=|@preset(?:\/|$)/iu;

/**
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
