import type { CallToolResult } from "@modelcontextprotocol/server";
import { OffstageError } from "../domain/errors/errors.ts";
import { cutMiddle } from "../domain/fields/text.ts";
import { printable } from "../printable.ts";

/** Most characters of one answer: about ten thousand tokens of a model. */
export const mostCharacters = 40_000;

/** A text for a model: nothing in it controls a terminal, and it is no longer than `mostCharacters`. */
export function bounded(text: string, most = mostCharacters): string {
  return cutMiddle(printable(text), most);
}

/** A value without control characters for a terminal in its texts. */
export function clean<Value>(value: Value): Value {
  return JSON.parse(JSON.stringify(value), (_key, inner: unknown) =>
    typeof inner === "string" ? printable(inner) : inner,
  ) as Value;
}

/** The answer of a tool that returns facts: for programs as they are, for models as JSON. */
export function factsAnswer(value: Record<string, unknown>): CallToolResult {
  const structuredContent = clean(value);
  return { structuredContent, content: [{ type: "text", text: JSON.stringify(structuredContent) }] };
}

/** The answer of a tool that returns a longer text, with a few facts. */
export function textAnswer(value: Record<string, unknown>, text: string): CallToolResult {
  const { content, ...rest } = factsAnswer(value);
  return { ...rest, content: [...content, { type: "text", text: bounded(text) }] };
}

/**
 * Answers as `work` does. If the API refuses, or can't be reached, the answer is its sentence, which a model can act upon.
 * @param onError called with anything else, which is a bug
 */
export async function answering(
  work: () => Promise<CallToolResult>,
  onError: (error: Error) => void,
): Promise<CallToolResult> {
  try {
    return await work();
  } catch (error) {
    if (error instanceof OffstageError) return refused(error.message);
    // As `fetch` says that there was no connection.
    if (error instanceof TypeError && error.cause !== undefined) {
      return refused("the Offstage server can't be reached: check its address, and that it runs; then try again");
    }
    onError(error instanceof Error ? error : new Error(String(error)));
    return refused("internal error: try again, and tell the operator of the Offstage server if it stays");
  }
}

function refused(sentence: string): CallToolResult {
  return { isError: true, content: [{ type: "text", text: bounded(sentence) }] };
}
