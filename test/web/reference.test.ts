import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { operationsOf, type Description } from "../../src/description/operations.ts";
import { createTestApp, type TestApp } from "../api/app.ts";
import { hangTimeoutMs } from "../hang-timeout.ts";
import { accessibilityProblems, launchBrowser, scrollsSideways } from "./browser.ts";

const web = join(import.meta.dirname, "../../dist/web");
let api: TestApp;
let browser: Browser;
let url: string;

beforeAll(async () => {
  api = await createTestApp({ webDirectory: web });
  url = await api.app.listen({ host: "127.0.0.1", port: 0 });
  browser = await launchBrowser();
});
afterAll(async () => {
  await browser?.close();
  await api?.close();
});

const complaints: string[] = [];

/** The reference in a browser of its own; what its console says is gathered. */
async function opened(options: Parameters<Browser["newContext"]>[0] = {}, path = "/reference"): Promise<Page> {
  const context = await browser.newContext({ baseURL: url, ...options });
  context.setDefaultTimeout(hangTimeoutMs);
  const page = await context.newPage();
  page.on("console", (message) => {
    if (message.type() === "error" || message.type() === "warning") complaints.push(message.text());
  });
  page.on("pageerror", (error) => complaints.push(error.message));
  await page.goto(path);
  await page.getByRole("heading", { name: "Create a session", exact: true }).waitFor();
  return page;
}

describe.each([
  [360, "light"],
  [360, "dark"],
  [1280, "light"],
  [1280, "dark"],
] as const)("at %i px, %s", (width, colorScheme) => {
  test("axe finds nothing, nothing sticks out, and the console is silent, with everything open too", async () => {
    const page = await opened({ viewport: { width, height: 800 }, colorScheme });
    expect(await accessibilityProblems(page)).toEqual([]);
    expect(await scrollsSideways(page)).toBe(false);
    // Of one operation that has everything in it.
    const article = page.locator("article", { has: page.locator("#listEvents") });
    const closed = article.locator("details:not([open]) > summary");
    while ((await closed.count()) > 0) await closed.first().click();
    expect(await accessibilityProblems(page)).toEqual([]);
    expect(await scrollsSideways(page)).toBe(false);
    expect(complaints).toEqual([]);
    await page.context().close();
  });
});

test("has every operation, with an example in each language", async () => {
  const page = await opened();
  const operations = operationsOf((await api.get("/openapi.json")).body as Description);
  await expect.poll(() => page.locator("article").count()).toBe(operations.length);
  expect(
    await page.locator("article h3").evaluateAll((all) => all.map((each) => (each as unknown as { id: string }).id)),
  ).toEqual([...Map.groupBy(operations, ({ tag }) => tag).values()].flat().map(({ id }) => id));
  const create = page.locator("article", { has: page.locator('[id="postPublic-apiSessionCreate"]') });
  expect(await create.locator("pre").textContent()).toContain('curl -s "$OFFSTAGE_SERVER/session/create"');
  await page.getByRole("radio", { name: "Python" }).check();
  expect(await create.locator("pre").textContent()).toContain("offstage.session.create({");
  await page.reload();
  await page.getByRole("heading", { name: "Create a session", exact: true }).waitFor();
  expect(await create.locator("pre").textContent()).toContain("offstage.session.create({");
  await page.getByRole("radio", { name: "TypeScript" }).check();
  expect(await create.locator("pre").textContent()).toContain("await offstage.session.create({");
  await page.context().close();
});

test("is searched as one types, by the keyboard alone", async () => {
  const page = await opened();
  await page.keyboard.press("Tab");
  expect(await page.locator(":focus").textContent()).toBe("Skip to the content");
  await page.getByRole("searchbox", { name: "Search" }).focus();
  await page.keyboard.type("message follow-up");
  await expect.poll(() => page.locator("article").count()).toBe(2);
  await page.getByText(/^2 of \d+ operations$/u).waitFor();
  await page.keyboard.press("Control+A");
  await page.keyboard.type("no such words");
  await page.getByText("No operation has these words.").waitFor();
  await page.context().close();
});

test("opens at an operation that its address names", async () => {
  const page = await opened({ viewport: { width: 1280, height: 800 } }, "/reference#listAudit");
  const isInView = async () => {
    const y = (await page.locator("#listAudit").boundingBox())?.y ?? -1;
    return y >= 0 && y < 800;
  };
  await expect.poll(isInView).toBe(true);
  await page.context().close();
});

test("says so if the description can't be loaded", async () => {
  const context = await browser.newContext({ baseURL: url });
  const page = await context.newPage();
  await page.route("**/openapi.json", (route) =>
    route.fulfill({ status: 503, json: { error: "the server is stopping" } }),
  );
  await page.goto("/reference");
  await page.getByRole("alert").waitFor();
  expect(await page.getByRole("alert").textContent()).toContain("the server answered 503");
  expect(await accessibilityProblems(page)).toEqual([]);
  await context.close();
});

test("runs under the app's own policy, and is small", async () => {
  const [reference, app] = await Promise.all(
    ["/reference", "/sign-in"].map((path) => api.app.inject({ url: path, headers: { accept: "text/html" } })),
  );
  expect(reference?.headers["content-security-policy"]).toBe(app?.headers["content-security-policy"]);
  expect(reference?.headers["x-frame-options"]).toBe("DENY");
  const scripts = [...(reference?.body ?? "").matchAll(/(?:src|href)="\/(assets\/[^"]+\.js)"/gu)].map(
    ([, path]) => path ?? "",
  );
  expect(scripts.length).toBeGreaterThan(0);
  const sizes = await Promise.all(scripts.map(async (path) => gzipSync(await readFile(join(web, path))).length));
  expect(sizes.reduce((sum, size) => sum + size, 0)).toBeLessThan(90_000);
});
