import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { parseArgs } from "node:util";
import type { Browser } from "playwright-core";
import { demoScript } from "../demo/script.ts";
import { launchBrowser } from "../test/web/browser.ts";
import { filesAfter, filesBefore, storeFiles } from "../test/web/content/files.ts";
import { fillOrganization, type Filled } from "../test/web/content/fill.ts";
import { adminKey, createWorld, startInProcess } from "../test/world.ts";
import { filmSession, takeDocsPictures, type Open } from "./pictures/docs.ts";
import { firstScenes, scenesOf, type Scene } from "./pictures/scenes.ts";

/**
 * Takes pictures of the real pages of a real server, with what real organizations have.
 *
 *   npm run pictures                          every page in light and dark, at three widths, into dist/pictures
 *   npm run pictures -- --to <folder>         into another folder
 *   npm run pictures -- --only <name>         only the pages whose name begins so
 *   npm run pictures -- --docs                what README and docs show, into docs/pictures, with the film of a session
 *   npm run pictures -- --serve --port 4747   none: the server stays, for `npx vite src/web`
 */
const { values } = parseArgs({
  options: {
    to: { type: "string", default: "dist/pictures" },
    only: { type: "string", default: "" },
    docs: { type: "boolean", default: false },
    serve: { type: "boolean", default: false },
    port: { type: "string", default: "0" },
  },
});
const widths = [390, 834, 1_440];

const world = await createWorld(demoScript, { embedded: true });
const { forge } = world;
await forge.createRepository("demo", "greet", join(import.meta.dirname, "../test/forge/demo-repository"));
const { offstage, client } = await startInProcess(world, {
  OFFSTAGE_PORT: values.port,
  OFFSTAGE_DEFAULT_AGENT: "basic:scripted",
  OFFSTAGE_FORGE_HOSTS: "127.0.0.1",
  // On a busy machine the session takes long: its film has no pauses.
  OFFSTAGE_LEASE_SECONDS: "60",
  OFFSTAGE_STALL_SECONDS: "600",
  // So that no request goes to the real one.
  OFFSTAGE_FORGES: JSON.stringify([{ kind: "github", webUrl: "https://github.com", apiUrl: forge.apiUrl }]),
});

async function fill(): Promise<Filled> {
  // What is queued stays so: the place is taken by a session that no worker has.
  await client.organization.update({ maxRunningSessions: 1 });
  const { orgId } = await client.me();
  const filled = await fillOrganization(offstage.database, orgId ?? "");
  await storeFiles(offstage.database, world.data, filled.completed, { files: filesBefore }, { files: filesAfter });
  return filled;
}

/** A machine without a font for them draws boxes. */
async function leaveOutEmoji(): Promise<void> {
  await offstage.database.pool.query("update session set title = replace(title, ' 🛒', '')");
  await offstage.database.pool.query("update session_repository set patch = replace(patch, ' 🛒', '')");
}

async function takeAll(browser: Browser, scenes: readonly Scene[]): Promise<void> {
  const wanted = scenes.filter(({ name }) => name.startsWith(values.only));
  await mkdir(values.to, { recursive: true });
  for (const colorScheme of ["light", "dark"] as const) {
    for (const width of widths) {
      const options = { colorScheme, viewport: { width, height: 900 } };
      for (const isStranger of [false, true]) {
        const page = await opener(browser, isStranger)(options);
        for (const { name, path, prepare } of wanted.filter((scene) => (scene.isStranger ?? false) === isStranger)) {
          await page.goto(path);
          await page.waitForLoadState("networkidle", { timeout: 5_000 }).catch(() => undefined);
          await prepare?.(page);
          // Fonts, plots and diffs are drawn after the words, and no page says when.
          await page.waitForTimeout(400);
          await page.screenshot({ path: join(values.to, `${name}-${width}-${colorScheme}.png`) });
        }
        await page.context().close();
      }
    }
  }
}

/** Opens pages that print what the browser complains of. */
function opener(browser: Browser, isStranger = false): Open {
  return async (options) => {
    const context = await browser.newContext({ baseURL: offstage.url, ...options });
    const page = await context.newPage();
    page.on("console", (line) => line.type() === "error" && console.log(`${page.url()}: ${line.text()}`));
    if (!isStranger) await page.request.post("/login/create", { data: { key: adminKey } });
    return page;
  };
}

async function take(browser: Browser): Promise<void> {
  if (values.docs) {
    await filmSession(opener(browser), client, "demo/greet");
    const filled = await fill();
    await leaveOutEmoji();
    return takeDocsPictures(opener(browser), filled);
  }
  await takeAll(browser, firstScenes);
  await takeAll(browser, await scenesOf(await fill(), client));
}

try {
  await client.connection.create({
    kind: "gitea",
    webUrl: forge.url,
    name: "Gitea of Acme",
    credential: { type: "token", token: forge.token },
  });
  if (values.serve) {
    console.log(offstage.url, JSON.stringify(await fill()));
    await new Promise((resolve) => process.once("SIGINT", resolve));
  } else {
    const browser = await launchBrowser();
    try {
      await take(browser);
    } finally {
      await browser.close();
    }
  }
} finally {
  await offstage.stop();
  await world.close();
}
process.exit();
