import type { Page } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { accessibilityProblems, scrollsSideways } from "./browser.ts";
import { openSite, type Site } from "./site.ts";

let site: Site;
let count = 0;

beforeAll(async () => {
  site = await openSite();
});

afterAll(() => site?.close());

const runs = (page: Page) => page.getByRole("list", { name: "Runs" }).getByRole("listitem");

async function createAutomation(
  name: string,
  more: object = {},
): Promise<{ readonly id: string; readonly macro: string }> {
  return site.call("/automation/create", {
    name,
    macro: `made-${(count += 1)}`,
    instructions: "say {{ event.word }}",
    ...more,
  });
}

test("an automation is created, its macro from its name, and stands in the list", async () => {
  const page = await site.signedIn();
  await page.goto("/");
  await page.getByRole("link", { name: "Automations" }).click();
  await page.getByText("No automations yet.").waitFor();
  expect(await accessibilityProblems(page)).toEqual([]);
  await page.getByRole("button", { name: "New automation" }).click();
  await page.getByLabel("Name").fill("Répondre à l’équipe!");
  expect(await page.getByLabel("Macro").inputValue()).toBe("repondre-a-l-equipe");
  await page.getByLabel("Macro").fill("answer");
  await page.getByLabel("Name").fill("Answer the team");
  expect(await page.getByLabel("Macro").inputValue()).toBe("answer");
  await page.getByLabel("Instructions").fill("say {{ event.word }}");
  await page.getByLabel("Repositories").fill("https://example.com/acme/one\n\n https://example.com/acme/two ");
  await page.getByLabel("Target branch").fill("develop");
  await page.getByLabel("Priority").selectOption("2");
  await page.getByLabel("Budget of a run").fill("1.5");
  await page.getByRole("button", { name: "Create" }).click();
  await page.getByRole("heading", { name: "Answer the team" }).waitFor();
  await page.getByText("Nothing has triggered it yet.").waitFor();
  await page.getByText(`POST ${site.offstage.url}/automation/answer/trigger`).waitFor();
  expect(await accessibilityProblems(page)).toEqual([]);
  expect(await site.call("/automation/answer")).toMatchObject({
    name: "Answer the team",
    instructions: "say {{ event.word }}",
    agent: null,
    targetBranch: "develop",
    priority: 2,
    budgetUsd: 1.5,
    paused: false,
    repositories: [{ name: "acme/one" }, { name: "acme/two" }],
  });
  await page.getByRole("main").getByRole("link", { name: "Automations" }).click();
  const row = page.getByRole("list", { name: "Automations" }).getByRole("listitem");
  await row.getByText("Active").waitFor();
  await row.getByRole("link", { name: "Answer the team" }).press("Enter");
  await page.getByRole("heading", { name: "Instructions" }).waitFor();
});

test("what the API refuses is said by its field", async () => {
  const { macro } = await createAutomation("There already");
  const page = await site.signedIn();
  await page.goto("/automations");
  await page.getByRole("button", { name: "New automation" }).click();
  await page.getByRole("button", { name: "Create" }).click();
  await page.getByRole("alert").getByText(/^name/u).waitFor();
  await page.getByLabel("Name").fill("There already");
  await page.getByLabel("Macro").fill(macro);
  await page.getByLabel("Instructions").fill("{% if %}");
  await page.getByRole("button", { name: "Create" }).click();
  await page
    .getByRole("alert")
    .getByText(/^instructions/u)
    .waitFor();
  expect(await page.getByLabel("Instructions").getAttribute("aria-invalid")).toBe("true");
  await page.getByLabel("Instructions").fill("say hello");
  await page.getByRole("button", { name: "Create" }).click();
  await page.getByRole("alert").getByText(`${macro} is taken`).waitFor();
  expect(await page.getByLabel("Macro").getAttribute("aria-invalid")).toBe("true");
  expect(await accessibilityProblems(page)).toEqual([]);
});

