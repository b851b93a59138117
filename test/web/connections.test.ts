import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { startForge, type TestForge } from "../forge/server.ts";
import { accessibilityProblems, scrollsSideways } from "./browser.ts";
import { openSite, type Site } from "./site.ts";

let site: Site;
let forge: TestForge;

beforeAll(async () => {
  forge = await startForge();
  site = await openSite({ OFFSTAGE_FORGE_HOSTS: "127.0.0.1" });
});
afterAll(async () => {
  await site?.close();
  await forge?.close();
});
afterEach(async () => {
  forge.setGiteaScopes(null);
  await site.offstage.database.pool.query("delete from forge_connection");
});

test("a forge is connected, checked, its secret rotated, and deleted", async () => {
  forge.setGiteaScopes(["read:user"]);
  const page = await site.signedIn();
  await page.goto("/settings");
  await page.getByText("No connections yet.").waitFor();
  await page.getByRole("button", { name: "Connect a forge" }).click();
  await page.getByRole("dialog").getByLabel("Forge", { exact: true }).selectOption("gitea");
  await page.getByRole("dialog").getByLabel("Address", { exact: true }).fill(forge.url);
  await page.getByRole("dialog").getByLabel("Name", { exact: true }).fill("Our Gitea");
  await page.getByRole("dialog").getByLabel("Token").fill(forge.token);
  await page.getByRole("button", { name: "Check and connect" }).click();
  await page.getByRole("alert").getByText("missing write:repository").waitFor();
  expect(await accessibilityProblems(page)).toEqual([]);

  forge.setGiteaScopes(["read:user", "write:repository"]);
  await page.getByRole("button", { name: "Check and connect" }).click();
  const field = page.getByLabel("Webhook secret of Our Gitea");
  await field.and(page.locator(":focus")).waitFor();
  const secret = await field.inputValue();
  expect(secret).toMatch(/^[0-9a-f]{64}$/u);
  const row = page.getByRole("list", { name: "Connections" }).getByRole("listitem").filter({ hasText: "Our Gitea" });
  await row.getByText("Degraded").waitFor();
  await row.getByText("write:issue").waitFor();
  await row.getByText(/token of tester/u).waitFor();
  expect(await accessibilityProblems(page)).toEqual([]);
  await page.getByRole("button", { name: "Done" }).click();

  forge.setGiteaScopes(null);
  await row.getByRole("button", { name: "Check again" }).click();
  await row.getByText("Works").waitFor();
  await row.getByRole("button", { name: "Rotate the secret" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Rotate the secret" }).click();
  await field.and(page.locator(":focus")).waitFor();
  expect(await field.inputValue()).not.toBe(secret);
  await page.reload();
  await row.waitFor();
  expect(await page.content()).not.toContain(forge.token);
  expect(await page.content()).not.toContain(secret);

  await row.getByRole("button", { name: "Delete" }).click();
  await page.getByRole("alertdialog").getByRole("button", { name: "Delete" }).click();
  await page.getByText("No connections yet.").waitFor();
  expect((await site.call("/connection/list")).connections).toEqual([]);
});

test("a credential is replaced by one that is good, and what is wrong with another is said", async () => {
  const credential = { type: "token", token: forge.token };
  const { id } = await site.call("/connection/create", {
    kind: "gitea",
    webUrl: forge.url,
    name: "Replaced",
    credential,
  });
  const page = await site.signedIn();
  await page.goto("/settings");
  const row = page.getByRole("listitem").filter({ hasText: "Replaced" });
  await row.getByRole("button", { name: "Replace the credential" }).click();
  await page.getByRole("dialog").getByLabel("Token").fill("wrong");
  await page.getByRole("button", { name: "Check and save" }).click();
  await page.getByRole("alert").getByText("missing a valid token").waitFor();
  await page.getByRole("dialog").getByLabel("Token").fill(forge.token);
  await page.getByRole("button", { name: "Check and save" }).click();
  await page.getByRole("dialog").waitFor({ state: "detached" });
  await row.getByText("Works").waitFor();
  await site.call(`/connection/${id}/delete`, {});
});

test("who calls Offstage in a connection is said, refused with the field's problem, and taken back", async () => {
  const credential = { type: "token", token: forge.token };
  const name = "Called";
  const { id } = await site.call("/connection/create", { kind: "gitea", webUrl: forge.url, name, credential });
  const page = await site.signedIn();
  await page.goto("/settings");
  const row = page.getByRole("listitem").filter({ hasText: name });
  const dialog = page.getByRole("dialog");
  await row.getByRole("button", { name: "Who calls" }).click();
  await dialog.getByLabel("Mention").fill("two words");
  await dialog.getByLabel("Bots that may steer").fill("Renovate[bot], helper");
  await dialog.getByRole("button", { name: "Save" }).click();
  await dialog.getByRole("alert").getByText("must be a name, such as offstage").waitFor();
  expect(await accessibilityProblems(page)).toEqual([]);
  await dialog.getByLabel("Mention").fill("@robot");
  await dialog.getByRole("button", { name: "Save" }).click();
  await row.getByText("called @robot · steered by renovate[bot], helper").waitFor();
  expect(await site.call(`/connection/${id}`)).toMatchObject({
    mention: "robot",
    allowedBots: ["renovate[bot]", "helper"],
  });

  await row.getByRole("button", { name: "Who calls" }).click();
  await dialog.getByLabel("Mention").fill("");
  await dialog.getByLabel("Bots that may steer").fill("none");
  await dialog.getByRole("button", { name: "Save" }).click();
  await row.getByText("steered by no bot").waitFor();
  expect(await site.call(`/connection/${id}`)).toMatchObject({ mention: null, allowedBots: [] });
  await site.call(`/connection/${id}/delete`, {});
});

test("a connection gets another name and the forge's own webhook secret, which is not shown again", async () => {
  const page = await site.signedIn();
  await page.goto("/settings");
  await page.getByRole("button", { name: "Connect a forge" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByLabel("Forge", { exact: true }).selectOption("gitea");
  await dialog.getByLabel("Address", { exact: true }).fill(forge.url);
  await dialog.getByLabel("Token").fill(forge.token);
  const own = dialog.getByLabel("The forge’s own webhook secret");
  await own.fill("too short");
  await page.getByRole("button", { name: "Check and connect" }).click();
  await dialog.getByRole("alert").getByText("webhookSecret must be at least 16").waitFor();
  expect(await own.getAttribute("aria-invalid")).toBe("true");
  await own.fill("made-by-the-forge-1");
  await page.getByRole("button", { name: "Check and connect" }).click();
  await page.getByRole("list", { name: "Connections" }).getByText(new URL(forge.url).host).first().waitFor();
  await dialog.waitFor({ state: "detached" });
  expect(await page.getByRole("button", { name: "Done" }).count()).toBe(0);

  const row = page.getByRole("list", { name: "Connections" }).getByRole("listitem");
  await row.getByRole("button", { name: /^Change/u }).click();
  expect(await dialog.getByLabel("Repositories of work items").count()).toBe(0);
  await dialog.getByLabel("Name").fill(" ");
  await dialog.getByRole("button", { name: "Save" }).click();
  await dialog.getByRole("alert").getByText("name must not be empty").waitFor();
  expect(await accessibilityProblems(page)).toEqual([]);
  await dialog.getByLabel("Name").fill("Our forge");
  await dialog.getByRole("button", { name: "Save" }).click();
  await row.getByText("Our forge").first().waitFor();

  await row.getByRole("button", { name: "Rotate the secret" }).click();
  await own.fill("whsec_half");
  await dialog.getByRole("button", { name: "Rotate the secret" }).click();
  await dialog.getByRole("alert").getByText("webhookSecret must be").waitFor();
  expect(await accessibilityProblems(page)).toEqual([]);
  const sent = page.waitForRequest((request) => request.url().endsWith("/rotate-secret"));
  await own.fill("made-by-the-forge-2");
  await dialog.getByRole("button", { name: "Rotate the secret" }).click();
  await page.getByText("Our forge takes the forge’s secret from now on").waitFor();
  expect((await sent).postDataJSON()).toEqual({ webhookSecret: "made-by-the-forge-2" });
  expect(await page.content()).not.toContain("made-by-the-forge");
});

test("projects of Azure DevOps get the repositories that their work items are about", async () => {
  const credential = { type: "token", token: forge.token };
  const { id } = await site.call("/connection/create", { kind: "gitea", webUrl: forge.url, name: "Azure", credential });
  await site.offstage.database.pool.query("update forge_connection set kind = 'azure' where id = $1", [id]);
  const page = await site.signedIn();
  await page.goto("/settings");
  const row = page.getByRole("list", { name: "Connections" }).getByRole("listitem");
  const dialog = page.getByRole("dialog");
  const field = dialog.getByLabel("Repositories of work items");
  await row.getByRole("button", { name: "Change Azure" }).click();
  await field.fill("Shop = backend\n\nFabrikam Fiber");
  await dialog.getByRole("button", { name: "Save" }).click();
  await dialog.getByRole("alert").getByText("workItemRepositories.Fabrikam Fiber must not be empty").waitFor();
  expect(await field.getAttribute("aria-invalid")).toBe("true");
  expect(await accessibilityProblems(page)).toEqual([]);
  await field.fill("Shop = backend\nFabrikam Fiber=web");
  await dialog.getByRole("button", { name: "Save" }).click();
  await row.getByText("work items of Shop, Fabrikam Fiber").waitFor();
  const repositories = async () => (await site.call(`/connection/${id}`)).workItemRepositories;
  expect(await repositories()).toEqual({ Shop: "backend", "Fabrikam Fiber": "web" });
  await row.getByRole("button", { name: "Change Azure" }).click();
  expect(await field.inputValue()).toBe("Shop = backend\nFabrikam Fiber = web");
  await field.fill("");
  await dialog.getByRole("button", { name: "Save" }).click();
  await row.getByText("work items of").waitFor({ state: "detached" });
  expect(await repositories()).toBe(null);
});

test("a GitHub App is registered at GitHub by its manifest, and connected", async () => {
  const page = await site.signedIn();
  await page.goto("/settings");
  await page.getByRole("button", { name: "Connect a forge" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByLabel("Address", { exact: true }).fill(forge.url);
  await dialog.getByLabel("Credential").selectOption("register");
  await dialog.getByLabel("Organization at GitHub").fill("acme");
  expect(await accessibilityProblems(page)).toEqual([]);
  await dialog.getByRole("button", { name: "Continue" }).click();
  await page.getByRole("heading", { name: "Register a GitHub App" }).waitFor();
  expect(await accessibilityProblems(page)).toEqual([]);
  await page.getByRole("button", { name: /^Continue at/u }).click();
  await page.getByRole("link", { name: "Create GitHub App" }).click();
  await page.waitForURL(`${forge.url}/apps/offstage-4711/installations/new`);
  await page.goto(`${site.offstage.url}/settings`);
  const row = page.getByRole("listitem").filter({ hasText: "GitHub App of offstage-4711" });
  await row.getByText("The App has no repositories yet.").waitFor();
  await row.getByRole("link", { name: /Install the App/u }).waitFor();

  await page.goto(`${site.offstage.url}/connection/github-app/callback?code=a&state=b`);
  await page.getByRole("alert").getByText("was begun in another browser").waitFor();
  await page.goto(`${site.offstage.url}/connection/github-app/form?state=b`);
  await page.getByText("the registration has expired").waitFor();
});

for (const colorScheme of ["light", "dark"] as const) {
  test(`axe finds nothing and nothing sticks out in ${colorScheme} on a small screen`, async () => {
    forge.setGiteaScopes(["write:repository"]);
    const credential = { type: "token", token: forge.token };
    const name = `A forge with a rather long name ${"x".repeat(60)}`;
    const { id } = await site.call("/connection/create", { kind: "gitea", webUrl: forge.url, name, credential });
    const page = await site.signedIn({ colorScheme, viewport: { width: 360, height: 800 } });
    await page.goto("/settings");
    await page.getByText("write:issue").waitFor();
    expect(await accessibilityProblems(page)).toEqual([]);
    expect(await scrollsSideways(page)).toBe(false);
    await site.call(`/connection/${id}/delete`, {});
  });
}
