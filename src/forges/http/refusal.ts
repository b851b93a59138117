import { SessionError } from "../../domain/errors/errors.ts";
import type { ConnectionProblem } from "../../domain/repositories/connection.ts";

/** An answer that is not what was asked for. */
export interface Refusal {
  readonly status: number;
  readonly body: unknown;
}

/**
 * The failure that a refusal of the forge's API means for the user, with the forge's message.
 * @param what what was refused
 */
export function refusedBy(name: string, { status, body }: Refusal, what = "pull request"): SessionError {
  const words = wordsOf(body);
  if (status === 401 || status === 403) {
    return new SessionError({
      code: "repository_access_denied",
      reason: `${name} refused the configured token: ${words}`,
      retryable: false,
      remedy: "Give the server a token that may open pull requests on this repository (docs/forges.md).",
    });
  }
  if (status >= 300 && status < 400) {
    return new SessionError({
      code: "repository_not_found",
      reason: `${name} answered with a redirect: the repository was moved or renamed.`,
      retryable: false,
      remedy: "Start a session with the repository's new address.",
    });
  }
  if (status === 404) {
    return new SessionError({
      code: "repository_not_found",
      reason: `${name} has no such repository for the configured token: ${words}`,
      retryable: false,
      remedy: "Check the repository's address and what the token may see.",
    });
  }
  return new SessionError({
    code: "pull_request_refused",
    reason: `${name} refused the ${what}: ${words}`,
    retryable: false,
    remedy: "The branch is pushed: fix what the forge reports, then retry.",
  });
}

/** Whether a refusal is about who asks, so that another account may be allowed what was refused. */
export function isAboutPermission({ status, body }: Refusal): boolean {
  if (status === 401 || status === 403 || status === 404) return true;
  return /permission|collaborator|forbidden|access denied|insufficient|not (?:allowed|authori[sz]ed|permitted)/iu.test(
    wordsOf(body),
  );
}

/**
 * The problem of a connection whose forge does not name the token's user: the token, or the address.
 * @param api.name of the forge's API as part of a sentence
 * @param api.address of the API, as people write it
 */
export function notIdentified(
  { status, body }: Refusal,
  api: { readonly name: string; readonly missing?: string; readonly address: string; readonly newToken?: string },
): ConnectionProblem {
  const { name, missing = name, address, newToken = "Make a new token and send it." } = api;
  if (status === 401 || status === 403) {
    const why = `The forge refused it: ${wordsOf(body)}.`;
    return { missing: "a valid token", why, remedy: newToken, essential: true };
  }
  const why = `The address answered ${status} and not as ${name} does: ${wordsOf(body)}.`;
  return { missing, why, remedy: `Check apiUrl: it is ${address}.`, essential: true };
}

const mostErrors = 10;
const longestError = 200;
const longestWords = 1_000;

/** An entry of GitHub's `errors`: https://docs.github.com/rest/using-the-rest-api/troubleshooting-the-rest-api. */
interface ErrorEntry {
  readonly field?: unknown;
  readonly code?: unknown;
  readonly message?: unknown;
}

/**
 * The words of a refusal: its message, then each of its errors, which may be texts, have a message, or only name a
 * field and what is wrong with it (`head: invalid`). GitLab's message may be a list of texts, or texts by field, or be
 * in `error` (https://docs.gitlab.com/api/rest/troubleshooting/). At most 10 errors and 1,000 characters.
 */
export function wordsOf(body: unknown): string {
  const inner = bitbucketError(body);
  if (inner !== null) return wordsOf(inner);
  const {
    message: said,
    error,
    error_description: described,
    errors,
  } = (body ?? {}) as Readonly<Record<string, unknown>>;
  const message = said ?? described ?? error;
  const listed = typeof message === "object" ? fieldsOf(message) : [];
  const named: readonly unknown[] = Array.isArray(errors) ? errors : typeof errors === "string" ? [errors] : [];
  const entries = [...listed, ...named];
  const details = entries.map(wordsOfError).filter((words) => words !== "" && words !== message);
  const shown = details.slice(0, mostErrors);
  if (details.length > shown.length) shown.push(`and ${details.length - shown.length} more`);
  const parts = [typeof message === "string" ? message : "", shown.join("; ")].filter((part) => part !== "");
  return parts.length === 0 ? "it gave no reason" : parts.join(": ").slice(0, longestWords).toWellFormed();
}

/**
 * The content of Bitbucket Cloud's `error`: a message, perhaps with details, and with texts by field, which the message
 * may have already (https://developer.atlassian.com/cloud/bitbucket/rest/intro/#standardized-error-responses).
 */
function bitbucketError(body: unknown): { readonly message: string; readonly errors: readonly string[] } | null {
  const { error } = (body ?? {}) as { readonly error?: unknown };
  const { message, detail, fields } = (typeof error === "object" ? (error ?? {}) : {}) as Readonly<
    Record<string, unknown>
  >;
  if (typeof message !== "string") return null;
  const ofFields = typeof fields === "object" ? fieldsOf(fields).filter((each) => typeof each === "string") : [];
  const errors = [...(typeof detail === "string" ? [detail] : []), ...ofFields];
  return { message, errors: errors.filter((each) => !message.includes(each)) };
}

/** The entries of a message that is no text: its texts, or `field: text` for each. */
function fieldsOf(message: object | null): readonly unknown[] {
  if (message === null || Array.isArray(message)) return message ?? [];
  return Object.entries(message).map(([field, value]) => {
    const texts: readonly unknown[] = Array.isArray(value) ? value : [value];
    const words = texts.filter((text) => typeof text === "string").join(", ");
    return field === "base" ? words : `${field}: ${words}`;
  });
}

function wordsOfError(entry: unknown): string {
  if (typeof entry === "string") return entry.slice(0, longestError);
  const { field, code, message } = (entry ?? {}) as ErrorEntry;
  const parts = [field, typeof message === "string" && message !== "" ? message : code];
  return parts
    .filter((part) => typeof part === "string" && part !== "")
    .join(": ")
    .slice(0, longestError);
}
