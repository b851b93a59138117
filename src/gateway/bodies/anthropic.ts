import {
  any,
  bytes,
  count,
  data,
  dataFields,
  file,
  flag,
  list,
  mediaType,
  model,
  object,
  oneOf,
  refused,
  type Shape,
  textOr,
  url,
  why,
} from "./shape.ts";

const cacheControl = object({ type: any, ttl: { scalar: { kind: "cacheLifetime" } }, scope: any });

/** Of an image or document. In a search result from the harness it is a label. */
const source: Shape = {
  scalar: { kind: "labelOf", type: "search_result" },
  fields: {
    type: oneOf("source", why.fetched, "base64", "text", "content"),
    media_type: mediaType,
    data: bytes,
    content: textOr(() => block),
    url,
    file_id: file,
  },
};

/** Tools that the harness runs: without a type, or of one of these. */
const tool = object(
  {
    type: oneOf("tool", why.tool, "custom", "bash_*", "text_editor_*", "computer_*", "memory_*"),
    cache_control: cacheControl,
    ...dataFields("name", "description", "input_schema", "input_examples", "strict", "eager_input_streaming"),
    ...dataFields("defer_loading", "max_characters"),
    allowed_callers: list(() => oneOf("caller", why.tool, "direct")),
    ...dataFields("display_width_px", "display_height_px", "display_number", "enable_zoom"),
  },
  { opensByType: true },
);

/** Block of a message or of a tool's result. */
const block: Shape = object(
  {
    type: oneOf(
      "block",
      why.unknown,
      "text",
      "image",
      "document",
      "search_result",
      "thinking",
      "redacted_thinking",
      "tool_use",
      "tool_result",
      "tool_reference",
      "tool_addition",
      "tool_removal",
    ),
    cache_control: cacheControl,
    source,
    content: textOr(() => block),
    tool: object({
      type: oneOf("block", why.unknown, "tool_reference", "tool_definition"),
      name: any,
      definition: tool,
    }),
    file_id: file,
    // In an answer, its citations. In a document, whether it is split into chunks to be cited, which adds tokens.
    citations: { ...list(() => data), fields: { enabled: refused("field:citations", why.price) } },
    ...dataFields("text", "thinking", "signature", "data", "title", "context"),
    ...dataFields("id", "name", "input", "tool_use_id", "is_error", "tool_name", "caller"),
  },
  { opensByType: true },
);

/** Anthropic Messages, and the counting of their tokens: platform.claude.com/docs/en/api/messages. */
export const anthropicMessages: Shape = object({
  model,
  max_tokens: count("maxOutput"),
  stream: flag("stream"),
  messages: list(() => object({ role: any, content: textOr(() => block), output_config: data }), { counts: "turns" }),
  system: textOr(() => block),
  tools: list(() => tool, { counts: "tools" }),
  cache_control: cacheControl,
  // Removes old parts of a conversation. A `compact_…` edit is another answer, which the total usage omits.
  context_management: object({
    edits: list(() =>
      object({
        type: oneOf("edit", why.price, "clear_tool_uses_*", "clear_thinking_*"),
        ...dataFields("trigger", "keep", "clear_at_least", "exclude_tools", "clear_tool_inputs"),
      }),
    ),
  }),
  service_tier: oneOf("tier", why.price, "auto", "standard_only"),
  speed: oneOf("speed", why.price, "standard"),
  inference_geo: oneOf("inference_geo", why.price, "global"),
  mcp_servers: refused("field:mcp_servers", why.tool),
  container: refused("field:container", why.tool),
  ...dataFields("metadata", "stop_sequences", "temperature", "top_k", "top_p", "tool_choice"),
  ...dataFields("thinking", "output_config", "output_format"),
});
