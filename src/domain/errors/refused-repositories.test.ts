import { expect, test } from "vitest";
import { SessionError, type Failure } from "./errors.ts";
import { failureOfRefused, holdsFailure } from "./refused-repositories.ts";

const error = (given: Partial<Failure> & { readonly retryAfterMs?: number }): SessionError =>
  new SessionError({ code: "push_rejected", reason: "No.", retryable: false, remedy: "Ask.", ...given });

test("the failure names each repository and what became of the others", () => {
  const refused = [
    { name: "acme/a", error: error({ reason: "A hook said no." }) },
    { name: "acme/b", error: error({ reason: "It is archived.", remedy: "Open it." }) },
  ];
  expect(failureOfRefused(refused, "The work on acme/c is delivered.").failure).toEqual({
    code: "push_rejected",
    reason: "acme/a: A hook said no. acme/b: It is archived. The work on acme/c is delivered.",
    retryable: false,
    passing: false,
    remedy: "acme/a: Ask. acme/b: Open it.",
  });
});

test("one that passes by itself leads: all is tried again then", () => {
  const refused = [
    { name: "acme/a", error: error({}) },
    { name: "acme/b", error: error({ code: "forge_unavailable", retryable: true, retryAfterMs: 9_000 }) },
  ];
  const failure = failureOfRefused(refused, "");
  expect(failure).toMatchObject({ code: "forge_unavailable", retryable: true, passing: true, retryAfterMs: 9_000 });
});

test("twenty long reasons fit into one, with what became of the others", () => {
  const refused = Array.from({ length: 20 }, (_, index) => ({
    name: `acme/${index}`,
    error: error({ reason: "🙈".repeat(1_000) }),
  }));
  const { message } = failureOfRefused(refused, "The work on acme/c is delivered.");
  expect(message.length).toBeLessThanOrEqual(2_000);
  expect(message.isWellFormed()).toBe(true);
  expect(message).toMatch(/acme\/19: .*The work on acme\/c is delivered\.$/u);
});

test("each repository's failure is known to be in it, whichever code it has itself", () => {
  const token = { name: "acme/a", error: error({ code: "token_in_work", retryable: true }) };
  const passing = { name: "acme/b", error: error({ code: "forge_unavailable", retryable: true, passing: true }) };
  const failure = failureOfRefused([token, passing], "");
  expect(failure.code).toBe("forge_unavailable");
  expect(holdsFailure(failure, "token_in_work")).toBe(true);
  expect(holdsFailure(failure, "push_rejected")).toBe(false);
  expect(holdsFailure(failureOfRefused([token], ""), "token_in_work")).toBe(true);
  expect(holdsFailure(new Error("broken"), "token_in_work")).toBe(false);
});
