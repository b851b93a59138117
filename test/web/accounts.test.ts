import { afterAll, beforeAll, expect, test } from "vitest";
import { findDefaultOrganization } from "../../src/store/people/organizations.ts";
import { startForge, type TestForge } from "../forge/server.ts";
import { addPerson } from "../store/fixtures.ts";
import { accessibilityProblems } from "./browser.ts";
import { openSite, type Site } from "./site.ts";

let site: Site;
let forge: TestForge;
/** Of Ada Lovelace. */
let key: string;

beforeAll(async () => {
  forge = await startForge();
  const forges = [{ kind: "github", webUrl: forge.url, apiUrl: forge.apiUrl, token: forge.token }];
  site = await openSite({ OFFSTAGE_FORGES: JSON.stringify(forges) });
  const { database } = site.offstage;
  const organizationId = await findDefaultOrganization(database);
  ({ key } = await addPerson(database, organizationId, { name: "Ada Lovelace", role: "admin", scopes: ["admin"] }));
});
afterAll(async () => {
  await site?.close();
  await forge?.close();
});

test("a person connects their account, replaces its token after the forge refused it, and deletes it", async () => {
  const ada = forge.addPerson("ada");
  forge.setScopes("read:org");
  const page = await site.signedIn({ key });
  await page.goto("/settings");
  await page.getByText("No accounts yet.").waitFor();
  await page.getByRole("button", { name: "Connect your account" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByLabel("Address").fill("https://elsewhere.example");
  await dialog.getByLabel("Personal access token").fill(ada.token);
  await dialog.getByRole("button", { name: "Check and connect" }).click();
  await page.getByRole("alert").getByText(`send one of ${forge.url}`).waitFor();
  await dialog.getByLabel("Address").fill(forge.url);
  await dialog.getByRole("button", { name: "Check and connect" }).click();
  await page.getByRole("alert").getByText("missing repo").waitFor();
  expect(await accessibilityProblems(page)).toEqual([]);

  forge.setScopes("repo");
  await dialog.getByRole("button", { name: "Check and connect" }).click();
  await dialog.waitFor({ state: "detached" });
  const row = page.getByRole("list", { name: "Your accounts" }).getByRole("listitem").filter({ hasText: "ada" });
  await row.getByText("Works").waitFor();
  expect(await accessibilityProblems(page)).toEqual([]);

  forge.removePerson(ada);
  await row.getByRole("button", { name: "Check again" }).click();
  await row.getByText("Broken").waitFor();
  await row.getByText("a valid token").first().waitFor();
  const again = forge.addPerson("ada");
  await row.getByRole("button", { name: "Replace the token" }).click();
  await dialog.getByLabel("Personal access token").fill(again.token);
  await dialog.getByRole("button", { name: "Check and save" }).click();
  await row.getByText("Works").waitFor();
  await page.reload();
  await row.waitFor();
  expect(await page.content()).not.toContain(again.token);

  await row.getByRole("button", { name: "Delete" }).click();
  await page.getByRole("alertdialog").getByRole("button", { name: "Delete" }).click();
  await page.getByText("No accounts yet.").waitFor();
});

test("a sign-in without a person is asked to sign in as one", async () => {
  const page = await site.signedIn();
  await page.goto("/settings");
  await page.getByText("Sign in as yourself to connect one.").waitFor();
  expect(await page.getByRole("button", { name: "Connect your account" }).count()).toBe(0);
});

test("a member is shown their own settings and nothing that is refused to them", async () => {
  const { database } = site.offstage;
  const organizationId = await findDefaultOrganization(database);
  const member = await addPerson(database, organizationId, { name: "Grace Hopper" });
  const page = await site.signedIn({ key: member.key });
  const refused: string[] = [];
  page.on("response", (answer) => {
    if (answer.status() >= 400) refused.push(`${String(answer.status())} ${answer.url()}`);
  });
  await page.goto("/settings");
  await page.getByText("No accounts yet.").waitFor();
  await page.getByRole("listitem").filter({ hasText: "Grace Hopper" }).waitFor();
  const navigation = page.getByRole("navigation", { name: "Main" });
  await navigation.getByRole("link", { name: "Audit" }).waitFor({ state: "detached" });
  expect(await navigation.getByRole("link").allTextContents()).toEqual([
    "Offstage",
    "Sessions",
    "Automations",
    "Repositories",
    "Ledger",
    "Insight",
    "Settings",
    "API",
  ]);
  expect(await page.getByRole("heading", { level: 2 }).allTextContents()).toEqual([
    "Your accounts",
    "Notices",
    "Signed-in browsers",
    "Programs",
  ]);
  expect(refused).toEqual([]);
});
