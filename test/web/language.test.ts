import type { Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import germanAutomations from "../../src/web/texts/de/automations.ts";
import germanElements from "../../src/web/texts/de/elements.ts";
import germanHome from "../../src/web/texts/de/home.ts";
import germanInsight from "../../src/web/texts/de/insight.ts";
import germanMoreOptions from "../../src/web/texts/de/more-options.ts";
import germanNotices from "../../src/web/texts/de/notices.ts";
import germanPullRequests from "../../src/web/texts/de/pull-requests.ts";
import germanRegistries from "../../src/web/texts/de/registries.ts";
import germanSecrets from "../../src/web/texts/de/secrets.ts";
import germanSession from "../../src/web/texts/de/session.ts";
import germanSettings from "../../src/web/texts/de/settings.ts";
import germanShares from "../../src/web/texts/de/shares.ts";
import germanShell from "../../src/web/texts/de/shell.ts";
import { english as automations } from "../../src/web/texts/en/automations.ts";
import { english as elements } from "../../src/web/texts/en/elements.ts";
import { english as home } from "../../src/web/texts/en/home.ts";
import { english as insight } from "../../src/web/texts/en/insight.ts";
import { english as moreOptions } from "../../src/web/texts/en/more-options.ts";
import { english as notices } from "../../src/web/texts/en/notices.ts";
import { english as pullRequests } from "../../src/web/texts/en/pull-requests.ts";
import { english as registries } from "../../src/web/texts/en/registries.ts";
import { english as secrets } from "../../src/web/texts/en/secrets.ts";
import { english as session } from "../../src/web/texts/en/session.ts";
import { english as settings } from "../../src/web/texts/en/settings.ts";
import { english as shares } from "../../src/web/texts/en/shares.ts";
import { english as shell } from "../../src/web/texts/en/shell.ts";
import { waitFor } from "../wait-for.ts";
import { untilOver } from "../world.ts";
import { openSite, type Site } from "./site.ts";
import { foreignWords, wordsLeft } from "./words-left.ts";

/** A change of the language while the user works. */
let site: Site;
/** Of a session that has ended, which figures count, too. */
let id: string;
const english = {
  automations,
  elements,
  home,
  insight,
  moreOptions,
  notices,
  pullRequests,
  registries,
  secrets,
  session,
  settings,
  shares,
  shell,
};
const german = {
  automations: germanAutomations,
  elements: germanElements,
  home: germanHome,
  insight: germanInsight,
  moreOptions: germanMoreOptions,
  notices: germanNotices,
  pullRequests: germanPullRequests,
  registries: germanRegistries,
  secrets: germanSecrets,
  session: germanSession,
  settings: germanSettings,
  shares: germanShares,
  shell: germanShell,
};

beforeAll(async () => {
  site = await openSite();
  ({ id } = await site.client.session.create({ prompt: "say a walrus" }));
  await untilOver(site.client, id);
});
afterEach(() => site.requireQuiet());
afterAll(() => site?.close());

/** Names that a key and samples have. */
const names = /^first admin key$|^Resolve conflicts: /u;

/** Chooses another language where the page is, and fails if a word of the one before is left, or the page was made anew. */
async function chooseGerman(page: Page): Promise<void> {
  await page.evaluate("window.before = document.querySelector('main > *')");
  await page.getByRole("button", { name: "Display" }).click();
  await page.getByLabel("Language").selectOption("Deutsch");
  await page.getByRole("dialog", { name: "Darstellung" }).waitFor();
  await page.keyboard.press("Escape");
  await page.getByRole("dialog").waitFor({ state: "detached" });
  expect(await page.evaluate("window.before === document.querySelector('main > *')")).toBe(true);
  const left = await wordsLeft(page, foreignWords(english, german));
  expect(left.filter((words) => !names.test(words))).toEqual([]);
}

/** A page of a user who has chosen no language. */
async function open(path: string, shown: string): Promise<Page> {
  const page = await site.signedIn();
  await page.goto(path);
  await page.getByRole("main").getByText(shown).first().waitFor();
  return page;
}

test("a session that is being written is kept", async () => {
  const page = await open("/", "Save as a draft");
  await page.getByLabel("What should be done?").fill("Half a thought");
  await page.getByRole("button", { name: "More" }).click();
  await page.getByLabel("Branch of the work").fill("half/a-branch");
  await chooseGerman(page);
  expect(await page.getByLabel("Was soll getan werden?").inputValue()).toBe("Half a thought");
  expect(await page.getByLabel("Branch der Arbeit").inputValue()).toBe("half/a-branch");
});

test("a setting that is not saved is kept, and asked about as before", async () => {
  const page = await open("/settings", "No session is shown by a link.");
  await page.getByLabel("Default agent").fill("basic:half");
  await chooseGerman(page);
  expect(await page.getByLabel("Standard-Agent").inputValue()).toBe("basic:half");
  expect(await page.title()).toBe("Einstellungen · Offstage");
  await page.getByRole("link", { name: "Journal" }).click();
  await page.getByRole("alertdialog").getByRole("button", { name: "Verlassen" }).waitFor();
});

test("an automation that is being written is kept", async () => {
  const made = await site.call("/automation/create", { name: "Greet", macro: "greet", instructions: "say x" });
  const page = await open(`/automations/${made.id}/edit`, "Greet");
  await page.getByLabel("Instructions").fill("Do half of {{ event");
  await page.getByLabel("Your event").fill("{");
  await page.getByLabel("As drafts").check();
  await chooseGerman(page);
  expect(await page.getByLabel("Anweisungen").inputValue()).toBe("Do half of {{ event");
  expect(await page.getByLabel(german.automations.event.ownLabel).inputValue()).toBe("{");
  expect(await page.getByLabel(german.pullRequests.draft).isChecked()).toBe(true);
});

test("a message to a session that is being written is kept, beside what was said and done", async () => {
  const page = await open(`/sessions/${id}`, "a walrus");
  const field = page.getByRole("textbox").last();
  await field.fill("Half a message");
  await chooseGerman(page);
  expect(await field.inputValue()).toBe("Half a message");
});

test("what is painted is painted again", async () => {
  await waitFor(async () => (await site.call("/insight/figures")).total.completed > 0, "the session is counted");
  const page = await open("/insight", "Sessions");
  await page.locator("canvas").first().waitFor();
  await page.evaluate("window.canvas = document.querySelector('canvas')");
  await chooseGerman(page);
  expect(await page.evaluate("window.canvas === document.querySelector('canvas')")).toBe(false);
});
