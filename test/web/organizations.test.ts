import type { Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { findDefaultOrganization } from "../../src/store/people/organizations.ts";
import { addSession, identityOf, signInBrowser, signInUser } from "../store/fixtures.ts";
import { waitFor } from "../wait-for.ts";
import { accessibilityProblems, scrollsSideways } from "./browser.ts";
import { openSite, type Site } from "./site.ts";

/** Several organizations of one server: for those who look after it, and for whoever is of more than one. */
let site: Site;
let organizationId: string;

beforeAll(async () => {
  site = await openSite();
  organizationId = await findDefaultOrganization(site.offstage.database);
});
afterEach(() => site.requireQuiet());
afterAll(() => site?.close());

/** In light on a desktop, and in dark on a phone: axe finds nothing, and nothing sticks out. */
async function isFitting(page: Page): Promise<void> {
  const size = page.viewportSize();
  expect(await accessibilityProblems(page)).toEqual([]);
  await page.emulateMedia({ colorScheme: "dark" });
  await page.setViewportSize({ width: 390, height: 800 });
  expect(await scrollsSideways(page)).toBe(false);
  expect(await accessibilityProblems(page)).toEqual([]);
  await page.emulateMedia({ colorScheme: "light" });
  if (size !== null) await page.setViewportSize(size);
}

/** A page of somebody whom a provider signed in to the organization default. */
async function pageOf(subject: string, options: Parameters<Site["stranger"]>[0] = {}): Promise<Page> {
  const { database, url } = site.offstage;
  const user = await signInUser(database, organizationId, identityOf(subject), "member");
  const page = await site.stranger(options);
  const value = await signInBrowser(database, organizationId, user?.id ?? "", identityOf(subject).issuer);
  await page.context().addCookies([{ name: "offstage_session", value, url, httpOnly: true, sameSite: "Strict" }]);
  return page;
}

/** A new organization, in which somebody of the provider is an admin. */
async function createFor(name: string, subject: string): Promise<{ readonly id: string; readonly key: string }> {
  const { organization, adminKey } = await site.call("/organization/create", { name });
  await signInUser(site.offstage.database, organization.id, identityOf(subject), "admin");
  return { id: organization.id, key: adminKey };
}

test("an admin of the server creates an organization, gives its admin a link or a key, and erases it", async () => {
  const page = await site.signedIn();
  await page.goto("/system");
  const list = page.getByRole("list", { name: "Organizations" });
  await list.getByText("the server’s own").waitFor();
  expect(await list.getByRole("button", { name: /^Erase/u }).count()).toBe(0);
  await isFitting(page);
  await page.getByRole("button", { name: "New organization" }).click();
  const form = page.getByRole("dialog", { name: "New organization" });
  await form.getByLabel("Its name").fill("default");
  await form.getByLabel("Name of the admin").fill("Ada <b>L</b>");
  await form.getByRole("button", { name: "Create" }).click();
  await form.getByRole("alert").getByText("a name that only the server gives").waitFor();
  expect(await accessibilityProblems(page)).toEqual([]);
  await form.getByLabel("Its name").fill("قسم <i>البحث</i>");
  await form.getByLabel("E-mail address").fill("ada");
  await form.getByRole("button", { name: "Create" }).press("Enter");
  await form.getByRole("alert").getByText("admin.email must be an e-mail address").waitFor();
  await form.getByLabel("E-mail address").fill("ada@example.com");
  await form.getByRole("button", { name: "Create" }).press("Enter");
  const link = page.getByLabel("Link for Ada <b>L</b>, the admin of قسم <i>البحث</i>");
  await link.and(page.locator(":focus")).waitFor();
  const row = list.getByRole("listitem").filter({ hasText: "قسم <i>البحث</i>" });
  await row.getByText("1 member · 0 sessions").waitFor();
  await isFitting(page);
  const address = await link.inputValue();
  const lends = row.getByRole("checkbox", { name: "uses the server’s forges" });
  expect(await lends.isChecked()).toBe(false);
  const usesForges = async (): Promise<boolean> =>
    (await site.call("/organization/list")).organizations[0].usesServerForges;
  await lends.press("Space");
  await waitFor(usesForges, "the server has it");
  await page.reload();
  await row.getByRole("checkbox", { checked: true }).press("Space");
  await waitFor(async () => !(await usesForges()), "the server has that, too");

  const theirs = await site.stranger();
  await theirs.goto(address);
  await theirs.getByRole("heading", { name: "Sessions", level: 1 }).waitFor();
  const navigation = theirs.getByRole("navigation", { name: "Main" });
  await navigation.getByRole("link", { name: "People" }).waitFor();
  // They are an admin, and not of the server.
  expect(await navigation.getByRole("link", { name: "System" }).count()).toBe(0);
  await theirs.goto("/settings");
  await theirs.getByRole("heading", { name: "API keys" }).waitFor();
  expect(await theirs.getByRole("heading", { name: "Your organizations" }).count()).toBe(0);
  await theirs.goto("/system");
  await theirs.getByRole("alert").getByText("this concerns the whole server").waitFor();
  expect(await accessibilityProblems(theirs)).toEqual([]);

  await page.getByRole("button", { name: "New organization" }).click();
  await form.getByLabel("Its name").fill("by key");
  await form.getByLabel("Its first admin").selectOption("gets an API key from me");
  await form.getByRole("button", { name: "Create" }).click();
  const key = await page.getByLabel("Admin key of by key").inputValue();
  const me = await fetch(`${site.offstage.url}/me`, { headers: { authorization: `Bearer ${key}` } });
  expect(await me.json()).toMatchObject({ isServerAdmin: false, scopes: ["trigger", "read", "write", "admin"] });

  await list.getByRole("button", { name: "Erase by key" }).click();
  const erasing = page.getByRole("dialog", { name: "Erase by key for ever?" });
  await erasing.getByLabel("Its name").fill("by kex");
  await erasing.getByRole("button", { name: "Erase for ever" }).click();
  await erasing.getByRole("alert").getByText("to confirm its erasure").waitFor();
  expect(await accessibilityProblems(page)).toEqual([]);
  await erasing.getByLabel("Its name").fill("by key");
  await erasing.getByRole("button", { name: "Erase for ever" }).click();
  await list.getByRole("button", { name: "Erase by key" }).waitFor({ state: "detached" });
  await row.waitFor();
});

test("whoever is of several organizations sees where they are, and goes on in another, in every window", async () => {
  const { id } = await createFor("Team of the weather <b>", "ada");
  const page = await pageOf("ada");
  await addSession(site.offstage.database, organizationId, { prompt: "Work of the server’s own" });
  await page.goto("/settings#organizations");
  const section = page.getByRole("region", { name: "Your organizations" });
  await section.getByText("you are here").waitFor();
  await isFitting(page);
  const other = await page.context().newPage();
  await other.goto("/");
  await other.getByText("Work of the server’s own").first().waitFor();
  const menu = page.getByRole("button", { name: "Organization: default" });
  await menu.click();
  const offered = page.getByRole("list", { name: "Your organizations" }).first();
  await offered.getByRole("button", { name: "Switch to Team of the weather <b>" }).waitFor();
  await page.getByRole("button", { name: "Sign out", exact: true }).waitFor();
  expect(await accessibilityProblems(page)).toEqual([]);
  await offered.getByRole("button", { name: "Switch to Team of the weather <b>" }).press("Enter");
  for (const window of [page, other]) {
    await window.getByRole("button", { name: "Organization: Team of the weather <b>" }).waitFor();
    await window.getByRole("heading", { name: "Sessions", level: 1 }).waitFor();
    expect(await window.getByText("Work of the server’s own").count()).toBe(0);
  }
  expect(await (await page.request.get("/me")).json()).toMatchObject({ orgId: id, isServerAdmin: false });
  // By the palette back, and by the settings there again.
  await page.keyboard.press("Control+k");
  await page.getByRole("combobox", { name: "Search and commands" }).fill("switch to default");
  await page.getByRole("option", { name: "Switch to default" }).waitFor();
  await page.keyboard.press("Enter");
  await menu.waitFor();
  await page.goto("/settings#organizations");
  await section.getByRole("button", { name: "Switch to Team of the weather <b>" }).press("Enter");
  await page.getByRole("button", { name: "Organization: Team of the weather <b>" }).waitFor();
});

test("both are there in German, and on a phone", async () => {
  await createFor("Forschung", "grace");
  const page = await pageOf("grace", { locale: "de-AT", viewport: { width: 390, height: 800 } });
  await page.goto("/settings#organizations");
  // Parts of the page wait for their words one after the other.
  await page.waitForLoadState("networkidle");
  await page.getByRole("heading", { name: "Einstellungen", level: 1 }).waitFor();
  await page.getByText("In jeder davon hast du ein Konto.").waitFor();
  expect(await accessibilityProblems(page)).toEqual([]);
  await page.getByRole("button", { name: "Menü" }).click();
  await page.getByRole("button", { name: "Organisation: default" }).click();
  expect(await accessibilityProblems(page)).toEqual([]);
  expect(await scrollsSideways(page)).toBe(false);
  await page
    .getByRole("list", { name: "Deine Organisationen" })
    .first()
    .getByRole("button", { name: "Zu Forschung wechseln" })
    .click();
  await page.getByRole("button", { name: "Menü" }).click();
  await page.getByRole("button", { name: "Organisation: Forschung" }).waitFor();

  const admin = await site.signedIn({ locale: "de-AT" });
  await admin.goto("/system");
  await admin
    .getByRole("list", { name: "Organisationen" })
    .getByRole("button", { name: "Löschen Forschung" })
    .waitFor();
  await admin.getByRole("button", { name: "Neue Organisation" }).click();
  await admin.getByRole("dialog", { name: "Neue Organisation" }).getByLabel("Der erste Admin").waitFor();
  expect(await accessibilityProblems(admin)).toEqual([]);
});