test("it is triggered by hand, after a look at what the agent would be asked, and the run leads to its session", async () => {
  const { id } = await createAutomation("Say a word");
  const page = await site.signedIn();
  await page.goto(`/automations/${id}`);
  await page.getByRole("button", { name: "Trigger" }).click();
  const event = page.getByLabel("Event");
  expect(JSON.parse(await event.inputValue())).toEqual({ word: "" });
  await event.fill("{ word");
  await page.getByRole("button", { name: "Preview" }).click();
  await page.getByRole("alert").getByText("This is no JSON").waitFor();
  expect(await event.getAttribute("aria-invalid")).toBe("true");
  await event.fill('{ "word": "by-hand" }');
  await page.getByRole("button", { name: "Preview" }).click();
  await page.getByLabel("What the agent would be asked").getByText("say by-hand").waitFor();
  expect(await accessibilityProblems(page)).toEqual([]);
  await page.getByRole("dialog").getByRole("button", { name: "Trigger" }).click();
  await page.getByRole("dialog").waitFor({ state: "detached" });
  await page.getByRole("button", { name: "Trigger" }).and(page.locator(":focus")).waitFor();
  await runs(page).getByText("Completed").waitFor();
  expect(await accessibilityProblems(page)).toEqual([]);
  await runs(page).getByRole("link", { name: "say by-hand" }).click();
  await page.getByText("The automation asked").waitFor();
  await page.getByRole("list", { name: "Conversation" }).getByText("by-hand", { exact: true }).waitFor();
  await page.getByRole("link", { name: "an automation" }).click();
  await page.getByRole("heading", { name: "Say a word" }).waitFor();
});

test("a run that came to no session says why, and leads to the ledger", async () => {
  const { id, macro } = await createAutomation("Say what is missing");
  await site.call(`/automation/${macro}/trigger`, { other: "x" });
  const page = await site.signedIn();
  await page.goto(`/automations/${id}`);
  const row = runs(page).filter({ hasText: "Failed" });
  await row.getByText("event.word").waitFor();
  await row.getByRole("link", { name: "No session" }).click();
  await page.waitForURL(/\/ledger\?entry=/u);
  await page.getByRole("link", { name: "Automation", exact: true }).click();
  await page.getByRole("heading", { name: "Say what is missing" }).waitFor();
});

test("an automation is changed, paused, resumed and deleted", async () => {
  const { id, macro } = await createAutomation("Changed soon", { agent: "basic:scripted", budgetUsd: 2 });
  const page = await site.signedIn();
  await page.goto(`/automations/${id}`);
  await page.getByRole("button", { name: "Edit" }).click();
  expect(await page.getByLabel("Macro").inputValue()).toBe(macro);
  await page.getByLabel("Name").fill("Changed now");
  // Who calls it by its macro goes on to.
  expect(await page.getByLabel("Macro").inputValue()).toBe(macro);
  await page.getByLabel("Agent").fill("");
  await page.getByLabel("Budget of a run").fill("");
  await page.getByRole("button", { name: "Save" }).click();
  await page.getByRole("dialog").waitFor({ state: "detached" });
  await page.getByRole("heading", { name: "Changed now" }).waitFor();
  const saved = { name: "Changed now", macro, agent: null, budgetUsd: null, instructions: "say {{ event.word }}" };
  expect(await site.call(`/automation/${id}`)).toMatchObject(saved);

  await page.getByRole("button", { name: "Pause" }).click();
  await page.getByText("Paused", { exact: true }).waitFor();
  expect(await page.getByRole("button", { name: "Trigger" }).isDisabled()).toBe(true);
  expect(await site.call(`/automation/${id}`)).toMatchObject({ ...saved, paused: true });
  await page.getByRole("button", { name: "Resume" }).click();
  await page.getByText("Active", { exact: true }).waitFor();

  await page.getByRole("button", { name: "Delete" }).click();
  await page.getByRole("alertdialog").getByRole("button", { name: "Delete" }).click();
  await page.getByRole("heading", { name: "Automations" }).waitFor();
  await page.getByRole("link", { name: "Changed now" }).waitFor({ state: "detached" });
  await page.goto(`/automations/${id}`);
  await page.getByText("There is no such automation").waitFor();
});

