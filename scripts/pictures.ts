import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { parseArgs } from "node:util";
import type { Browser, Page } from "playwright-core";
import { script } from "../test/end-to-end/script.ts";
import { launchBrowser } from "../test/web/browser.ts";
import { fillOrganization, type Filled } from "../test/web/content/fill.ts";
import { adminKey, createWorld, startInProcess } from "../test/world.ts";

/**
 * Takes a picture of every page, in light and dark, on a phone, a tablet and a desktop, with what real organizations have:
 * `node scripts/pictures.ts <folder> [--only <name>] [--serve]`. With `--serve` the server stays, for `npx vite src/web`.
 */
const { positionals, values } = parseArgs({
  allowPositionals: true,
  options: { only: { type: "string" }, serve: { type: "boolean" }, port: { type: "string" } },
});
const [folder = "dist/pictures"] = positionals;
const widths = { phone: 390, tablet: 900, desktop: 1_440 };

/** A state of a page: its address, and what is done there before the picture. */
interface Scene {
  readonly name: string;
  readonly path: string;
  readonly prepare?: (page: Page) => Promise<void>;
}

function scenesOf(filled: Filled): Scene[] {
  const session = (name: string, id: string, rest: Partial<Scene> = {}): Scene => ({
    name,
    path: `/sessions/${id}`,
    ...rest,
  });
  return [
    { name: "sessions", path: "/" },
    { name: "sessions-filtered", path: "/?status=failed" },
    { name: "sessions-nothing", path: "/?q=walrus" },
    { name: "palette", path: "/", prepare: (page) => page.keyboard.press("Control+k") },
    { name: "help", path: "/", prepare: (page) => page.keyboard.press("?") },
    session("session-running", filled.running),
    session("session-completed", filled.completed),
    session("session-failed", filled.failed),
    session("session-waiting", filled.waiting),
    session("session-long", filled.long),
    session("session-progress", filled.running, { path: `/sessions/${filled.running}?tab=progress` }),
    session("session-german", filled.running, { prepare: german }),
    session("session-changes", filled.completed, { path: `/sessions/${filled.completed}?tab=changes` }),
    session("session-500-files", filled.large, { path: `/sessions/${filled.large}?tab=changes` }),
    { name: "automations", path: "/automations" },
    { name: "ledger", path: "/ledger" },
    { name: "insight", path: "/insight?group=agent" },
    { name: "people", path: "/people" },
    { name: "settings", path: "/settings" },
    { name: "system", path: "/system" },
    { name: "sign-in", path: "/sign-in" },
    { name: "missing", path: "/sessions/00000000-0000-4000-8000-000000000000" },
  ];
}

async function german(page: Page): Promise<void> {
  await page.evaluate("localStorage.setItem('offstage.language', 'de')");
  await page.reload();
  await page.locator("html[lang=de]").waitFor();
  await page.evaluate("localStorage.removeItem('offstage.language')");
}

async function take(browser: Browser, baseURL: string, scenes: readonly Scene[]): Promise<void> {
  await mkdir(folder, { recursive: true });
  for (const colorScheme of ["light", "dark"] as const) {
    for (const [device, width] of Object.entries(widths)) {
      const context = await browser.newContext({ baseURL, colorScheme, viewport: { width, height: 900 } });
      const page = await context.newPage();
      page.on("console", (line) => line.type() === "error" && console.log(`${page.url()}: ${line.text()}`));
      await page.request.post("/login/create", { data: { key: adminKey } });
      for (const { name, path, prepare } of scenes) {
        if (values.only !== undefined && !name.startsWith(values.only)) continue;
        await page.goto(path);
        await page.waitForLoadState("networkidle", { timeout: 5_000 }).catch(() => undefined);
        await prepare?.(page);
        await page.waitForTimeout(400);
        await page.screenshot({ path: join(folder, `${name}-${device}-${colorScheme}.png`) });
      }
      await context.close();
    }
  }
}

const world = await createWorld(script, { embedded: true });
const { offstage, client } = await startInProcess(world, {
  OFFSTAGE_DEFAULT_AGENT: "basic:scripted",
  ...(values.port !== undefined && { OFFSTAGE_PORT: values.port }),
});
try {
  // What is queued stays so: the place is taken by a session that no worker has.
  await client.organization.update({ maxRunningSessions: 1 });
  const { orgId } = await client.me();
  const filled = await fillOrganization(offstage.database, orgId ?? "");
  console.log(offstage.url, JSON.stringify(filled));
  if (values.serve === true) await new Promise((resolve) => process.once("SIGINT", resolve));
  else {
    const browser = await launchBrowser();
    try {
      await take(browser, offstage.url, scenesOf(filled));
    } finally {
      await browser.close();
    }
  }
} finally {
  await offstage.stop();
  await world.close();
}
process.exit();
