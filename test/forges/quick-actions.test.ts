import { afterAll, beforeAll, expect, it } from "vitest";
import { parseRepositoryUrl, type RepositoryAddress } from "../../src/domain/repositories/repository.ts";
import { createGitLab } from "../../src/forges/gitlab/gitlab.ts";
import { startForge, type TestForge } from "../forge/server.ts";
import { hangTimeoutMs } from "../hang-timeout.ts";

let server: TestForge;

beforeAll(async () => {
  server = await startForge();
});

afterAll(() => server?.close());

it("what an agent writes makes GitLab do nothing, when its merge request is opened and when its text is changed", async () => {
  const { url } = await server.createRepository("acme", "shop", { "a.txt": "a\n" });
  await server.commit("acme", "shop", "work", { "b.txt": "b\n" });
  await server.commit("acme", "shop", "other", { "c.txt": "c\n" });
  const apiUrl = `${server.url}/api/v4`;
  const forge = createGitLab({ kind: "gitlab", webUrl: server.url, apiUrl, token: server.token });
  const address = parseRepositoryUrl(url) as RepositoryAddress;
  const signal = AbortSignal.timeout(hangTimeoutMs);
  const body = "Done.\n/merge\n/assign @mallory";
  const request = { head: "work", target: "main", title: "Work", body };
  const { number } = await forge.openPullRequest(address, request, signal);
  await forge.editPullRequest(address, number, (before) => `${before}\n\n/close`, signal);
  expect(server.quickActions()).toEqual([]);
  const [merge] = await server.pullRequests("acme", "shop");
  expect(merge).toMatchObject({ state: "open", body: "Done.\n\\/merge\n\\/assign @mallory\n\n\\/close" });

  // What GitLab does with the same text if it is not made harmless.
  const sent = { source_branch: "other", target_branch: "main", title: "Other", description: body };
  await fetch(`${apiUrl}/projects/acme%2Fshop/merge_requests`, {
    method: "POST",
    headers: { Authorization: `Bearer ${server.token}` },
    body: JSON.stringify(sent),
  });
  expect(server.quickActions()).toEqual(["/merge", "/assign @mallory"]);
});
