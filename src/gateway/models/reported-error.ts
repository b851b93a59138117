import type { FoundValues } from "../costs/usage.ts";
import { finalError, passingError, type ErrorOutlook } from "../traffic.ts";
import { isPassingStatus } from "./retry.ts";

/** An error that came in an answer which had begun as a good one, with status 200. */
export interface ReportedError {
  readonly message: string;
  readonly outlook: ErrorOutlook;
}

/**
 * Vendors' names of passing errors: https://docs.claude.com/en/api/errors,
 * https://platform.openai.com/docs/api-reference/responses-streaming (`error.code` of a response), and the status of
 * https://cloud.google.com/apis/design/errors.
 */
const passing = new Set([
  "api_error",
  "overloaded_error",
  "rate_limit_error",
  "timeout_error",
  "server_error",
  "server_overloaded",
  "engine_overloaded",
  "internal_error",
  "rate_limit_exceeded",
  "slow_down",
  "vector_store_timeout",
  "unavailable",
  "internal",
  "resource_exhausted",
  "deadline_exceeded",
  "aborted",
]);

/**
 * Finds an error in an event of an answer: Anthropic's `{"type":"error","error":{…}}`, which is also that of Chat Completions and of
 * Gemini without the type, and of Responses `response.failed` and `{"type":"error","code":…,"message":…}`.
 * @returns null if there is none
 */
export function reportedError(found: FoundValues): ReportedError | null {
  const isEvent = found.get("type") === "error";
  const read = (name: string): number | string | undefined =>
    found.get(`error.${name}`) ?? found.get(`response.error.${name}`) ?? (isEvent ? found.get(name) : undefined);
  const words = ["type", "code", "status"].flatMap((name) => read(name) ?? []).filter((word) => word !== "error");
  const text = read("message");
  if (words.length === 0 && text === undefined) return null;
  const passes = words.some((word) => passing.has(String(word).toLowerCase()) || isPassingStatus(Number(word)));
  const message = [text, words.length === 0 ? undefined : `(${words.join(", ")})`]
    .filter((part) => part !== undefined)
    .join(" ");
  return { message, outlook: passes ? passingError : finalError };
}
