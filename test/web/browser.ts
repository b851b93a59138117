import { AxeBuilder } from "@axe-core/playwright";
import { join } from "node:path";
import chromium, { inflate } from "@sparticuz/chromium";
import { chromium as playwright, type Browser, type Page } from "playwright-core";
import { hangTimeoutMs } from "../hang-timeout.ts";

const libraries = join(import.meta.dirname, "../../node_modules/@sparticuz/chromium/bin/al2023.tar.br");

/** A real Chromium that comes in a package: nothing is downloaded. */
export async function launchBrowser(): Promise<Browser> {
  // No rendering of 3D, so that its software driver need not be unpacked.
  chromium.setGraphicsMode = false;
  // The package's own arguments are for one page in a small cloud function: one process, and no web security.
  const args = ["--no-sandbox", "--no-zygote", "--disable-gpu", "--headless=shell"];
  const executablePath = await chromium.executablePath();
  try {
    return await playwright.launch({ executablePath, args, timeout: hangTimeoutMs });
  } catch {
    // A bare machine has no NSS library; the package brings that too.
    const env = { ...process.env, LD_LIBRARY_PATH: join(await inflate(libraries), "lib") };
    return playwright.launch({ executablePath, args, env, timeout: hangTimeoutMs });
  }
}

/** What axe finds wrong with the page as it stands: rule and element, a line each. */
export async function accessibilityProblems(page: Page): Promise<string[]> {
  const { violations } = await new AxeBuilder({ page }).analyze();
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
