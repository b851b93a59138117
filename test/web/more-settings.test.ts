import { readFile } from "node:fs/promises";
import type { Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { accessibilityProblems, scrollsSideways } from "./browser.ts";
import { openSite, type Site } from "./site.ts";

/** Settings and actions that few people need, each where they would look for it. */
let site: Site;

beforeAll(async () => {
  site = await openSite();
});
afterEach(() => site.requireQuiet());
afterAll(() => site?.close());

/** Fails if axe finds something, or something sticks out. */
async function requireGood(page: Page): Promise<void> {
  expect(await accessibilityProblems(page)).toEqual([]);
  expect(await scrollsSideways(page)).toBe(false);
}

test("a session is composed with its branch, labels, further repositories and how its pull requests are opened", async () => {
  const [first, second] = await Promise.all(
    ["more-one", "more-two"].map((name) => site.forge.createRepository("acme", name, { "README.md": "# Before\n" })),
  );
  await site.call("/repository/create", { url: first?.url });
  const page = await site.signedIn({ viewport: { width: 390, height: 800 } });
  await page.goto("/");
  await page.getByLabel("What should be done?").fill("say more");
  await page.getByRole("button", { name: "Repository: No repository" }).click();
  await page.getByRole("dialog", { name: "Repository" }).getByRole("combobox").fill("more-one");
  await page
    .getByRole("dialog")
    .getByRole("option", { name: /acme\/more-one/u })
    .click();
  const more = page.getByRole("button", { name: /^More/u });
  expect(await page.getByLabel("Branch of the work").count()).toBe(0);
  await more.press("Enter");
  await page.getByLabel("Branch of the work").fill("no good..name");
  const toggleLabel = async (label: string): Promise<void> => {
    await page.getByRole("button", { name: /^Labels of the session/u }).click();
    await page.getByRole("combobox", { name: "Labels of the session" }).fill(label);
    await page.keyboard.press("Enter");
  };
  await toggleLabel("cart");
  await toggleLabel("x".repeat(51));
  expect(await page.getByLabel("Pull requests only if every repository took the work").count()).toBe(0);
  await page.getByLabel("Further repositories").fill("no address");
  await page.getByLabel("Pull requests only if every repository took the work").check();
  await page.getByLabel("As drafts").check();
  await page.getByLabel("Their labels").fill("needs, care\n by an agent ");
  await page.getByLabel("Reviewers").fill("x".repeat(256));
  await page.getByLabel("Assignees").fill("ada");
  await requireGood(page);

  // A draft survives a reload, and is indicated while it is out of sight.
  await page.reload();
  await page.getByRole("button", { name: "More (8)" }).waitFor();
  const draft = page.getByRole("button", { name: "Save as a draft" });
  const problemOf = async (field: string, problem: string): Promise<void> => {
    await draft.click();
    await page.getByRole("alert").getByText(problem).waitFor();
    expect(await page.getByLabel(field).getAttribute("aria-invalid")).toBe("true");
    expect(await page.getByRole("alert").count()).toBe(1);
  };
  await problemOf("Branch of the work", "branchName is not a valid git branch name");
  await requireGood(page);
  await page.getByLabel("Branch of the work").fill("work/more");
  await problemOf("Reviewers", "pullRequest.reviewers.0");
  await page.getByLabel("Reviewers").fill("grace\nacme/reviewers");
  await draft.click();
  await page.getByRole("group", { name: "Labels of the session" }).getByRole("alert").getByText("labels.1").waitFor();
  await toggleLabel("x".repeat(51));
  await toggleLabel("checkout");
  await problemOf("Further repositories", "repositories.1");
  await page.getByLabel("Further repositories").fill(second?.url ?? "");
  await draft.click();
  await page.waitForURL(/\/sessions\//u);
  const id = new URL(page.url()).pathname.split("/").at(-1) ?? "";
  expect(await site.client.session.get(id)).toMatchObject({
    branchName: "work/more",
    labels: ["cart", "checkout"],
    repositories: [{ name: "acme/more-one" }, { name: "acme/more-two" }],
    pullRequestsTogether: true,
    pullRequest: {
      draft: true,
      labels: ["needs, care", "by an agent"],
      reviewers: ["grace", "acme/reviewers"],
      assignees: ["ada"],
    },
  });
  await page.goto("/");
  await page.getByRole("button", { name: "More", exact: true }).waitFor();
});

test("how the pull requests of an automation's runs are opened is set, shown again, and taken back", async () => {
  const { id } = await site.call("/automation/create", { name: "Drafts", macro: "drafts", instructions: "say x" });
  const page = await site.signedIn({ viewport: { width: 390, height: 800 } });
  const saved = async (pullRequest: unknown): Promise<void> => {
    await page.getByRole("button", { name: "Save" }).click();
    await page.waitForURL((url) => url.pathname === `/automations/${id}`);
    expect(await site.call(`/automation/${id}`)).toMatchObject({ pullRequest });
  };
  await page.goto(`/automations/${id}/edit`);
  await page.getByLabel("As drafts").check();
  await page.getByLabel("Assignees").fill("x".repeat(256));
  await page.getByRole("button", { name: "Save" }).click();
  await page.getByRole("alert").getByText("pullRequest.assignees.0").waitFor();
  expect(await page.getByLabel("Assignees").getAttribute("aria-invalid")).toBe("true");
  await requireGood(page);
  await page.getByLabel("Assignees").fill("ada\ngrace");
  await saved({ draft: true, labels: [], reviewers: [], assignees: ["ada", "grace"] });
  await page.goto(`/automations/${id}/edit`);
  await expect.poll(() => page.getByLabel("As drafts").isChecked()).toBe(true);
  // Only this has changed, and is asked about.
  await page.getByLabel("Assignees").fill("");
  await page.getByRole("link", { name: "Cancel" }).click();
  await page.getByRole("alertdialog").getByRole("button", { name: "Cancel" }).click();
  await page.getByLabel("As drafts").uncheck();
  await saved(null);
});

test("a key is limited to automations, which stand at it", async () => {
  const greet = await site.call("/automation/create", { name: "Greet", macro: "greet", instructions: "say x" });
  await site.call("/automation/create", { name: "Sweep", macro: "sweep", instructions: "say y" });
  const page = await site.signedIn({ viewport: { width: 390, height: 800 } });
  await page.goto("/settings");
  await page.getByRole("button", { name: "New key" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByLabel("Name").fill("Greeter");
  expect(await dialog.getByLabel("Automations", { exact: true }).count()).toBe(0);
  await dialog.getByLabel("Role").selectOption("only trigger automations");
  await dialog.getByLabel("Automations", { exact: true }).selectOption("Only chosen ones");
  await dialog.getByLabel("Sweep").check();
  await dialog.getByLabel("Sweep").uncheck();
  await dialog.getByRole("button", { name: "Create" }).click();
  const chosen = dialog.getByRole("group", { name: "Automations that it may start" });
  await chosen.getByRole("alert").getByText("automationIds").waitFor();
  await requireGood(page);
  await dialog.getByLabel("Greet").check();
  await dialog.getByRole("button", { name: "Create" }).click();
  await page.getByLabel("Key Greeter").waitFor();
  const row = page.getByRole("list", { name: "Keys" }).getByRole("listitem").filter({ hasText: "Greeter" });
  await row.getByText("only Greet").waitFor();
  const { keys } = await site.call("/key/list");
  expect(keys).toContainEqual(
    expect.objectContaining({ name: "Greeter", scopes: ["trigger"], automationIds: [greet.id] }),
  );
  // One that is deleted has no name any more.
  await site.call("/automation/greet/delete", {});
  await page.reload();
  await row.getByText("only 1 automation").waitFor();
});

test("a secret of the organization gets another value, which is not read back", async () => {
  const page = await site.signedIn({ viewport: { width: 390, height: 800 } });
  await page.goto("/settings");
  await page.getByText("No secrets yet.").waitFor();
  await page.getByRole("button", { name: "Add a secret" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByLabel("Name").fill("NPM TOKEN");
  await dialog.getByLabel("Value").fill("first-value");
  await dialog.getByRole("button", { name: "Save" }).click();
  await dialog.getByRole("alert").getByText("name must be letters, digits and _").waitFor();
  await requireGood(page);
  await dialog.getByLabel("Name").fill("NPM_TOKEN");
  await dialog.getByRole("button", { name: "Save" }).click();
  const row = page.getByRole("list", { name: "Secrets" }).getByRole("listitem").filter({ hasText: "NPM_TOKEN" });
  const sent = page.waitForRequest((request) => /\/secret\/[^/]+\/update$/u.test(request.url()));
  await row.getByRole("button", { name: "Change NPM_TOKEN" }).click();
  await dialog.getByLabel("New value").fill("second-value");
  await dialog.getByLabel("agent").check();
  await dialog.getByRole("button", { name: "Save" }).click();
  await row.getByText("setup and agent").waitFor();
  expect((await sent).postDataJSON()).toEqual({ value: "second-value", phases: ["setup", "agent"] });
  expect(await page.content()).not.toContain("second-value");
  await requireGood(page);
});

test("an admin downloads all data of the organization", async () => {
  const page = await site.signedIn({ viewport: { width: 390, height: 800 } });
  await page.goto("/settings");
  await page.getByText("No session is shown by a link.").waitFor();
  const downloading = page.waitForEvent("download");
  await page.getByRole("link", { name: "Download the archive" }).click();
  const download = await downloading;
  expect(download.suggestedFilename()).toBe("organization.tar");
  const archive = await readFile(await download.path(), "latin1");
  expect(archive).toContain("offstage-organization");
  expect(archive).toContain("end.json");
});

// The last: no user is signed in from then on.
test("an admin erases the organization by its name, after reading what goes for ever", async () => {
  const page = await site.signedIn({ viewport: { width: 390, height: 800 } });
  await page.goto("/settings");
  // What is not saved is not asked about any more.
  await page.getByLabel("Each session").fill("7");
  await page.getByRole("button", { name: "Erase the organization" }).click();
  const dialog = page.getByRole("dialog", { name: "Erase default for ever?" });
  await dialog.getByText("all API keys: all people are signed out immediately").waitFor();
  await requireGood(page);
  const erase = dialog.getByRole("button", { name: "Erase for ever" });
  await dialog.getByLabel("Its name").fill("another");
  await erase.click();
  await dialog.getByRole("alert").getByText('must be the organization\'s name, "default"').waitFor();
  expect(await dialog.getByLabel("Its name").getAttribute("aria-invalid")).toBe("true");
  expect((await site.client.organization.get()).name).toBe("default");
  await requireGood(page);
  await dialog.getByLabel("Its name").fill("default");
  await erase.click();
  await page.getByText("default is being erased").waitFor();
  await page.waitForURL((url) => url.pathname === "/sign-in");
  await page.getByLabel("API key", { exact: true }).waitFor();
  await expect(site.client.organization.get()).rejects.toMatchObject({ status: 401 });
});
