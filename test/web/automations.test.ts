import type { Page } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { reviewSilences } from "../../src/store/automations/silences.ts";
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
  await page.getByRole("link", { name: "New automation" }).click();
  await page.getByRole("link", { name: "An empty form" }).click();
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

test("a new automation starts from a template, with its triggers", async () => {
  const page = await site.signedIn();
  await page.goto("/automations");
  await page.getByRole("link", { name: "New automation" }).click();
  await page.getByRole("list", { name: "Start from" }).getByText("0 5 * * 1 (UTC)").waitFor();
  expect(await accessibilityProblems(page)).toEqual([]);
  await page.getByRole("link", { name: "Bump dependencies" }).click();
  await page.getByText("Name the repositories that it is to work on.").waitFor();
  expect(await page.getByLabel("Macro").inputValue()).toBe("bump-dependencies");
  expect(await accessibilityProblems(page)).toEqual([]);
  await page.getByRole("link", { name: "Start from something else" }).click();
  await page.getByRole("link", { name: "Triage new issues" }).click();
  await page.getByLabel("What the agent would be asked").getByText("A new issue was opened").waitFor();
  expect(await page.getByLabel("Name", { exact: true }).inputValue()).toBe("Triage new issues");
  await page.getByLabel("Macro").fill("triage");
  await page.getByRole("button", { name: "Create" }).click();
  await page.getByRole("heading", { name: "Triage new issues" }).waitFor();
  await page.getByText("issue.opened", { exact: true }).waitFor();
  const { triggers, instructions } = await site.call("/automation/triage");
  expect(triggers).toMatchObject([{ type: "api" }, { type: "forge", events: ["issue.opened"], maxPerHour: 20 }]);
  expect(instructions).toContain("Change no file");
});

