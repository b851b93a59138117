import { expect, test } from "vitest";
import { SessionError } from "../../../domain/errors/errors.ts";
import { parseRepositoryUrl, type RepositoryAddress } from "../../../domain/repositories/repository.ts";
import type { NewEvent } from "../../../domain/sessions/event.ts";
import { createLogger } from "../../../observability.ts";
import { noticeApproval, readApproval } from "./approval.ts";
import { repositoryOf } from "../../../../test/worker/repository-of.ts";

const rules = { excludesPusher: false, excludesAuthor: true, pushDismisses: false };
const attempt = { signal: new AbortController().signal, logger: createLogger("silent") };
const clone = {
  address: parseRepositoryUrl("https://git.example.com/acme/app") as RepositoryAddress,
  repository: repositoryOf("app"),
  targetBranch: "main",
};
const failing = (error: Error) => ({ readApprovalRules: () => Promise.reject(error) });

test("the forge is asked about the target branch", async () => {
  const asked: unknown[] = [];
  const forge = {
    readApprovalRules(address: RepositoryAddress, target: string) {
      asked.push(address.path, target);
      return Promise.resolve(rules);
    },
  };
  expect(await readApproval(attempt, forge, clone)).toBe(rules);
  expect(asked).toEqual(["acme/app", "main"]);
});

test("a forge without such rules is not asked, and one that does not answer holds nothing back", async () => {
  const unavailable = new SessionError({
    code: "forge_unavailable",
    reason: "Away.",
    retryable: true,
    remedy: "Wait.",
  });
  expect(await readApproval(attempt, {}, clone)).toBeNull();
  expect(await readApproval(attempt, failing(unavailable), clone)).toBeNull();
  await expect(readApproval(attempt, failing(new TypeError("x is undefined")), clone)).rejects.toThrow(
    "x is undefined",
  );
});

test("who may approve is said if people would miss it, and without the name of who asked", async () => {
  const events: NewEvent[] = [];
  const emit = (event: NewEvent): Promise<void> => Promise.resolve(void events.push(event));
  const pullRequest = { forge: { name: "Gitea" }, name: "app", approval: rules, isRequesters: true };
  await noticeApproval({ emit }, pullRequest);
  await noticeApproval({ emit }, { ...pullRequest, approval: { ...rules, excludesAuthor: false } });
  expect(events).toEqual([
    {
      type: "notice",
      data: {
        level: "info",
        text: "On Gitea, for the pull request of app: an approval does not count that is by the person who asked, in whose name it was opened, so somebody else has to approve.",
      },
    },
  ]);
});