for (const colorScheme of ["light", "dark"] as const) {
  for (const width of [360, 1_280]) {
    test(`axe finds nothing and nothing sticks out in ${colorScheme} at ${width} pixels`, async () => {
      const { id, macro } = await createAutomation(`A name ${"z".repeat(60)} ${width}`, {
        instructions: `Look at {{ event.${"a".repeat(80)} }}`,
        repositories: [`https://example.com/acme/${"r".repeat(60)}`],
      });
      await site.call(`/automation/${macro}/trigger`, {});
      const page = await site.signedIn({ colorScheme, viewport: { width, height: 800 } });
      const looksRight = async (): Promise<void> => {
        expect(await accessibilityProblems(page)).toEqual([]);
        expect(await scrollsSideways(page)).toBe(false);
      };
      await page.goto("/automations");
      await page.getByRole("list", { name: "Automations" }).waitFor();
      await looksRight();
      await page.goto(`/automations/${id}`);
      await runs(page).getByText("Failed").waitFor();
      await looksRight();
      await page.getByRole("button", { name: "Edit" }).click();
      await page.getByRole("dialog").waitFor();
      await looksRight();
    });
  }
}

test("triggers are shown with their address and condition, and changed as JSON; a new secret is shown once", async () => {
  const { id } = await createAutomation("Triggered", {
    triggers: [{ type: "schedule", cron: "0 9 * * 1-5", timeZone: "Europe/Berlin" }],
  });
  const page = await site.signedIn();
  await page.goto(`/automations/${id}`);
  const triggers = page.getByRole("list", { name: "Triggers" }).getByRole("listitem");
  await triggers.filter({ hasText: "0 9 * * 1-5 (Europe/Berlin)" }).getByText("Next").waitFor();
  await page.getByRole("button", { name: "Change" }).click();
  const field = page.getByLabel("Triggers", { exact: true }).and(page.locator("textarea"));
  const known = JSON.parse(await field.inputValue()) as object[];
  const hook = { type: "webhook", condition: "event.go", verify: { type: "hmac", header: "X-Signature" } };
  await field.fill("[{]");
  await page.getByRole("button", { name: "Save" }).click();
  await page.getByText("This is no JSON").waitFor();
  await field.fill(JSON.stringify([...known, { ...hook, condition: "event.go ==" }]));
  await page.getByRole("button", { name: "Save" }).click();
  await page.getByText("triggers[2].condition").waitFor();
  expect(await accessibilityProblems(page)).toEqual([]);
  await field.fill(JSON.stringify([...known, hook]));
  await page.getByRole("button", { name: "Save" }).click();
  const secret = page.getByRole("region", { name: "New secret" });
  expect(await secret.getByRole("textbox").inputValue()).toMatch(/^[0-9a-f]{64}$/u);
  expect(await accessibilityProblems(page)).toEqual([]);
  await secret.getByRole("button", { name: "Done" }).click();
  const shown = triggers.filter({ hasText: "Webhook" });
  await shown.getByText("event.go").waitFor();
  await shown.getByText(`POST ${site.offstage.url}/hook/`).waitFor();
  await shown.getByRole("button", { name: "Replace the secret" }).click();
  await page.getByRole("alertdialog").getByRole("button", { name: "Replace the secret" }).click();
  await secret.waitFor();
  const { triggers: saved } = await site.call(`/automation/${id}`);
  expect(saved).toMatchObject([{ type: "api" }, { type: "schedule" }, { type: "webhook" }]);
  expect(JSON.stringify(saved)).not.toContain("secret");
  expect(await scrollsSideways(page)).toBe(false);
});
