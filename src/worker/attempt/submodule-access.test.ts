import { expect, test } from "vitest";
import { isAddressProblem, parseRepositoryUrl, type RepositoryAddress } from "../../domain/repositories/repository.ts";
import { createForges } from "../../forges/forges.ts";
import { haveSameOwner } from "./submodule-access.ts";

const { forgeOf, keyOf } = createForges([
  { kind: "github", webUrl: "https://github.com", apiUrl: "https://api.github.com", token: "x" },
  { kind: "git", webUrl: "https://plain.example", token: "x" },
]);

function addressOf(url: string): RepositoryAddress {
  const address = parseRepositoryUrl(url);
  if (isAddressProblem(address)) throw new Error(address.problem);
  return address;
}

test.each([
  ["https://github.com/acme/app", "https://github.com/acme/library", true],
  ["https://github.com/acme/app", "git@github.com:Acme/Library", true],
  ["https://github.com/acme/app", "https://github.com/other/library", false],
  ["https://github.com/acme/app", "https://github.com/acme/group/library", false],
  ["https://github.com/acme/app", "https://github.com.example/acme/library", false],
  // These hosts are not known to ignore case.
  ["https://plain.example/acme/app", "https://plain.example/acme/library", true],
  ["https://plain.example/acme/app", "https://plain.example/Acme/library", false],
  ["https://unknown.example/acme/app", "https://unknown.example/Acme/library", false],
  ["https://unknown.example/app", "https://unknown.example/library", false],
])("the owner of %s and of %s: the same is %s", (one, other, isSame) => {
  expect(haveSameOwner(addressOf(one), addressOf(other), { forgeOf, repositoryKeyOf: keyOf })).toBe(isSame);
});
