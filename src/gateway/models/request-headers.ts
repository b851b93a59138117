import type { IncomingHttpHeaders } from "node:http";
import { refuseUnlessAllowed, RequestRefusedError } from "../refusal.ts";

/**
 * Headers that are forwarded to a provider: client identification and versions. All others are dropped: keys, cookies,
 * the account to bill, another method (`x-http-method-override`), compression of the answer, which the gateway reads.
 */
const forwarded =
  /^(?:accept|user-agent|anthropic-(?:version|beta|dangerous-direct-browser-access)|openai-beta|originator|x-app|x-title|http-referer|x-goog-api-client|x-client-request-id|session[-_]id|thread[-_]id|conversation_id|x-stainless-[a-z-]+|x-claude-code-[a-z-]+|x-codex-[a-z-]+|x-openai-internal-codex-responses-lite|x-session-affinity)$/u;
const longestHeader = 8_192;

/**
 * Names allowed in `anthropic-beta`, without their date: thinking, tools of the harness, caching. Others let the
 * provider run tools, store files, answer with another model, or bill otherwise.
 */
const betas = new Set(
  [
    ["claude-code", "interleaved-thinking", "redact-thinking", "thinking-token-count", "thinking-display-updates"],
    ["thinking-binding-controls", "thinking-resumption", "dev-full-thinking", "effort", "per-turn-control", "timing"],
    ["context-management", "context-hint", "mid-conversation-tool-changes", "mid-conversation-system"],
    ["mid-conversation-system-clear-at", "advanced-tool-use", "tool-search-tool", "tool-examples", "task-budgets"],
    ["fine-grained-tool-streaming", "token-efficient-tools", "structured-outputs", "output-128k", "token-counting"],
    ["prompt-caching", "prompt-caching-scope", "prompt-caching-evict", "extended-cache-ttl", "cache-diagnosis"],
    ["computer-use", "pdfs", "model-context-window-exceeded"],
  ].flat(),
);

/**
 * Headers of the forwarded request.
 * @param permits what the operator allowed by name
 * @throws RequestRefusedError if the body is not plain JSON, or a beta is not allowed
 */
export function headersFor(headers: IncomingHttpHeaders, permits: readonly string[]): Record<string, string> {
  if ((headers["content-encoding"] ?? "identity") !== "identity")
    throw new RequestRefusedError(415, "the body must not be compressed: send it without Content-Encoding");
  const type = headers["content-type"];
  if (type !== undefined && !/^application\/json(?:\s*;\s*charset="?utf-8"?)?\s*$/iu.test(type))
    throw new RequestRefusedError(415, "the body must be application/json in UTF-8");
  const kept = Object.entries(headers).filter(
    (entry): entry is [string, string] =>
      forwarded.test(entry[0]) && typeof entry[1] === "string" && entry[1].length <= longestHeader,
  );
  for (const beta of headerValues(headers["anthropic-beta"])) {
    if (!betas.has(beta.replace(/-\d{4}-?\d{2}-?\d{2}$/u, "")))
      refuseUnlessAllowed(
        permits,
        `beta:${beta.slice(0, 100)}`,
        `the beta ${beta.slice(0, 100)} is not known to this gateway`,
      );
  }
  for (const beta of headerValues(headers["openai-beta"])) {
    if (!/^responses(?:_websockets)?=[\w-]{1,50}$/u.test(beta))
      refuseUnlessAllowed(
        permits,
        `beta:${beta.slice(0, 100)}`,
        `the beta ${beta.slice(0, 100)} is not known to this gateway`,
      );
  }
  return { ...Object.fromEntries(kept), "accept-encoding": "identity" };
}

function headerValues(value: string | string[] | undefined): string[] {
  return [value ?? []]
    .flat()
    .flatMap((one) => one.split(","))
    .map((one) => one.trim())
    .filter((one) => one !== "");
}
