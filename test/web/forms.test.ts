import type { Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { accessibilityProblems, scrollsSideways } from "./browser.ts";
import { openSite, type Site } from "./site.ts";

let site: Site;

beforeAll(async () => {
  site = await openSite();
});
afterEach(() => site.requireQuiet());
afterAll(() => site?.close());

const registries = (page: Page) => page.getByRole("list", { name: "Private package registries" }).getByRole("listitem");

async function openSettings(options: Parameters<Site["signedIn"]>[0] = {}): Promise<Page> {
  const page = await site.signedIn(options);
  await page.goto("/settings");
  return page;
}

test("a private registry is added, given another token, and deleted; what is wrong is said at its field", async () => {
  const page = await openSettings();
  await page.getByText("No private registries yet.").waitFor();
  expect(await accessibilityProblems(page)).toEqual([]);
  await page.getByRole("button", { name: "Add a registry" }).click();
  const dialog = page.getByRole("dialog");
  const add = dialog.getByRole("button", { name: "Add", exact: true });
  await dialog.getByLabel("Address").fill("http://npm.acme.example");
  await add.click();
  await dialog.getByRole("alert").getByText("url must be an https:// address").waitFor();
  expect(await dialog.getByLabel("Address").getAttribute("aria-invalid")).toBe("true");
  expect(await accessibilityProblems(page)).toEqual([]);
  await dialog.getByLabel("Address").fill("https://npm.acme.example");
  await dialog.getByLabel("Token").fill("first-token");
  await dialog.getByLabel("User name").fill("a:b");
  await add.click();
  await dialog.getByRole("alert").getByText("username must not contain a colon").waitFor();
  await dialog.getByLabel("User name").fill("robot");
  await dialog.getByLabel("Scope").fill("acme");
  await add.click();
  await dialog.getByRole("alert").getByText("scope must be a scope of npm, such as @acme").waitFor();
  await dialog.getByLabel("Scope").fill("@acme");
  await add.click();
  await dialog.waitFor({ state: "detached" });
  const row = registries(page).filter({ hasText: "npm @acme" });
  await row.getByText("https://npm.acme.example/ · user robot · set").waitFor();
  expect(await accessibilityProblems(page)).toEqual([]);
  const [made] = (await site.client.registry.list()).registries;
  expect(made).toMatchObject({ kind: "npm", url: "https://npm.acme.example/", scope: "@acme", username: "robot" });

  await row.getByRole("button", { name: "Replace the token" }).click();
  await dialog.getByRole("button", { name: "Save" }).click();
  await dialog
    .getByRole("alert")
    .getByText(/^token /u)
    .waitFor();
  expect(await accessibilityProblems(page)).toEqual([]);
  await dialog.getByLabel("New token").fill("second-token");
  await dialog.getByRole("button", { name: "Save" }).click();
  await dialog.waitFor({ state: "detached" });
  const [replaced] = (await site.client.registry.list()).registries;
  expect(Date.parse(replaced?.updatedAt ?? "")).toBeGreaterThan(Date.parse(made?.updatedAt ?? ""));
  await page.reload();
  await row.waitFor();
  expect(await page.content()).not.toMatch(/(?:first|second)-token/u);

  await row.getByRole("button", { name: "Delete" }).click();
  const question = page.getByRole("alertdialog");
  await question.getByText("Its token is deleted with it.").waitFor();
  expect(await accessibilityProblems(page)).toEqual([]);
  await question.getByRole("button", { name: "Cancel" }).click();
  await row.getByRole("button", { name: "Delete" }).click();
  await question.getByRole("button", { name: "Delete" }).click();
  await page.getByText("No private registries yet.").waitFor();
  expect((await site.client.registry.list()).registries).toEqual([]);
});

test("each kind of registry asks for what it has, with the keyboard alone, and one is not added twice", async () => {
  const page = await openSettings();
  await page.getByRole("button", { name: "Add a registry" }).press("Enter");
  const dialog = page.getByRole("dialog");
  const kind = dialog.getByLabel("Kind");
  await dialog.getByLabel("Scope").fill("@acme");
  await kind.selectOption("Cargo");
  await dialog.getByLabel("Name in Cargo").waitFor();
  await kind.selectOption("Go");
  await dialog.getByLabel("Modules").waitFor();
  await kind.selectOption("PyPI");
  await dialog.getByText("Everything that pip and uv install comes from it.").waitFor();
  expect(await dialog.getByRole("textbox").count()).toBe(3);
  await dialog.getByLabel("Address").fill("https://pypi.acme.example/simple");
  await dialog.getByLabel("Token").fill("a-token");
  await dialog.getByLabel("Token").press("Enter");
  await dialog.waitFor({ state: "detached" });
  const row = registries(page).filter({ hasText: "PyPI" });
  await row.getByText("https://pypi.acme.example/simple/ · set").waitFor();

  await page.getByRole("button", { name: "Add a registry" }).press("Enter");
  await kind.selectOption("PyPI");
  await dialog.getByLabel("Address").fill("https://pypi.acme.example/other/simple");
  await dialog.getByLabel("Token").fill("a-token");
  await dialog.getByLabel("Token").press("Enter");
  await dialog.getByRole("alert").getByText("a registry of pypi for all packages already exists").waitFor();
  await page.keyboard.press("Escape");
  await dialog.waitFor({ state: "detached" });
  const [{ id } = { id: "" }] = (await site.client.registry.list()).registries;
  await site.client.registry.delete(id);
});

test("only admins are shown the registries, and what could not be loaded is tried again", async () => {
  const { key } = await site.call("/key/create", { name: "member", role: "member" });
  const ofMember = await openSettings({ key });
  await ofMember.getByRole("heading", { name: "Your accounts" }).waitFor();
  expect(await ofMember.getByRole("heading", { name: "Private package registries" }).count()).toBe(0);

  const page = await site.signedIn();
  await page.route("**/registry/list*", (route) => route.fulfill({ status: 403, json: { error: "not now" } }));
  await page.goto("/settings");
  const section = page.getByRole("region", { name: "Private package registries" });
  await section.getByRole("alert").getByText("not now").waitFor();
  expect(await accessibilityProblems(page)).toEqual([]);
  await page.unroute("**/registry/list*");
  await section.getByRole("button", { name: "Try again" }).click();
  await section.getByText("No private registries yet.").waitFor();
});

for (const colorScheme of ["light", "dark"] as const) {
  test(`axe finds nothing in the registries in German in ${colorScheme} on a small screen, and nothing sticks out`, async () => {
    const url = `https://packages.acme.example/${"a-long-path/".repeat(8)}`;
    const { id } = await site.client.registry.create({ kind: "npm", url, token: "a-token", scope: "@acme" });
    const page = await openSettings({ colorScheme, locale: "de-AT", viewport: { width: 390, height: 800 } });
    const row = page.getByRole("list", { name: "Private Paket-Registries" }).getByRole("listitem");
    await row.getByText("gesetzt").waitFor();
    expect(await accessibilityProblems(page)).toEqual([]);
    expect(await scrollsSideways(page)).toBe(false);
    await page.getByRole("button", { name: "Registry hinzufügen" }).click();
    await page.getByRole("dialog").getByLabel("Benutzername").waitFor();
    expect(await accessibilityProblems(page)).toEqual([]);
    expect(await scrollsSideways(page)).toBe(false);
    await site.client.registry.delete(id);
  });
}
