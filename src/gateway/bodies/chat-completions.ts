import {
  any,
  count,
  data,
  dataFields,
  dataUrl,
  file,
  flag,
  inline,
  list,
  model,
  object,
  oneOf,
  refused,
  type Shape,
  textOr,
  url,
  why,
} from "./shape.ts";
import { promptCache, reasoning } from "./responses.ts";

const cacheControl = object({ type: any, ttl: { scalar: { kind: "cacheLifetime" } } });

/** Part of a message. */
const part: Shape = object({
  type: oneOf(
    "block",
    why.unknown,
    "text",
    "image_url",
    "input_audio",
    "file",
    "refusal",
    "thinking",
    "redacted_thinking",
    "reasoning",
  ),
  image_url: { ...dataUrl, fields: { url: dataUrl, detail: data } },
  input_audio: object({ data: inline, format: any }, { holds: "sound" }),
  file: object({ file_data: inline, filename: any, file_id: file, file_url: url }),
  cache_control: cacheControl,
  ...dataFields("text", "refusal", "thinking", "signature", "data", "reasoning", "prompt_cache_breakpoint"),
});

const message: Shape = object({
  content: textOr(() => part),
  // Refers to a spoken answer stored at the provider.
  audio: refused("source:file", why.kept),
  // Search results or pages of a document, which some servers treat as content.
  annotations: list(() => refused("field:annotations", why.unknown)),
  cache_control: cacheControl,
  ...dataFields("role", "name", "tool_calls", "tool_call_id", "function_call", "refusal", "prefix"),
  // Reasoning of many vendors' models, which some servers expect back.
  ...dataFields("reasoning_content", "reasoning", "reasoning_text", "reasoning_opaque", "reasoning_details"),
  ...dataFields("thinking_blocks", "provider_specific_fields", "extra_content"),
});

/** If it has no type, its field says what it is. */
const tool = object(
  {
    type: oneOf("tool", why.tool, "function", "custom"),
    cache_control: cacheControl,
    function: object({
      cache_control: cacheControl,
      ...dataFields("name", "description", "parameters", "strict", "defer_loading"),
    }),
    custom: data,
  },
  { opensByType: true },
);

const streamOptions: Shape = object(
  { include_usage: flag("includeUsage"), include_obfuscation: data },
  { place: "streamOptions" },
);

/** OpenAI's Chat Completions with additions of compatible servers: platform.openai.com/docs/api-reference/chat. */
export const chatCompletions: Shape = object({
  model,
  messages: list(() => message, { counts: "turns" }),
  tools: list(() => tool, { counts: "tools" }),
  max_tokens: count("maxOutput"),
  max_completion_tokens: count("maxOutput"),
  n: count("choices"),
  stream: flag("stream"),
  stream_options: streamOptions,
  store: flag("store"),
  service_tier: oneOf("tier", why.price, "auto", "default", "flex"),
  modalities: list(() => oneOf("modality", why.price, "text")),
  audio: refused("modality:audio", why.price),
  web_search_options: refused("tool:web_search", why.tool),
  // Wrongly predicted tokens are billed like an answer.
  prediction: refused("field:prediction", why.price),
  reasoning,
  thinking_budget: count("thinking"),
  thinking: object({
    budget_tokens: count("thinking"),
    ...dataFields("type", "display", "effort", "keep", "clear_thinking"),
  }),
  prompt_cache_options: promptCache,
  // Not a template itself, which a server would execute.
  chat_template_kwargs: object(
    dataFields(
      "enable_thinking",
      "thinking",
      "thinking_budget",
      "reasoning_effort",
      "preserve_thinking",
      "clear_thinking",
    ),
  ),
  ...dataFields("tool_choice", "parallel_tool_calls", "functions", "function_call", "temperature", "top_p", "stop"),
  ...dataFields("presence_penalty", "frequency_penalty", "logit_bias", "logprobs", "top_logprobs", "seed"),
  ...dataFields("response_format", "reasoning_effort", "verbosity", "metadata", "user"),
  ...dataFields("safety_identifier", "prompt_cache_key", "prompt_cache_retention"),
  // Sampling options of Ollama, vLLM, SGLang, llama.cpp, OpenRouter, DeepSeek, Qwen and others.
  ...dataFields("top_k", "top_a", "min_p", "typical_p", "repetition_penalty", "length_penalty", "min_tokens"),
  ...dataFields("ignore_eos", "skip_special_tokens", "enable_thinking"),
  ...dataFields("include_reasoning", "reasoning_split", "tool_stream", "guided_json"),
  ...dataFields("guided_regex", "guided_choice", "guided_grammar", "structured_outputs", "safe_prompt", "random_seed"),
  ...dataFields("cache_prompt", "keep_alive", "mirostat", "think"),
});

/** The legacy Completions API, still used for completing code. */
export const completions: Shape = object({
  model,
  // Text or tokens, or a list of them, each of which is answered.
  prompt: textOr(() => textOr(() => any), { counts: "prompts" }),
  max_tokens: count("maxOutput"),
  n: count("choices"),
  best_of: count("choices"),
  stream: flag("stream"),
  stream_options: streamOptions,
  ...dataFields(
    "suffix",
    "echo",
    "temperature",
    "top_p",
    "stop",
    "presence_penalty",
    "frequency_penalty",
    "logit_bias",
  ),
  ...dataFields("logprobs", "seed", "user", "top_k", "min_p", "repetition_penalty"),
});

/** OpenAI's Embeddings. */
export const embeddings: Shape = object({
  model,
  // Text or tokens: some servers accept objects with the address of an image.
  input: textOr(() => textOr(() => any)),
  ...dataFields("encoding_format", "dimensions", "user", "input_type"),
});
