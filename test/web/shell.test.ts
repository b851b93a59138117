import type { Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { accessibilityProblems, scrollsSideways } from "./browser.ts";
import { openSite, type Site } from "./site.ts";

/** The frame around every page: navigation, palette, keys, and how this browser shows all of it. */
let site: Site;

beforeAll(async () => {
  site = await openSite();
  await site.client.session.create({ prompt: "Catch a walrus", queueRightAway: false });
});
afterEach(() => site.requireQuiet());
afterAll(() => site?.close());

async function home(options: Parameters<Site["signedIn"]>[0] = {}): Promise<Page> {
  const page = await site.signedIn(options);
  await page.goto("/");
  await page.getByRole("link", { name: "Catch a walrus" }).first().waitFor();
  return page;
}

const attribute = (page: Page, name: string): Promise<string | null> =>
  page.evaluate(`document.documentElement.getAttribute("${name}")`);

test("the palette finds pages, commands and sessions, by the keyboard alone", async () => {
  const page = await home();
  await page.keyboard.press("Control+k");
  const field = page.getByRole("combobox", { name: "Search and commands" });
  await field.and(page.locator(":focus")).waitFor();
  await page.keyboard.type("walrus");
  await page.getByRole("option", { name: "Catch a walrus", selected: true }).waitFor();
  expect(await accessibilityProblems(page)).toEqual([]);
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { name: "Catch a walrus" }).waitFor();

  await page.keyboard.press("Control+k");
  await page.keyboard.type("audit");
  await page.getByRole("option", { name: "Audit" }).waitFor();
  await page.keyboard.press("Enter");
  await page.waitForURL(/\/audit$/u);

  await page.keyboard.press("Control+k");
  await page.keyboard.type("nothing is called so");
  await page.getByText("Nothing was found.").waitFor();
  expect(await accessibilityProblems(page)).toEqual([]);
  await page.keyboard.press("Escape");
  await field.waitFor({ state: "detached" });
});

test("letters lead to pages, not while the user writes, and not once they are switched off", async () => {
  const page = await home();
  await page.getByLabel("Search sessions").fill("g l");
  await page.getByLabel("Search sessions").press("g");
  await page.getByLabel("Search sessions").press("l");
  expect(new URL(page.url()).pathname).toBe("/");
  await page.goto("/");
  await page.getByRole("link", { name: "Catch a walrus" }).first().waitFor();
  await page.keyboard.press("g");
  await page.keyboard.press("l");
  await page.waitForURL(/\/ledger$/u);

  await page.keyboard.press("?");
  const sheet = page.getByRole("dialog", { name: "Keyboard shortcuts" });
  await sheet.getByText("Go to Settings").waitFor();
  expect(await accessibilityProblems(page)).toEqual([]);
  await page.keyboard.press("Escape");
  await sheet.waitFor({ state: "detached" });

  await page.getByRole("button", { name: "Display" }).click();
  await page.getByLabel("Shortcuts of one letter").uncheck();
  await page.keyboard.press("Escape");
  await page.getByRole("dialog").waitFor({ state: "detached" });
  await page.keyboard.press("g");
  await page.keyboard.press("s");
  await page.keyboard.press("?");
  await page.keyboard.press("Control+k");
  await page.getByRole("combobox", { name: "Search and commands" }).waitFor();
  expect(new URL(page.url()).pathname).toBe("/ledger");
});

test("colours, contrast and motion are chosen, remembered, and follow the system until then", async () => {
  const page = await home({ colorScheme: "light", contrast: "more", reducedMotion: "reduce" });
  expect(await attribute(page, "data-contrast")).toBe("more");
  expect(await attribute(page, "data-motion")).toBe("reduced");
  expect(await attribute(page, "data-theme")).toBeNull();
  // As it is painted, whichever way the style is written.
  const ground = () =>
    page.evaluate<string>(`{
      const canvas = document.createElement("canvas").getContext("2d");
      canvas.fillStyle = getComputedStyle(document.documentElement).backgroundColor;
      canvas.fillRect(0, 0, 1, 1);
      canvas.getImageData(0, 0, 1, 1).data.join(" ");
    }`);
  expect(await ground()).toBe("255 255 255 255");
  expect(await accessibilityProblems(page)).toEqual([]);
  await page.getByRole("button", { name: "Display" }).click();
  await page.getByLabel("Colours").selectOption("Dark");
  await expect.poll(ground).toBe("0 0 0 255");
  expect(await accessibilityProblems(page)).toEqual([]);
  await page.getByLabel("Contrast").selectOption("Normal");
  await expect.poll(ground).not.toBe("0 0 0 255");
  await page.reload();
  await page.getByRole("link", { name: "Catch a walrus" }).first().waitFor();
  expect(await attribute(page, "data-theme")).toBe("dark");
  expect(await attribute(page, "data-contrast")).toBe("normal");
  expect(await accessibilityProblems(page)).toEqual([]);
});

test("another language is shown and remembered, and is that of the browser until then", async () => {
  const page = await home();
  await page.getByRole("button", { name: "Display" }).click();
  await page.getByLabel("Language").selectOption("Deutsch");
  await page.getByRole("link", { name: "Automationen" }).waitFor();
  expect(await attribute(page, "lang")).toBe("de");
  await page.reload();
  await page.getByLabel("Was soll getan werden?").waitFor();
  expect(await accessibilityProblems(page)).toEqual([]);
  await page.getByRole("link", { name: "Catch a walrus" }).first().click();
  await page.getByRole("button", { name: "Starten" }).waitFor();

  const german = await site.signedIn({ locale: "de-AT" });
  await german.goto("/");
  await german.getByRole("link", { name: "Einstellungen" }).waitFor();
});

test("on a phone the navigation opens over the page, and closes when it led somewhere", async () => {
  const page = await home({ viewport: { width: 360, height: 740 } });
  const ledger = page.getByRole("link", { name: "Ledger" });
  expect(await ledger.isVisible()).toBe(false);
  await page.getByRole("button", { name: "Menu" }).click();
  await ledger.waitFor();
  expect(await accessibilityProblems(page)).toEqual([]);
  await ledger.click();
  await page.getByRole("heading", { name: "Ledger" }).waitFor();
  await ledger.waitFor({ state: "hidden" });
  await page.getByRole("button", { name: "Search and commands" }).click();
  await page.getByRole("combobox", { name: "Search and commands" }).waitFor();
  expect(await scrollsSideways(page)).toBe(false);
});
