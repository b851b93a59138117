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
  type Needs,
  object,
  oneOf,
  refused,
  type Shape,
  textOr,
  url,
  why,
} from "./shape.ts";

/** Part of a message, or of a tool's result. */
const part: Shape = object(
  {
    type: oneOf(
      "block",
      why.unknown,
      "input_text",
      "output_text",
      "text",
      "refusal",
      "summary_text",
      "reasoning_text",
      "encrypted_content",
      "input_image",
      "input_file",
      "input_audio",
      "computer_screenshot",
    ),
    image_url: dataUrl,
    file_data: inline,
    file_url: url,
    file_id: file,
    input_audio: object({ data: inline, format: any }, { holds: "sound" }),
    ...dataFields("text", "refusal", "annotations", "logprobs", "detail", "filename", "encrypted_content"),
    prompt_cache_breakpoint: data,
  },
  { opensByType: true },
);

/** A tool that the harness runs. A namespace contains others; a tool search is the harness's if it says `client`. */
const tool: Shape = object(
  {
    type: oneOf("tool", why.tool, "function", "custom", "namespace", "local_shell", "apply_patch", "tool_search"),
    tools: list(() => tool),
    execution: oneOf("tool", why.tool, "client"),
    ...dataFields("name", "description", "parameters", "strict", "format", "defer_loading", "output_schema"),
    allowed_callers: list(() => oneOf("caller", why.tool, "direct")),
  },
  {
    opensByType: true,
    needs: {
      tool_search: { fields: [["execution"]], permit: "tool:server", why: `says no \`execution\`, and ${why.tool}` },
    },
  },
);

/** Content that an item with an id must have: an id alone refers to an item stored at the provider. */
const own = (...fields: readonly (readonly string[])[]): Needs => ({
  ifPresent: "id",
  fields,
  permit: "block:item_reference",
  why: `has an id without content, which ${why.kept}`,
});

const itemType: Shape = {
  scalar: {
    kind: "oneOf",
    permit: "block",
    why: why.unknown,
    values: [
      "message",
      "reasoning",
      "additional_tools",
      "agent_message",
      "function_call",
      "function_call_output",
      "custom_tool_call",
      "custom_tool_call_output",
      "local_shell_call",
      "local_shell_call_output",
      "apply_patch_call",
      "apply_patch_call_output",
      "tool_search_call",
      "tool_search_output",
      "compaction",
      "compaction_summary",
      "compaction_trigger",
      "context_compaction",
    ],
    compacts: { compaction_trigger: "instead" },
  },
};

/** Message, tool call or tool result of the conversation. */
const item: Shape = object(
  {
    type: itemType,
    content: textOr(() => part),
    output: textOr(() => part),
    tools: list(() => tool),
    execution: oneOf("tool", why.tool, "client"),
    file_id: file,
    image_url: dataUrl,
    file_url: url,
    ...dataFields("id", "role", "status", "phase", "name", "namespace", "arguments", "call_id", "input", "action"),
    ...dataFields("operation", "summary", "encrypted_content", "author", "recipient", "caller"),
    ...dataFields("internal_chat_message_metadata_passthrough", "metadata"),
  },
  {
    opensByType: true,
    needs: {
      "": own(["role"], ["content"]),
      message: own(["role"]),
      agent_message: own(["content", "encrypted_content"]),
      function_call: own(["name"]),
      custom_tool_call: own(["name"]),
      local_shell_call: own(["action"]),
      apply_patch_call: own(["operation"]),
      reasoning: own(["encrypted_content", "content"]),
      compaction: own(["encrypted_content"]),
      compaction_summary: own(["encrypted_content"]),
      context_compaction: own(["encrypted_content"]),
    },
  },
);

/** Reasoning settings. `reasoning.mode` makes a model think several times for one answer. */
export const reasoning: Shape = object({
  mode: oneOf("reasoning", why.price, "standard"),
  max_tokens: count("thinking"),
  ...dataFields("effort", "summary", "generate_summary", "context", "exclude", "enabled"),
});

/** Cache settings. Longer lifetimes may have another price. */
export const promptCache: Shape = object({ mode: any, ttl: oneOf("ttl", why.price, "30m") });

/** OpenAI's Responses, and their compaction: platform.openai.com/docs/api-reference/responses. */
export const responses: Shape = object({
  model,
  max_output_tokens: count("maxOutput"),
  stream: flag("stream"),
  store: flag("store"),
  input: textOr(() => item, { counts: "turns" }),
  tools: list(() => tool, { counts: "tools" }),
  service_tier: oneOf("tier", why.price, "auto", "default", "flex"),
  background: refused("field:background", why.price),
  previous_response_id: refused("field:previous_response_id", why.kept),
  conversation: refused("field:conversation", why.kept),
  prompt: refused("field:prompt", why.kept),
  // As Codex requests it for long conversations; the reported usage includes it.
  context_management: list(() =>
    object({
      type: {
        scalar: {
          kind: "oneOf",
          permit: "edit",
          why: why.price,
          values: ["compaction"],
          compacts: { compaction: "beside" },
        },
      },
      compact_threshold: data,
    }),
  ),
  instructions: any,
  reasoning,
  prompt_cache_options: promptCache,
  ...dataFields("tool_choice", "parallel_tool_calls", "text", "stream_options", "include"),
  ...dataFields("metadata", "client_metadata", "temperature", "top_p", "top_logprobs", "truncation", "max_tool_calls"),
  ...dataFields("user", "safety_identifier", "prompt_cache_key", "prompt_cache_retention"),
});