test("what the API refuses is said by its field", async () => {
  const { macro } = await createAutomation("There already");
  const page = await site.signedIn();
  await page.goto("/automations/new?template=none");
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

test("its gate is set and shown, and a run that it filtered says so with what it printed", async () => {
  const { id, macro } = await createAutomation("Gated");
  const page = await site.signedIn();
  await page.goto(`/automations/${id}`);
  await page.getByRole("link", { name: "Edit" }).click();
  await page.getByLabel("Gate").fill("echo nothing new\nexit 4");
  await page.getByRole("button", { name: "Save" }).click();
  await page.getByRole("region", { name: "Gate" }).getByText("echo nothing new").waitFor();
  expect(await site.call(`/automation/${macro}`)).toMatchObject({ gate: "echo nothing new\nexit 4" });
  await site.call(`/automation/${macro}/trigger`, { word: "x" });
  await runs(page).filter({ hasText: "Cancelled" }).getByText("nothing new").waitFor();
  expect(await accessibilityProblems(page)).toEqual([]);
  await runs(page).getByRole("link", { name: "Session" }).click();
  await page.getByText("Gate: filtered the run").waitFor();
  expect(await accessibilityProblems(page)).toEqual([]);
});

test("what its runs remember is shown, added, changed and removed, and no other change is overwritten", async () => {
  const { id, macro } = await createAutomation("Remembers");
  const page = await site.signedIn();
  await page.goto(`/automations/${id}`);
  await page.getByText("Its runs remember nothing yet.").waitFor();
  await page.getByRole("button", { name: "Add an entry" }).click();
  await page.getByLabel("Key").fill("seen");
  await page.getByLabel("Value").fill("no json");
  await page.getByRole("button", { name: "Save" }).click();
  await page.getByRole("alert").getByText("This is no JSON").waitFor();
  await page.getByLabel("Value").fill('{"last": 7}');
  await page.getByRole("button", { name: "Save" }).click();
  const list = page.getByRole("list", { name: "State" });
  await list.getByText('"last": 7').waitFor();
  expect(await accessibilityProblems(page)).toEqual([]);
  await page.getByRole("button", { name: "Change seen" }).click();
  // Meanwhile a run writes it.
  await site.call(`/automation/${macro}/state/update`, { set: { seen: { last: 8 } } });
  await page.getByLabel("Value").fill('{"last": 9}');
  await page.getByRole("button", { name: "Save" }).click();
  await page.getByRole("dialog").getByText("read the state again").waitFor();
  await page.keyboard.press("Escape");
  await list.getByText('"last": 8').waitFor();
  await page.getByRole("button", { name: "Remove seen" }).click();
  await page.getByRole("button", { name: "Remove", exact: true }).click();
  await page.getByText("Its runs remember nothing yet.").waitFor();
  expect(await site.call(`/automation/${macro}/state`)).toEqual({ entries: [] });
});

test("an automation is changed, paused, resumed and deleted", async () => {
  const { id, macro } = await createAutomation("Changed soon", { agent: "basic:scripted", budgetUsd: 2 });
  const page = await site.signedIn();
  await page.goto(`/automations/${id}`);
  await page.getByRole("link", { name: "Edit" }).click();
  expect(await page.getByLabel("Macro").inputValue()).toBe(macro);
  await page.getByLabel("Name").fill("Changed now");
  // Who calls it by its macro goes on to.
  expect(await page.getByLabel("Macro").inputValue()).toBe(macro);
  await page.getByLabel("Agent", { exact: true }).fill("");
  await page.getByLabel("Budget of a run").fill("");
  await page.getByRole("button", { name: "Save" }).click();
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
      await page.getByRole("link", { name: "Edit" }).click();
      await page.getByText("The event", { exact: true }).waitFor();
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
  // It was not copied yet: a save meanwhile does not remove it.
  await page.getByRole("button", { name: "Condition Schedule" }).click();
  await page.getByRole("dialog").getByLabel("Condition").fill("true");
  await page.getByRole("dialog").getByRole("button", { name: "Save" }).click();
  await triggers.filter({ hasText: "Schedule" }).getByText("true").waitFor();
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

test("a page shows failures in a row, silence, and all sessions of a run that fans out", async () => {
  const { id, macro } = await createAutomation("Watched");
  const page = await site.signedIn();
  await page.goto(`/automations/${id}`);
  await page.getByRole("link", { name: "Edit" }).click();
  expect(await page.getByLabel("Pause after failures").inputValue()).toBe("3");
  await page.getByLabel("Pause after failures").fill("1");
  await page.getByLabel("Expected runs").fill("0");
  await page.getByLabel("Repositories").fill("https://example.com/acme/one\nhttps://example.com/acme/two");
  await page.getByLabel("A session for each repository").check();
  await page.getByRole("button", { name: "Save" }).click();
  await page
    .getByRole("alert")
    .getByText(/^expect/u)
    .waitFor();
  await page.getByLabel("Expected runs").fill("2");
  expect(await accessibilityProblems(page)).toEqual([]);
  await page.getByRole("button", { name: "Save" }).click();
  await page.getByRole("heading", { name: "Watched" }).waitFor();
  expect(await site.call(`/automation/${id}`)).toMatchObject({
    failuresBeforePause: 1,
    expect: { atLeast: 2, everyHours: 24 },
    fanOut: true,
  });

  await site.call(`/automation/${macro}/trigger`, { word: "twice" });
  const sessions = runs(page).getByRole("list", { name: "Sessions of the run" }).getByRole("listitem");
  await sessions.getByRole("link", { name: "acme/one" }).waitFor();
  await sessions.getByRole("link", { name: "acme/two" }).waitFor();
  expect(await accessibilityProblems(page)).toEqual([]);
  await page.getByRole("button", { name: "Cancel all" }).click();
  await page.getByRole("alertdialog").getByRole("button", { name: "Cancel all" }).click();
  await sessions.getByText("Cancelled").nth(1).waitFor();
  await page.getByRole("button", { name: "Cancel all" }).waitFor({ state: "detached" });

  const { database } = site.offstage;
  await database.pool.query("update automation set expect_since = now() - interval '2 days' where id = $1", [id]);
  await reviewSilences(database);
  await page.reload();
  await page.getByText("It was expected to fire and did not: it fired 1 time within 24 h").waitFor();
  await page.getByText("Silent", { exact: true }).waitFor();

  await site.call(`/automation/${macro}/trigger`, { other: "x" });
  await runs(page).getByText("Failed").waitFor();
  await page.reload();
  const paused = page.getByText("Paused by Offstage: a run failed: ");
  await paused.waitFor();
  await page.getByText("Paused", { exact: true }).waitFor();
  expect(await accessibilityProblems(page)).toEqual([]);
  expect(await scrollsSideways(page)).toBe(false);
  await page.getByRole("button", { name: "Resume" }).click();
  await paused.waitFor({ state: "detached" });
  await page.getByText("Silent", { exact: true }).waitFor();
});
