import { expect, test } from "vitest";
import { SessionError } from "../../../domain/errors/errors.ts";
import { SessionCancelled } from "../../attempt/stop-reasons.ts";
import { refusalOf, undelivered } from "./undelivered.ts";
import { repositoryOf } from "../../../../test/worker/repository-of.ts";

const refusal = (reason: string): SessionError =>
  new SessionError({ code: "push_rejected", reason, retryable: true, remedy: "Allow it." });
const running = new AbortController().signal;
const session = (names: readonly string[], pullRequestsTogether = false) => ({
  session: { repositories: names.map(repositoryOf), branchName: "offstage/fix", pullRequestsTogether },
});
const nothing = { pushed: [], delivered: [] };

test("a refusal is noted with its repository", () => {
  const error = refusal("It is protected.");
  expect(refusalOf(error, { repository: repositoryOf("app") }, { signal: running })).toEqual({ name: "app", error });
});

test.each([
  ["an error that is no refusal", new TypeError("x is undefined"), running],
  ["whatever a cancel broke", refusal("It was cut off."), AbortSignal.abort(new SessionCancelled())],
])("%s is no refusal of the repository", (_what, error, signal) => {
  expect(() => refusalOf(error, { repository: repositoryOf("app") }, { signal })).toThrow(error.message);
});

test("of a session on one repository the failure is that repository's own", () => {
  const error = refusal("It is protected.");
  expect(undelivered(session(["app"]), [{ name: "app", error }], nothing)).toBe(error);
});

test("of several repositories the failure names each that refused, and what is delivered", () => {
  const refused = [{ name: "web", error: refusal("It is protected.") }];
  const { message } = undelivered(session(["app", "web"]), refused, { pushed: ["app"], delivered: ["app"] });
  expect(message).toBe("web: It is protected. The work on app is delivered.");
});

test("of repositories that belong together it says that no pull request was opened, and which branches stay", () => {
  const refused = [{ name: "web", error: refusal("It is protected.") }];
  const { message } = undelivered(session(["app", "web"], true), refused, { pushed: ["app"], delivered: [] });
  expect(message).toBe(
    "web: It is protected. No pull request was opened, since this session opens them together or not at all. The branch offstage/fix is pushed to app, and stays.",
  );
});
