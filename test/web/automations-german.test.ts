import type { Locator, Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { reviewSilences } from "../../src/store/automations/silences.ts";
import german from "../../src/web/texts/de/automations.ts";
import germanLedger from "../../src/web/texts/de/ledger.ts";
import germanPullRequests from "../../src/web/texts/de/pull-requests.ts";
import { english } from "../../src/web/texts/en/automations.ts";
import { english as englishLedger } from "../../src/web/texts/en/ledger.ts";
import { english as pullRequests } from "../../src/web/texts/en/pull-requests.ts";
import { waitFor } from "../wait-for.ts";
import { accessibilityProblems, scrollsSideways } from "./browser.ts";
import { openSite, type Site } from "./site.ts";
import { foreignWords, wordsLeft } from "./words-left.ts";

/** The pages of automations and of the ledger in German: no word of English is left where German has another. */
let site: Site;
let page: Page;

beforeAll(async () => {
  site = await openSite({ OFFSTAGE_FORGE_HOSTS: "127.0.0.1" });
  page = await site.signedIn({ locale: "de-AT", viewport: { width: 390, height: 800 } });
});
afterEach(() => site.requireQuiet());
afterAll(() => site?.close());

const words = foreignWords(
  { english, englishLedger, pullRequests },
  { english: german, englishLedger: germanLedger, pullRequests: germanPullRequests },
);

/** Waits until a part of the page is there. Then no English may be left. */
async function isGerman(shown: Locator, on = page): Promise<void> {
  await shown.first().waitFor();
  expect(await wordsLeft(on, words)).toEqual([]);
}

/** The same of a page or dialog that was not looked at yet. */
async function isRight(shown: Locator, on = page): Promise<void> {
  await isGerman(shown, on);
  expect(await accessibilityProblems(on)).toEqual([]);
  expect(await scrollsSideways(on)).toBe(false);
}

const button = (name: string, exact = true): Locator => page.getByRole("button", { name, exact });
const dialog = (): Locator => page.getByRole("dialog");
/** Leaves a dialog. */
async function leave(): Promise<void> {
  await page.keyboard.press("Escape");
  await page.locator("dialog").waitFor({ state: "detached" });
}

/** Triggers, and waits until that has ended. @returns the entry's id */
async function trigger(macro: string, event: object): Promise<string> {
  const { id } = await site.call(`/automation/${macro}/trigger`, event);
  await waitFor(async () => (await site.call(`/ledger/${id}`)).outcome !== null, "the trigger has ended");
  return id;
}

test("before there is anything, and what a new automation starts from", async () => {
  await page.goto("/automations");
  await isRight(page.getByText(german.empty));
  await page.goto("/ledger");
  await isRight(page.getByText(germanLedger.empty));
  await page.goto("/automations/new");
  await isRight(page.getByRole("link", { name: german.gallery.empty }).and(page.locator("li:nth-last-child(n+3) a")));
  await page.goto("/automations/nothing");
  await isGerman(page.getByText(german.missing));
});

test("the form of an automation, its preview and what is wrong with it", async () => {
  await page.goto("/automations/new?template=bump-dependencies");
  await isGerman(page.getByText(german.creation.nameRepositories));
  await page.goto("/automations/new?template=none");
  await isRight(page.getByText(german.preview.empty));
  await page.getByLabel(german.event.ownLabel).fill("[]");
  await isGerman(page.getByText(german.event.noObject));
  await page.getByLabel(german.event.ownLabel).fill("{");
  await isGerman(page.getByText(german.noJson("")));
  await page.getByLabel(german.event.ownLabel).fill('{ "wort": "hallo" }');
  await page.getByLabel(german.instructions).pressSequentially("sag {{ event.");
  await isGerman(page.getByRole("listbox", { name: german.editor.values }));
  await page.getByLabel(german.instructions).fill("sag {{ event.x }}");
  await isGerman(button(german.preview.show));
  await page.getByLabel(german.instructions).fill("sag {{ event.wort }}");
  await page.getByLabel(german.form.title).fill("Ein Wort");
  await page.getByText(german.preview.prompt).waitFor();
  await isRight(page.getByText("Ein Wort", { exact: true }));
});

test("an automation with every kind of trigger, and its dialogs", async () => {
  const policy = { concurrency: { key: "'x'", policy: "skip" }, debounceSeconds: 60, maxPerHour: 1_000 };
  const made = await site.call("/automation/create", {
    name: "Rundum",
    macro: "rundum",
    instructions: "say {{ event.word }}",
    gate: "true",
    agent: "basic:scripted",
    targetBranch: "main",
    budgetUsd: 1,
    triggers: [
      { type: "api" },
      { type: "schedule", cron: "0 9 * * 1", condition: "true", ...policy },
      { type: "webhook", condition: "event.x", ...policy, concurrency: { key: "'x'", policy: "queue" } },
      {
        type: "webhook",
        enabled: false,
        verify: { type: "hmac", header: "x-signature" },
        concurrency: { key: "'x'", policy: "cancelOlder" },
      },
      { type: "webhook", verify: { type: "standardWebhooks" } },
      { type: "forge", events: ["issue.opened", "session.failed"], repositories: ["acme/*"] },
      ...["sentry", "linear", "jira", "pagerduty", "cloudEvents"].map((source) => ({ type: "source", source })),
      { type: "source", source: "slack", replyToken: "xoxb-answers" },
    ],
  });
  await site.call("/automation/rundum/state/update", { set: { gesehen: 1 } });
  const hook = made.triggers[2] as { readonly url: string };
  for (const body of [{ x: true }, { x: false }, {}]) {
    const sent = await fetch(`${site.offstage.url}${new URL(hook.url).pathname}`, {
      method: "POST",
      body: JSON.stringify(body),
    });
    expect(sent.status).toBe(202);
  }
  await page.goto("/automations");
  await isGerman(page.getByText(german.badges.active));
  await page.goto("/automations/rundum");
  await button(`${german.change} gesehen`).waitFor();
  await isRight(page.getByText(german.triggers.next));

  await button(german.trigger.verb).click();
  await dialog().getByLabel(german.event.label).fill('{ "word": "x" }');
  await dialog().getByRole("button", { name: german.preview.title }).click();
  await isRight(dialog().getByLabel(german.preview.prompt));
  await dialog().getByLabel(german.event.label).fill("{");
  await dialog().getByRole("button", { name: german.preview.title }).click();
  await isGerman(dialog().getByText(german.noJson("")));
  await leave();

  await button(german.change).click();
  await button(german.triggers.add).click();
  await isRight(dialog().getByLabel(german.triggers.example));
  await dialog().getByRole("textbox").fill("[1]");
  await button(german.save).click();
  await isGerman(page.getByText(german.triggers.noList));
  await leave();

  const rows = page.getByRole("list", { name: german.triggers.title }).getByRole("listitem");
  await rows.nth(1).getByRole("button", { name: german.triggers.condition }).click();
  await isGerman(page.getByText(german.condition.nothing));
  await leave();
  await rows.nth(2).getByRole("button", { name: german.triggers.condition }).click();
  await button(german.condition.try).click();
  await isRight(page.getByText(german.condition.summary(1, 1, 1)));
  await leave();
  // Those that have something to set up; of forges first that none is connected.
  for (const index of [0, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11]) {
    await rows.nth(index).getByRole("button", { name: german.triggers.setUp }).click();
    const isForge = index === 5;
    await isGerman(isForge ? dialog().getByText(german.setUp.noForge) : dialog().getByText(german.setUp.address));
    await leave();
  }
  await site.call("/connection/create", {
    kind: "github",
    name: "Unsere Forge",
    webUrl: `${site.forge.url}/acme`,
    apiUrl: site.forge.apiUrl,
    credential: { type: "token", token: site.forge.token },
  });
  await page.reload();
  await rows.nth(5).getByRole("button", { name: german.triggers.setUp }).click();
  await isRight(dialog().getByText(german.setUp.enterSecret));
  await leave();

  await button(german.state.add).click();
  await button(german.save).click();
  await isGerman(dialog().getByText(german.state.noJson));
  await leave();
  await button(`${german.change} gesehen`).click();
  await isGerman(dialog().getByText(german.state.valueHint));
  await leave();
  await button(`${german.state.remove} gesehen`).click();
  await isGerman(page.getByText(german.state.removeAbout));
  await leave();
  await button(german.actions.delete).click();
  await isGerman(page.getByText(german.actions.deleteAbout));
  await leave();
  await rows.nth(2).getByRole("button", { name: german.triggers.replaceAddress }).click();
  await isGerman(page.getByText(german.triggers.replaceAddressAbout));
  await leave();
  await rows.nth(3).getByRole("button", { name: german.triggers.replaceSecret }).click();
  await isGerman(page.getByText(german.triggers.replaceSecretAbout));
  await page.getByRole("alertdialog").getByRole("button", { name: german.triggers.replaceSecret }).click();
  await isRight(page.getByText(german.triggers.secretAbout));
  await page.getByRole("link", { name: german.actions.edit }).click();
  await isGerman(page.getByRole("heading", { name: german.edit.title }));
});

test("its runs, its notices, and its entries in the ledger", async () => {
  const { id } = await site.call("/automation/create", {
    name: "Zwei",
    macro: "zwei",
    instructions: "say {{ event.word }}",
    repositories: ["https://example.com/acme/one", "https://example.com/acme/two"],
    fanOut: true,
    failuresBeforePause: 1,
    expect: { atLeast: 2, everyHours: 24 },
  });
  const fired = await trigger("zwei", { word: "x" });
  const { database } = site.offstage;
  await database.pool.query("update automation set expect_since = now() - interval '2 days' where id = $1", [id]);
  await reviewSilences(database);
  await page.goto("/automations/zwei");
  await isGerman(page.getByText(german.badges.silent));
  await button(german.runs.cancel).click();
  await isGerman(page.getByText(german.runs.cancelAbout));
  await page.getByRole("alertdialog").getByRole("button", { name: german.runs.cancel }).click();
  await button(german.runs.cancel).waitFor({ state: "detached" });
  const failed = await trigger("zwei", {});
  await page.reload();
  await page.getByRole("link", { name: german.runs.noSession }).waitFor();
  await isRight(page.getByText(german.badges.paused));

  await page.goto("/ledger");
  await isRight(page.getByRole("listitem").getByText(germanLedger.outcomes.failed));
  await page.goto("/ledger?outcome=missed");
  await isGerman(page.getByText(germanLedger.nothingMatches));
  await page.goto(`/ledger?entry=${fired}`);
  await isRight(page.getByText(germanLedger.jobStatuses.completed, { exact: true }));
  await site.call("/automation/zwei/update", { paused: false });
  await page.goto(`/ledger?entry=${failed}`);
  await button(germanLedger.replay, false).click();
  await isGerman(page.getByRole("link", { name: germanLedger.replayed }));
  await page.getByRole("link", { name: germanLedger.replayed }).click();
  await isGerman(page.getByText(germanLedger.replayOf));
  await site.client.automation.delete(id);
  await page.reload();
  await isGerman(page.getByRole("heading", { name: germanLedger.deletedAutomation }));
});

test("a reader is shown that they may only look", async () => {
  const { key } = await site.call("/key/create", { name: "sieht", role: "viewer" });
  const viewer = await site.signedIn({ key, locale: "de-AT" });
  await viewer.goto("/automations/new");
  await isGerman(viewer.getByText(german.creation.denied), viewer);
  await viewer.goto("/automations/rundum/edit");
  await isRight(viewer.getByText(german.edit.denied), viewer);
});
