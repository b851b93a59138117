import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { isAddressProblem, parseRepositoryUrl, type RepositoryAddress } from "./repository.ts";

const read = (url: string): RepositoryAddress => {
  const address = parseRepositoryUrl(url);
  if (isAddressProblem(address)) throw new Error(address.problem);
  return address;
};

describe("a repository's URL", () => {
  it.each([
    ["https://github.com/acme/shop", "https://github.com/acme/shop", "acme/shop"],
    ["https://GitHub.com/acme/shop.git/", "https://github.com/acme/shop.git", "acme/shop"],
    ["git@github.com:acme/shop.git", "git@github.com:acme/shop.git", "acme/shop"],
    ["ssh://git@example.com:2222/team/sub/shop", "ssh://git@example.com:2222/team/sub/shop", "sub/shop"],
    ["file:///srv/git/shop.git", "/srv/git/shop.git", "shop"],
    ["file:///srv/my%20shop.git", "/srv/my shop.git", "my shop"],
    ["/srv/my shop/100%25#?", "/srv/my shop/100%25#?", "100%25#?"],
    ["https://git.example/acme/my shop", "https://git.example/acme/my%20shop", "acme/my shop"],
    ["ssh://git@git.example/acme/my shop", "ssh://git@git.example/acme/my%20shop", "acme/my shop"],
    ["git@git.example:acme/my shop", "git@git.example:acme/my shop", "acme/my shop"],
    ["https://git.example/größe/a+b", "https://git.example/gr%C3%B6%C3%9Fe/a+b", "größe/a+b"],
    ["https://git.example/acme/x%0Ay", "https://git.example/acme/x%0Ay", "acme/x%0Ay"],
  ])("%s is cloned from %s and called %s", (url, cloneUrl, name) => {
    expect(read(url)).toMatchObject({ cloneUrl, name });
  });

  it("means the same repository in each of its forms", () => {
    const forms = [
      "https://github.com/acme/shop",
      "https://github.com/acme/shop.git",
      "git@github.com:acme/shop.git",
      "ssh://git@GITHUB.com/acme/shop",
      "ssh://git@github.com:22/acme/shop",
      "https://github.com:443/acme/./shop",
      "https://github.com./acme/shop",
      "https://github.com/acme/s%68op%2Egit",
      "ssh://git@github.com/%61cme/%73hop",
    ];
    expect(new Set(forms.map((url) => read(url).key))).toEqual(new Set(["github.com/acme/shop"]));
    const local = [
      "/srv/git/shop.git",
      "/srv//git/./shop.git/",
      "file:///srv/git/%2e/s%68op.git",
      "file:///srv/git%2fshop.git",
    ];
    expect(new Set(local.map((url) => read(url).key))).toEqual(new Set(["file:/srv/git/shop.git"]));
  });

  it.each([
    ["https://github.com/acme/shop", "https://github.com/acme/Shop"],
    ["https://github.com/acme/shop", "https://github.com:8443/acme/shop"],
    ["https://github.com/acme/shop", "ssh://git@github.com:2222/acme/shop"],
    ["https://github.com/acme/%C3%BC", "https://github.com/acme/%C3%BD"],
    ["git@github.com:acme/shop", "git@github.com:acme/%73hop"],
    ["git@github.com:acme/my shop", "git@github.com:acme/my%20shop"],
  ])("means another repository by %s than by %s", (one, other) => {
    expect(read(one).key).not.toBe(read(other).key);
  });

  it.each([
    ["https://user:secret@github.com/acme/shop", "credentials"],
    ["https://token@github.com/acme/shop", "credentials"],
    ["ftp://example.com/a/b", "scheme"],
    ["ext::sh -c id", "scheme"],
    ["/srv/a\nb", "white space"],
    ["/srv/a\u00a0b", "white space"],
    ["file:///srv/a%0ab", "white space"],
    ["file:///srv/a%20", "end in white space"],
    ["/srv/a /", "end in white space"],
    ["file:///srv/a#b", "%23"],
    ["file:///srv/a?b", "%3F"],
    ["--upload-pack=id", "dash"],
    ["ssh://git@$(id)/acme/shop", "host"],
    ["ssh://git@example.com;id/acme/shop", "host"],
    ["https://github.com/", "path"],
    ["https://github.com/acme/shop?x=1", "query"],
    ["file:///srv/a%zz", "%"],
    ["file:///srv/a%00b", "%"],
    ["git@github.com:acme/../other/shop", ".."],
    ["https://git.example/acme/x%2f..%2F..%2fother%2fshop", "encoded / or"],
    ["ssh://git@git.example/acme/x%2F..%5C..%2Fother", "encoded / or"],
    ["nonsense", "not a URL"],
  ])("%s is refused for its %s", (url, reason) => {
    const address = parseRepositoryUrl(url);
    expect(address).toMatchObject({ problem: expect.stringContaining(reason) as string });
  });

  it("of any text is an address or a problem, and an address reads as itself again", () => {
    fc.assert(
      fc.property(
        fc.oneof(
          fc.string(),
          fc.webUrl(),
          fc.string().map((path) => `file:///${path}`),
        ),
        (url) => {
          const address = parseRepositoryUrl(url);
          if (isAddressProblem(address)) return;
          expect(read(address.cloneUrl).key).toBe(address.key);
          expect(address.cloneUrl).not.toMatch(/^-/u);
        },
      ),
    );
  });
});
