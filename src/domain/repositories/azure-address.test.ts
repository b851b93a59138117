import { expect, it } from "vitest";
import { azureServicesPath, isOldAzureAddress } from "./azure-address.ts";
import { createConnectionSchema } from "./connection.ts";
import { isAddressProblem, parseRepositoryUrl } from "./repository.ts";

it.each([
  [
    "https://dev.azure.com/acme/My%20Project/_git/My%20App",
    "https://dev.azure.com/acme/My%20Project/_git/My%20App",
    "My Project/My App",
  ],
  // As its page shows it for cloning.
  ["https://acme@dev.azure.com/acme/shop/_git/app", "https://dev.azure.com/acme/shop/_git/app", "shop/app"],
  ["https://acme.visualstudio.com/shop/_git/app", "https://acme.visualstudio.com/shop/_git/app", "shop/app"],
  ["git@ssh.dev.azure.com:v3/acme/shop/app", "git@ssh.dev.azure.com:v3/acme/shop/app", "shop/app"],
  ["https://dev.azure.com/acme/_git/app", "https://dev.azure.com/acme/_git/app", "app/app"],
  // Without the end its repository is not found.
  ["https://dev.azure.com/acme/shop/_git/app.git", "https://dev.azure.com/acme/shop/_git/app.git", "shop/app.git"],
])("git gets %s as it is written", (url, cloneUrl, name) => {
  expect(parseRepositoryUrl(url)).toMatchObject({ cloneUrl, name, host: "dev.azure.com" });
});

it.each([
  "https://acme:secret@dev.azure.com/acme/shop/_git/app",
  "https://mallory@dev.azure.com/acme/shop/_git/app",
  "https://acme@dev.azure.com.evil.example/acme/shop/_git/app",
  "https://acme@git.example/acme/app",
])("credentials in %s are refused", (url) => {
  const address = parseRepositoryUrl(url);
  expect(isAddressProblem(address) && address.problem).toContain("must not contain credentials");
});

it.each([
  ["https://dev.azure.com/acme/shop", "dev.azure.com", "acme/shop"],
  ["https://dev.azure.com/acme/a/b/_git/app", "dev.azure.com", "acme/a/b/_git/app"],
  ["https://dev.azure.com/acme/shop/_git/app/more", "dev.azure.com", "acme/shop/_git/app/more"],
  ["https://a.b.visualstudio.com/shop/_git/app", "a.b.visualstudio.com", "shop/_git/app"],
  ["https://visualstudio.com.evil.example/shop/_git/app", "visualstudio.com.evil.example", "shop/_git/app"],
  ["git@ssh.dev.azure.com:v3/acme/app", "ssh.dev.azure.com", "v3/acme/app"],
  ["git@ssh.evil.example:v3/acme/shop/app", "ssh.evil.example", "v3/acme/shop/app"],
  ["https://dev.azure.com/acme/%252e%252e/_git/app", "dev.azure.com", "acme/%252e%252e/_git/app"],
  ["git@ssh.dev.azure.com:v3/acme/%2e%2e/app", "ssh.dev.azure.com", "v3/acme/%252e%252e/app"],
])("%s is not taken for a repository elsewhere", (url, host, path) => {
  expect(parseRepositoryUrl(url)).toMatchObject({ host, path });
});

it("a connection names an organization by its address of today", () => {
  const connection = { kind: "azure", credential: { type: "token", token: "x" } };
  const problemOf = (webUrl?: string): string | undefined =>
    createConnectionSchema.safeParse({ ...connection, ...(webUrl !== undefined && { webUrl }) }).error?.issues[0]
      ?.message;
  expect(problemOf("https://dev.azure.com/acme")).toBeUndefined();
  expect(problemOf("https://acme.visualstudio.com")).toContain("must be written https://dev.azure.com/<organization>");
  expect(problemOf()).toBe("is required for this kind");
});

it("what is no text of Unicode, and a host that is too long, are no addresses, and break nothing", () => {
  expect(azureServicesPath("ssh.dev.azure.com", "v3/acme/shop/web", true)).toBe("acme/shop/_git/web");
  expect(azureServicesPath("ssh.dev.azure.com", "v3/acme/shop/\ud800", true)).toBeNull();
  const long = `https://${"A".repeat(100_000)}.visualstudio.com`;
  // Node's parser says yes first, and throws then.
  expect(URL.canParse(long)).toBe(true);
  expect(isOldAzureAddress(long)).toBe(false);
  expect(isOldAzureAddress("https://acme.visualstudio.com")).toBe(true);
});
