import { chmod, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { demoPrompt, demoScript } from "../demo/script.ts";
import { createClient } from "../src/client.ts";
import { readConfig } from "../src/config/config.ts";
import { createLogger } from "../src/observability.ts";
import { startOffstage } from "../src/server/offstage.ts";
import { startForge } from "../test/forge/server.ts";
import { startModelServer } from "../test/model/server.ts";
import { launchBrowser } from "../test/web/browser.ts";

/** Takes the README's picture of the real page, after a real session: `node scripts/screenshot.ts`. */
const data = await mkdtemp(join(tmpdir(), "offstage-screenshot-"));
await chmod(data, 0o755);
const forge = await startForge();
const model = await startModelServer({ script: demoScript });
const { url: repository } = await forge.createRepository(
  "demo",
  "greet",
  join(import.meta.dirname, "../test/forge/demo-repository"),
);
const config = readConfig({
  OFFSTAGE_DATA: data,
  OFFSTAGE_PORT: "0",
  OFFSTAGE_LOG_LEVEL: "error",
  OFFSTAGE_FORGES: JSON.stringify([{ kind: "github", webUrl: forge.url, apiUrl: forge.apiUrl, token: forge.token }]),
  OFFSTAGE_MODEL_BASE_URL: `${model.url}/v1`,
  OFFSTAGE_MODEL: "scripted",
  OFFSTAGE_DEFAULT_AGENT: "basic:scripted",
});
const offstage = await startOffstage(config, createLogger(config.logLevel));
const browser = await launchBrowser();
try {
  const client = createClient({ baseUrl: offstage.url, key: offstage.first?.adminKey ?? "" });
  const { id } = await client.session.create({ prompt: demoPrompt, repositories: [repository] });
  for await (const event of client.streamEvents(id)) void event;
  const page = await browser.newPage({ viewport: { width: 1_360, height: 850 }, colorScheme: "light" });
  await page.goto(offstage.first?.loginLink ?? "");
  await page.getByRole("heading", { name: "Sessions" }).waitFor();
  await page.goto(`${offstage.url}/sessions/${id}`);
  await page.getByText("Pull request #1 opened").waitFor();
  // Markdown is drawn a moment after the words.
  await page.locator("code", { hasText: "node --test" }).last().waitFor();
  await page.locator("p code", { hasText: "--shout" }).first().waitFor();
  // Diffs are drawn when their language is loaded.
  await page.getByRole("region", { name: "src/greet.js" }).getByText("toUpperCase").first().waitFor();
  await page.screenshot({ path: "docs/session.png" });
} finally {
  await browser.close();
  await offstage.stop();
  await model.close();
  await forge.close();
  await rm(data, { recursive: true, force: true });
}
process.exit();
