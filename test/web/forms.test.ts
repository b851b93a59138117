import type { Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { webhookEvents } from "../../src/domain/webhooks/webhook.ts";
import { adminKey, untilOver } from "../world.ts";
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

/** As if the person came back from another window: the page asks for news. */
const comeBack = (page: Page) =>
  page.evaluate("document.dispatchEvent(new Event('visibilitychange', { bubbles: true }))");
const question = (page: Page) => page.getByRole("alertdialog", { name: "Leave without saving?" });

/** Answers the browser's own question before a page is left. @returns what it asked so far, by type */
function answerBrowser(page: Page, doesLeave: boolean): string[] {
  const asked: string[] = [];
  page.on("dialog", async (dialog) => {
    asked.push(dialog.type());
    await (doesLeave ? dialog.accept() : dialog.dismiss());
  });
  return asked;
}

test("who leaves an automation's editor with changes is asked first, whichever way they go", async () => {
  const automation = await site.call("/automation/create", { name: "Kept", macro: "kept", instructions: "say a" });
  const page = await site.signedIn();
  await page.goto(`/automations/${automation.id}`);
  await page.getByRole("link", { name: "Edit" }).click();
  const instructions = page.getByRole("textbox", { name: "Instructions" });
  await instructions.press("End");
  await page.getByRole("link", { name: "Cancel" }).click();
  await page.getByRole("link", { name: "Edit" }).click();
  await instructions.press("End");
  await instructions.pressSequentially("bc");

  await page.getByRole("link", { name: "Ledger" }).click();
  await question(page).waitFor();
  expect(await accessibilityProblems(page)).toEqual([]);
  await question(page).getByRole("button", { name: "Cancel" }).press("Enter");
  await question(page).waitFor({ state: "detached" });
  const address = `${site.offstage.url}/automations/${automation.id}/edit`;
  expect(page.url()).toBe(address);
  await page.evaluate("history.back()");
  await question(page).waitFor();
  await page.keyboard.press("Escape");
  await question(page).waitFor({ state: "detached" });
  await page.waitForURL(address);
  expect(await instructions.inputValue()).toBe("say abc");

  const asked = answerBrowser(page, false);
  await page.evaluate("setTimeout(() => location.reload())");
  await expect.poll(() => asked).toEqual(["beforeunload"]);
  await page.close({ runBeforeUnload: true });
  await expect.poll(() => asked).toEqual(["beforeunload", "beforeunload"]);
  expect(await instructions.inputValue()).toBe("say abc");

  await page.evaluate("history.back()");
  await question(page).getByRole("button", { name: "Leave" }).click();
  await page.waitForURL(`${site.offstage.url}/automations/${automation.id}`);
  await page.getByRole("heading", { name: "Kept" }).waitFor();
  expect(await site.call("/automation/kept")).toMatchObject({ instructions: "say a" });
  await site.call("/automation/kept/delete", {});
});

test("saving an automation does not ask, and one that is as it was does not either", async () => {
  const page = await site.signedIn();
  const asked = answerBrowser(page, true);
  await page.goto("/automations/new?template=bump-dependencies");
  const name = page.getByLabel("Name", { exact: true });
  await name.press("End");
  await name.pressSequentially("!");
  await page.getByRole("link", { name: "Start from something else" }).click();
  await question(page).getByRole("button", { name: "Cancel" }).click();
  expect(await name.inputValue()).toBe("Bump dependencies!");
  await page.getByRole("button", { name: "Create" }).click();
  await page.getByRole("heading", { name: "Bump dependencies!" }).waitFor();
  expect(await question(page).count()).toBe(0);

  await page.getByRole("link", { name: "Edit" }).click();
  await name.press("End");
  await name.press("Backspace");
  await name.pressSequentially("!");
  await page.getByRole("link", { name: "Cancel" }).click();
  await page.getByRole("link", { name: "Edit" }).click();
  await name.press("End");
  await name.press("Backspace");
  await page.getByRole("button", { name: "Save" }).click();
  await page.getByRole("heading", { name: "Bump dependencies", exact: true }).waitFor();
  await page.reload();
  expect(asked).toEqual([]);
  await site.call("/automation/bump-dependencies/delete", {});
});

test("two changed forms of a repository ask once, in German; what stays on the page, and what is saved, does not", async () => {
  const { url } = await site.forge.createRepository("acme", "forms", { "README.md": "# Before\n" });
  const { id } = await site.call("/repository/create", { url });
  const page = await site.signedIn({ locale: "de-AT" });
  await page.goto(`/repositories/${id}`);
  const note = page.getByLabel("Notiz");
  await note.fill("What people should know");
  const hosts = page.getByRole("textbox", { name: "Hosts" });
  await hosts.fill("packages.example.com");
  const leave = page.getByRole("alertdialog", { name: "Verlassen, ohne zu speichern?" });
  await page.getByRole("button", { name: "Setup ausprobieren" }).click();
  await page.waitForURL(/\?trial=/u);
  expect(await leave.count()).toBe(0);
  expect(await note.inputValue()).toBe("What people should know");
  await page.getByRole("link", { name: "Journal" }).click();
  await leave.getByRole("button", { name: "Verlassen" }).click();
  await page.waitForURL(/\/ledger$/u);
  expect(await leave.count()).toBe(0);

  await page.goto(`/repositories/${id}`);
  await hosts.fill("packages.example.com");
  const ofHosts = page.getByRole("region", { name: "Hosts, die seine Sandboxen erreichen" });
  await ofHosts.getByRole("button", { name: "Speichern" }).click();
  await ofHosts.getByText("Gespeichert").waitFor();
  await page.getByRole("link", { name: "Journal" }).click();
  await page.waitForURL(/\/ledger$/u);
  expect(await leave.count()).toBe(0);
});

test("the organization's settings ask until they are saved", async () => {
  const page = await openSettings();
  await page.getByLabel("Allowed repositories").fill("github.com/acme/*");
  await page.getByRole("link", { name: "Ledger" }).click();
  await question(page).waitFor();
  await question(page).getByRole("button", { name: "Cancel" }).click();
  await page.getByRole("button", { name: "Save", exact: true }).click();
  await page.getByText("Saved", { exact: true }).waitFor();
  await page.getByRole("link", { name: "Ledger" }).click();
  await page.waitForURL(/\/ledger$/u);
  await site.call("/organization/update", { repositories: null });
});

test("a form reverts no change that others made while it was open, and shows it once it is read", async () => {
  const { url } = await site.forge.createRepository("acme", "shared", { "README.md": "# Before\n" });
  const { id } = await site.call("/repository/create", { url });
  const made = await site.call("/automation/create", { name: "Ours", macro: "ours", instructions: "say x" });
  const page = await openSettings();

  await page.getByLabel("Allowed repositories").fill("127.0.0.1/*");
  await site.call("/organization/update", { monthlyBudgetUsd: 250, egress: ["mirror.acme.example"] });
  await page.getByRole("button", { name: "Save", exact: true }).click();
  await page.getByText("Saved", { exact: true }).waitFor();
  expect(await site.call("/organization")).toMatchObject({
    monthlyBudgetUsd: 250,
    egress: ["mirror.acme.example"],
    repositories: ["127.0.0.1/*"],
  });
  await expect.poll(() => page.getByLabel("All of them in a month").inputValue()).toBe("250");
  await site.call("/organization/update", { monthlyBudgetUsd: 300 });
  await comeBack(page);
  await expect.poll(() => page.getByLabel("All of them in a month").inputValue()).toBe("300");
  await site.call("/organization/update", { repositories: null, monthlyBudgetUsd: null, egress: [] });

  await page.goto(`/repositories/${id}`);
  const general = page.getByRole("region", { name: "General", exact: true });
  await general.getByLabel("Note").fill("What people should know");
  const environment = page.getByRole("region", { name: "Environment", exact: true });
  await environment.getByLabel("Folders").waitFor();
  await site.call(`/repository/${id}/update`, { name: "acme/of-others", branch: "develop" });
  await site.call(`/repository/${id}/environment`, { sparse: ["services"] });
  await general.getByRole("button", { name: "Save", exact: true }).click();
  await general.getByText("Saved", { exact: true }).waitFor();
  expect(await site.call(`/repository/${id}`)).toMatchObject({
    name: "acme/of-others",
    branch: "develop",
    description: "What people should know",
  });
  await comeBack(page);
  await expect.poll(() => environment.getByLabel("Folders").inputValue()).toBe("services");

  await page.goto(`/automations/${made.id}`);
  await page.getByRole("link", { name: "Edit" }).click();
  await page.getByLabel("Name").fill("Ours now");
  await site.call(`/automation/${made.id}/update`, { instructions: "say what others want", priority: 2 });
  await page.getByRole("button", { name: "Save" }).click();
  await page.getByRole("heading", { name: "Ours now" }).waitFor();
  expect(await site.call(`/automation/${made.id}`)).toMatchObject({
    name: "Ours now",
    instructions: "say what others want",
    priority: 2,
  });
  // What was changed since its page was read is in the form from the beginning.
  await site.call(`/automation/${made.id}/update`, { instructions: "say it again" });
  await page.getByRole("link", { name: "Edit" }).click();
  await expect.poll(() => page.getByLabel("Instructions").inputValue()).toBe("say it again");
});

test("a sign-in that ends in the midst of work loses nothing that was written", async () => {
  const { pool } = site.offstage.database;
  const { id } = await site.client.session.create({ prompt: "say x" });
  await untilOver(site.client, id);
  const made = await site.call("/automation/create", { name: "Kept", macro: "kept", instructions: "say x" });
  const page = await site.signedIn();
  await page.goto(`/sessions/${id}`);
  const followUp = page.getByLabel("Follow up");
  await followUp.fill("say more");
  await pool.query("delete from browser_session");
  // What the page asks for by itself may find out first, and the field be gone.
  await Promise.allSettled([followUp.press("Control+Enter", { timeout: 30_000 })]);
  await page.getByRole("heading", { name: "Sign in" }).waitFor();
  expect(await accessibilityProblems(page)).toEqual([]);
  await page.getByLabel("API key").fill(adminKey);
  await page.getByLabel("API key").press("Enter");
  await followUp.waitFor();
  expect(await followUp.inputValue()).toBe("say more");

  await page.goto(`/automations/${made.id}/edit`);
  await page.getByLabel("Name").fill("Kept all the same");
  await pool.query("delete from browser_session");
  // What the page asks for by itself may find out first; then the question covers the button already.
  await page.getByRole("button", { name: "Save" }).dispatchEvent("click");
  await expect.poll(() => page.locator("form").first().innerText()).toMatch(/sign in again\s+Cancel\s+Save\s*$/u);
  await question(page).getByRole("button", { name: "Cancel" }).click();
  expect(await page.getByLabel("Name").inputValue()).toBe("Kept all the same");
  // What the page asks for by itself does not ask again.
  const refused = page.waitForResponse((response) => response.status() === 401);
  await comeBack(page);
  await (await refused).finished();
  await page.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))");
  expect(await question(page).count()).toBe(0);
  // As in another tab.
  await page.request.post("/login/create", { data: { key: adminKey } });
  await page.getByRole("button", { name: "Save" }).click();
  await page.getByRole("heading", { name: "Kept all the same" }).waitFor();
});

test("a webhook is offered every event, and its form asks above its dialog", async () => {
  const page = await site.signedIn();
  await page.goto("/automations");
  await page.getByRole("link", { name: "Webhooks" }).click();
  await page.getByRole("button", { name: "New webhook" }).click();
  const url = page.getByRole("dialog").getByLabel("URL");
  await url.fill("https://example.com/offstage");
  await page.getByLabel("Only what is chosen").check();
  const offered = await page.getByRole("dialog").getByRole("checkbox").count();
  expect(offered).toBe(webhookEvents.length);
  await page.evaluate("history.back()");
  await question(page).waitFor();
  expect(await accessibilityProblems(page)).toEqual([]);
  await question(page).getByRole("button", { name: "Cancel" }).click();
  await page.waitForURL(`${site.offstage.url}/webhooks`);
  expect(await url.inputValue()).toBe("https://example.com/offstage");
  await page.getByRole("dialog").getByRole("button", { name: "Cancel" }).click();
  await page.getByRole("link", { name: "Ledger" }).click();
  await page.waitForURL(/\/ledger$/u);
});
