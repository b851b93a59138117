import { expect, test } from "vitest";
import { parseRepositoryUrl, type RepositoryAddress } from "../../src/domain/repositories/repository.ts";
import type { ForgeSettings } from "../../src/forges/forge.ts";
import { createForges } from "../../src/forges/forges.ts";

const github: ForgeSettings = { kind: "github", webUrl: "https://github.com", apiUrl: "https://api.github.com" };
const gitlab: ForgeSettings = {
  kind: "gitlab",
  webUrl: "https://git.example.com/lab",
  apiUrl: "https://git.example.com/lab/api/v4",
};
const gitea: ForgeSettings = {
  kind: "gitea",
  webUrl: "https://git.example.com/acme",
  apiUrl: "https://git.example.com/api/v1",
};
const bitbucket: ForgeSettings = {
  kind: "bitbucket",
  webUrl: "https://bitbucket.org",
  apiUrl: "https://api.bitbucket.org/2.0",
};
const dataCenter: ForgeSettings = {
  kind: "bitbucketDataCenter",
  webUrl: "https://bb.example.com",
  apiUrl: "https://bb.example.com/rest/api/latest",
};
const azure: ForgeSettings = { kind: "azure", webUrl: "https://dev.azure.com", apiUrl: "https://dev.azure.com" };

// The addresses that each forge's own pages link to.
test.each<[ForgeSettings, string, string]>([
  [github, "https://github.com/acme/app.git", "https://github.com/acme/app/commit/abc"],
  [github, "git@github.com:acme/app.git", "https://github.com/acme/app/commit/abc"],
  [gitlab, "https://git.example.com/lab/acme/sub/app", "https://git.example.com/lab/acme/sub/app/-/commit/abc"],
  [gitea, "ssh://git@git.example.com:2222/acme/app.git", "https://git.example.com/acme/app/commit/abc"],
  [bitbucket, "https://bitbucket.org/acme/app", "https://bitbucket.org/acme/app/commits/abc"],
  [bitbucket, "git@bitbucket.org:acme/app.git", "https://bitbucket.org/acme/app/commits/abc"],
  [dataCenter, "https://bb.example.com/scm/ACME/app.git", "https://bb.example.com/projects/ACME/repos/app/commits/abc"],
  [dataCenter, "ssh://git@bb.example.com:7999/~ann/app.git", "https://bb.example.com/users/ann/repos/app/commits/abc"],
  [
    azure,
    "https://dev.azure.com/acme/Web%20Shop/_git/app",
    "https://dev.azure.com/acme/Web%20Shop/_git/app/commit/abc",
  ],
  [azure, "git@ssh.dev.azure.com:v3/acme/shop/app", "https://dev.azure.com/acme/shop/_git/app/commit/abc"],
])("$0.kind: the page of a commit of $1", (settings, url, page) => {
  const address = parseRepositoryUrl(url) as RepositoryAddress;
  const forge = createForges([settings]).forgeOf(address);
  expect(forge.kind).toBe(settings.kind);
  expect(forge.commitPage?.(address, "abc")).toBe(page);
});

test("plain git has no pages that are known", () => {
  const address = parseRepositoryUrl("https://code.example.com/acme/app") as RepositoryAddress;
  expect(createForges([]).forgeOf(address).commitPage).toBeNull();
});
