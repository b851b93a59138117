import { afterAll, beforeAll, expect, test } from "vitest";
import { parseRepositoryUrl, type RepositoryAddress } from "../../src/domain/repositories/repository.ts";
import { createGitea } from "../../src/forges/gitea/gitea.ts";
import { createGitHub } from "../../src/forges/github/github.ts";
import { createGitLab } from "../../src/forges/gitlab/gitlab.ts";
import { startForge, type TestForge } from "../forge/server.ts";
import type { RepositoryFacts } from "../forge/state.ts";
import { hangTimeoutMs } from "../hang-timeout.ts";

let server: TestForge;
let count = 0;

beforeAll(async () => {
  server = await startForge();
});
afterAll(() => server?.close());

async function read(kind: "github" | "gitlab" | "gitea", approvals?: RepositoryFacts["approvals"]) {
  const { url: webUrl, apiUrl, token } = server;
  const forge = {
    github: () => createGitHub({ kind: "github", webUrl, apiUrl, token }),
    gitlab: () => createGitLab({ kind: "gitlab", webUrl, apiUrl: `${webUrl}/api/v4`, token }),
    gitea: () => createGitea({ kind: "gitea", webUrl, apiUrl: `${webUrl}/api/v1`, token }),
  }[kind]();
  const name = `approved-${(count += 1)}`;
  const { url } = await server.createRepository("acme", name, { "a.txt": "a\n" });
  server.describe("acme", name, approvals === undefined ? {} : { approvals });
  const address = parseRepositoryUrl(url) as RepositoryAddress;
  return forge.readApprovalRules?.(address, "release/1", AbortSignal.timeout(hangTimeoutMs));
}

test("GitHub shows rulesets, and the classic protection to administrators", async () => {
  const all = { excludesPusher: true, pushDismisses: true };
  const rules = { ...all, excludesAuthor: null, excludesEveryAuthor: true };
  expect(await read("github", all)).toEqual(rules);
  expect(await read("github", { ...all, isClassic: true })).toEqual(rules);
  expect(await read("github", {})).toEqual({ ...rules, excludesPusher: false, pushDismisses: false });
  expect(await read("github")).toBeNull();
  // Written down as it was decoded.
  expect(server.asked()).toContainEqual(expect.stringContaining("/rules/branches/release/1"));
});

test("GitLab shows the project's settings, if it does", async () => {
  expect(await read("gitlab", { excludesAuthor: true, pushDismisses: true })).toEqual({
    excludesPusher: false,
    excludesAuthor: true,
    pushDismisses: true,
  });
  expect(await read("gitlab")).toBeNull();
});

test("the others are not asked", async () => {
  expect(await read("gitea", { excludesPusher: true })).toBeUndefined();
});
