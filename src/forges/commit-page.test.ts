import { expect, it } from "vitest";
import { isAddressProblem, parseRepositoryUrl } from "../domain/repositories/repository.ts";
import type { ForgeSettings } from "./forge.ts";
import { createForges } from "./forges.ts";

const github = {
  kind: "github",
  webUrl: "https://github.com",
  apiUrl: "https://api.github.com",
} as const;
const gitlab = {
  kind: "gitlab",
  webUrl: "https://x.example/lab",
  apiUrl: "https://x.example/lab/api/v4",
} as const;
const gitea = {
  kind: "gitea",
  webUrl: "https://x.example/acme",
  apiUrl: "https://x.example/api/v1",
} as const;
const bitbucket = {
  kind: "bitbucket",
  webUrl: "https://bitbucket.org",
  apiUrl: "https://api.bitbucket.org/2.0",
} as const;
const dataCenter = {
  kind: "bitbucketDataCenter",
  webUrl: "https://x.example/git",
  apiUrl: "https://x.example/git/rest/api/latest",
} as const;
const azure = {
  kind: "azure",
  webUrl: "https://dev.azure.com/acme",
  apiUrl: "https://dev.azure.com",
} as const;

it.each<[ForgeSettings, string, string | null]>([
  [github, "https://github.com/acme/app.git", "https://github.com/acme/app/commit/abc"],
  [github, "git@github.com:acme/app.git", "https://github.com/acme/app/commit/abc"],
  [gitlab, "https://x.example/lab/acme/tools/app", "https://x.example/lab/acme/tools/app/-/commit/abc"],
  [gitlab, "ssh://git@x.example:2222/lab/acme/app.git", "https://x.example/lab/acme/app/-/commit/abc"],
  [gitea, "https://x.example/acme/app", "https://x.example/acme/app/commit/abc"],
  [gitea, "git@x.example:acme/app", "https://x.example/acme/app/commit/abc"],
  [bitbucket, "https://bitbucket.org/acme/app.git", "https://bitbucket.org/acme/app/commits/abc"],
  [bitbucket, "git@bitbucket.org:acme/app.git", "https://bitbucket.org/acme/app/commits/abc"],
  [dataCenter, "https://x.example/git/scm/ACME/app.git", "https://x.example/git/projects/ACME/repos/app/commits/abc"],
  [dataCenter, "https://x.example/git/scm/~ann/app", "https://x.example/git/users/ann/repos/app/commits/abc"],
  [
    {
      ...dataCenter,
      webUrl: "https://x.example",
      apiUrl: "https://x.example/rest/api/latest",
    },
    "ssh://git@x.example:7999/ACME/app.git",
    "https://x.example/projects/ACME/repos/app/commits/abc",
  ],
  [azure, "https://dev.azure.com/acme/my%20shop/_git/app", "https://dev.azure.com/acme/my%20shop/_git/app/commit/abc"],
  [azure, "https://acme@dev.azure.com/acme/_git/app", "https://dev.azure.com/acme/app/_git/app/commit/abc"],
  [{ kind: "git", webUrl: "https://x.example" }, "https://x.example/app.git", null],
])("a commit's page of %o at %s is %s", (settings, url, page) => {
  const address = parseRepositoryUrl(url);
  if (isAddressProblem(address)) throw new Error(address.problem);
  const forge = createForges([settings]).forgeOf(address);
  expect(forge.kind).toBe(settings.kind);
  expect(forge.commitPage?.(address, "abc") ?? null).toBe(page);
});
