import { describe, expect, it } from "vitest";
import { isAddressProblem, parseRepositoryUrl } from "./repository.ts";
import { allowsRepository, repositoryPatternSchema, repositoryRefusal } from "./repository-pattern.ts";

function allows(pattern: string, url: string): boolean {
  const address = parseRepositoryUrl(url);
  if (isAddressProblem(address)) throw new Error(`${url} ${address.problem}`);
  expect(repositoryPatternSchema.safeParse(pattern).success).toBe(true);
  return allowsRepository([pattern], address);
}

describe("a list of repositories", () => {
  it.each([
    ["github.com/acme/*", "https://github.com/acme/shop"],
    ["github.com/acme/*", "https://GitHub.com/acme/shop.git/"],
    ["github.com/acme/*", "git@github.com:acme/shop.git"],
    ["github.com/acme/*", "ssh://git@github.com/acme/shop"],
    ["GitHub.com/acme/shop.git", "https://github.com/acme/shop"],
    ["*.company.example/*", "https://git.company.example/deep/er/shop"],
    ["git.example:8443/*", "https://git.example:8443/acme/shop"],
    ["[2001:db8::1]/*", "https://[2001:db8::1]/acme/shop"],
    ["/srv/repositories/*", "/srv/repositories/shop.git"],
    ["/srv/repositories/*", "file:///srv/repositories/shop.git"],
    ["git.example/*/shop", "https://git.example/acme/shop"],
  ])("with %s lets %s through", (pattern, url) => {
    expect(allows(pattern, url)).toBe(true);
  });

  it.each([
    ["github.com/acme/*", "https://github.com/acme-evil/shop"],
    ["github.com/acme/*", "https://github.com/ACME/shop"],
    ["github.com/acme/*", "https://github.com.evil.example/acme/shop"],
    ["github.com/acme/*", "https://evil.example/github.com/acme/shop"],
    ["github.com/acme/*", "https://github.com:8443/acme/shop"],
    ["*.company.example/*", "https://company.example/acme/shop"],
    ["*.company.example/*", "https://evilcompany.example/acme/shop"],
    ["git.example/acme/shop", "https://git.example/acme/shop2"],
    ["/srv/repositories/*", "https://srv/repositories/shop"],
    ["git.example/*", "/git.example/shop"],
  ])("with %s does not let %s through", (pattern, url) => {
    expect(allows(pattern, url)).toBe(false);
  });

  it.each([
    ["https://git.example/acme/shop", null],
    ["http://git.example/acme/shop", null],
    ["git@git.example:acme/shop.git", "server"],
    ["ssh://git@git.example/acme/shop", "server"],
    ["/srv/repositories/shop", "server"],
    ["file:///srv/repositories/shop", "server"],
    ["https://git.example/other/shop", "list"],
  ])("lets through %s what an organization reaches without the server's ssh keys and disk: %s", (url, refusal) => {
    const address = parseRepositoryUrl(url);
    if (isAddressProblem(address)) throw new Error(address.problem);
    const patterns = ["git.example/acme/*", "/srv/*"];
    expect(repositoryRefusal({ patterns, usesServerForges: false }, address)).toBe(refusal);
    expect(repositoryRefusal({ patterns: null, usesServerForges: true }, address)).toBeNull();
  });

  it("that is empty lets nothing through, and none at all everything", () => {
    const address = parseRepositoryUrl("https://git.example/acme/shop");
    if (isAddressProblem(address)) throw new Error(address.problem);
    expect([allowsRepository([], address), allowsRepository(null, address)]).toEqual([false, true]);
  });

  it.each([
    "",
    "github.com",
    "github.com*",
    "*",
    "*/acme",
    "https://github.com/acme/*",
    "git@github.com:acme/*",
    "a b/c",
    "host/",
  ])("can't have %j in it", (pattern) => {
    expect(repositoryPatternSchema.safeParse(pattern).success).toBe(false);
  });
});
