import { expect, it } from "vitest";
import { fileAddressesOf, createRegistrySchema, registryFolder } from "./registry.ts";

const valid = { kind: "npm", url: "https://npm.example.com/a", token: "t" };
const parse = (changes: Record<string, unknown>) => createRegistrySchema.safeParse({ ...valid, ...changes });

it("takes an address as tools and the gateway compare it", () => {
  expect(parse({}).data?.url).toBe("https://npm.example.com/a/");
  expect(parse({ url: "HTTPS://NPM.example.com:443//" }).data?.url).toBe("https://npm.example.com/");
});

it.each([
  [{ url: "http://npm.example.com" }, "must be an https:// address"],
  [{ url: "](](](" }, "must be an https:// address"],
  [{ url: "https://" }, "must be an https:// address"],
  [{ url: "https://a:b@npm.example.com" }, "must not contain credentials"],
  [{ url: "https://npm.example.com/?a=b" }, "must not have a query"],
  [{ url: 'https://npm.example.com/"\nregistry=x' }, "must not have a query"],
  [{ scope: "acme" }, "must be a scope of npm"],
  [{ kind: "pypi", scope: "acme" }, "is for npm, cargo and go only"],
  [{ username: "a:b" }, "must not contain a colon"],
  [{ token: "a\nb" }, "must be printable ASCII"],
])("%j is refused", (changes, sentence) => {
  expect(parse(changes).error?.issues[0]?.message).toContain(sentence);
});

it.each([
  [
    "https://nuget.example.com/v3/index.json",
    "https://nuget.example.com/v3/index.json",
    "https://nuget.example.com/v3/",
  ],
  ["https://nuget.example.com/v2", "https://nuget.example.com/v2/", "https://nuget.example.com/v2/"],
])("takes NuGet's index %s as a file, with its packages beside it", (url, address, folder) => {
  const made = createRegistrySchema.parse({ kind: "nuget", url, token: "x" });
  expect(made.url).toBe(address);
  expect(registryFolder(made.url)).toBe(folder);
  // As rows of earlier versions have it.
  expect(registryFolder("https://nuget.example.com/v3/index.json/")).toBe("https://nuget.example.com/v3/");
});

it.each([
  ["pypi", "https://nexus.example.com/repository/py/simple/", ["https://nexus.example.com/repository/py/"]],
  [
    "pypi",
    "https://gitlab.example.com/api/v4/projects/7/packages/pypi/simple/",
    ["https://gitlab.example.com/api/v4/projects/7/packages/pypi/"],
  ],
  ["pypi", "https://devpi.example.com/acme/main/+simple/", ["https://devpi.example.com/acme/main/"]],
  [
    "pypi",
    "https://pkgs.dev.azure.com/acme/_packaging/feed/pypi/simple/",
    [
      "https://pkgs.dev.azure.com/acme/_packaging/feed/pypi/",
      "https://pkgs.dev.azure.com/acme/_packaging/*/pypi/download/",
    ],
  ],
  [
    "pypi",
    "https://pkgs.dev.azure.com/acme/shop/_packaging/feed/pypi/simple/",
    [
      "https://pkgs.dev.azure.com/acme/shop/_packaging/feed/pypi/",
      "https://pkgs.dev.azure.com/acme/*/_packaging/*/pypi/download/",
    ],
  ],
  [
    "pypi",
    "https://acme.pkgs.visualstudio.com/shop/_packaging/feed/pypi/simple/",
    [
      "https://acme.pkgs.visualstudio.com/shop/_packaging/feed/pypi/",
      "https://acme.pkgs.visualstudio.com/*/_packaging/*/pypi/download/",
    ],
  ],
  ["pypi", "https://pypi.example.com/all/", []],
  [
    "npm",
    "https://gitlab.example.com/api/v4/packages/npm/",
    ["https://gitlab.example.com/api/v4/projects/*/packages/npm/"],
  ],
  [
    "npm",
    "https://example.com/gitlab/api/v4/groups/12/-/packages/npm/",
    ["https://example.com/gitlab/api/v4/projects/*/packages/npm/"],
  ],
  ["npm", "https://npm.example.com/simple/", []],
] as const)("knows where the files of %s at %s are beside it", (kind, url, beside) => {
  expect(fileAddressesOf(kind, url)).toEqual(beside);
});
