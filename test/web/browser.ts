import { existsSync } from "node:fs";
import { setTimeout as pause } from "node:timers/promises";
import { AxeBuilder } from "@axe-core/playwright";
import { join } from "node:path";
import chromium, { inflate } from "@sparticuz/chromium";
import { chromium as playwright, type Browser, type LaunchOptions, type Locator, type Page } from "playwright-core";
import { hangTimeoutMs } from "../hang-timeout.ts";

const libraries = join(import.meta.dirname, "../../node_modules/@sparticuz/chromium/bin/al2023.tar.br");

/** Whether the tests of the web app run in the machine's Firefox: `OFFSTAGE_TEST_BROWSER=firefox npx vitest run test/web`. */
export const inFirefox = process.env["OFFSTAGE_TEST_BROWSER"] === "firefox";

/** A real Chromium that comes in a package: nothing is downloaded. Or the machine's Firefox, if it was asked for. */
export async function launchBrowser(): Promise<Browser> {
  return inFirefox ? launchFirefox() : launchChromium();
}

/** A Firefox as its makers publish it, over WebDriver BiDi (https://w3c.github.io/webdriver-bidi/). */
async function launchFirefox(): Promise<Browser> {
  const executablePath = ["/usr/bin/firefox-esr", "/usr/bin/firefox"].find((path) => existsSync(path));
  if (executablePath === undefined) throw new Error("there is no Firefox: install the package firefox-esr or firefox");
  // Another version, with the same interface: the later one sends a command that Firefox 153, which has extended support, does not know.
  const { firefox } = await import("playwright-core-for-firefox");
  const launched = await firefox.launch({ channel: "moz-firefox", executablePath, timeout: hangTimeoutMs });
  const browser = launched as unknown as Browser;
  await tellReactOfFilledFields(browser);
  return browser;
}

/**
 * Over WebDriver BiDi a field's value is set through the property that React watches, so that React takes the event that follows for one
 * without a change: a field that was filled is set once more, past React. Keys that are pressed, as by a person, need none of it.
 */
async function tellReactOfFilledFields(browser: Browser): Promise<void> {
  const page = await browser.newPage();
  const locators = Object.getPrototypeOf(page.locator("body")) as Locator;
  await page.close();
  // Each browser of a process has the same prototype.
  const fill = locators.fill;
  if (fill.name === "fillAndTell") return;
  locators.fill = async function fillAndTell(this: Locator, value, options) {
    // Waits until it can be written into.
    await this.focus(options);
    await this.evaluate((element, text) => {
      const property = Object.getOwnPropertyDescriptor(Object.getPrototypeOf(element), "value");
      property?.set?.call(element, text);
      (element as unknown as EventTarget).dispatchEvent(new Event("input", { bubbles: true }));
    }, value);
  };
}

async function launchChromium(): Promise<Browser> {
  // No rendering of 3D, so that its software driver need not be unpacked.
  chromium.setGraphicsMode = false;
  // The package's own arguments are for one page in a small cloud function: one process, and no web security.
  const args = ["--no-sandbox", "--no-zygote", "--disable-gpu", "--headless=shell"];
  const executablePath = await chromium.executablePath();
  try {
    return await launchUnpacked({ executablePath, args, timeout: hangTimeoutMs });
  } catch {
    // A bare machine has no NSS library; the package brings that too.
    const env = { ...process.env, LD_LIBRARY_PATH: join(await inflate(libraries), "lib") };
    return launchUnpacked({ executablePath, args, env, timeout: hangTimeoutMs });
  }
}

/** Waits while another test file, which came first, still unpacks the browser. */
async function launchUnpacked(options: LaunchOptions): Promise<Browser> {
  for (;;) {
    try {
      return await playwright.launch(options);
    } catch (error) {
      if (!String(error).includes("ETXTBSY")) throw error;
      await pause(50);
    }
  }
}

/**
 * What axe finds wrong with the page as it stands: rule and element, a line each. It runs in the page itself and only reports violations,
 * which takes half the time of the default, a second page that joins the results of frames: no page here has any.
 */
export async function accessibilityProblems(page: Page): Promise<string[]> {
  const axe = new AxeBuilder({ page }).setLegacyMode(true).options({ resultTypes: ["violations"] });
  const { violations } = await axe.analyze();
  return violations.flatMap(({ id, help, nodes }) =>
    nodes.map(
      (node) => `${id} (${help}): ${node.html.slice(0, 200)} ${node.any.map((check) => check.message).join("; ")}`,
    ),
  );
}

/** Whether something sticks out of the window sideways. */
export async function scrollsSideways(page: Page): Promise<boolean> {
  return page.evaluate("document.documentElement.scrollWidth > document.documentElement.clientWidth");
}
