import type { Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { accessibilityProblems, scrollsSideways } from "./browser.ts";
import { storeFiles } from "./content/files.ts";
import { storeSession } from "./content/sessions.ts";
import { openSite, type Site } from "./site.ts";

/** The files of a session's workspace, on its page: those a tree, and one of them. */
let site: Site;
let session: string;

const before = {
  "README.md": "# The shop\n",
  "src/cart/total.ts": "export const total = 1;\n",
  "src/cart/tax.ts": "export const tax = 2;\n",
  "docs/long.txt": Array.from({ length: 9_000 }, (_, line) => `line ${line} of a long text\n`).join(""),
  "empty.txt": "",
  "picture.bin": "\0\u0001\u0002",
};
const after = { ...before, "README.md": "# The shop\nmore\n", "src/new.ts": "export const fresh = 3;\n" };

beforeAll(async () => {
  site = await openSite();
  const { database } = site.offstage;
  const repository = await site.call("/repository/create", { url: "https://git.example/acme/shop" });
  const { orgId } = await site.client.me();
  session = await storeSession(database, orgId ?? "", {
    title: "Change the shop",
    status: "completed",
    repositories: [repository.id],
  });
  await storeFiles(
    database,
    site.data,
    session,
    { files: before },
    { files: after, links: { leads: "../etc/passwd" } },
  );
});
afterEach(() => site.requireQuiet());
afterAll(() => site?.close());

const wide = { viewport: { width: 1_440, height: 900 } };

async function open(query = "?tab=files", options: Parameters<Site["signedIn"]>[0] = wide): Promise<Page> {
  const page = await site.signedIn(options);
  await page.goto(`/sessions/${session}${query}`);
  return page;
}

const row = (page: Page, name: string | RegExp) => page.getByRole("treeitem", { name });

/** What the row that has the focus says. */
const focused = (page: Page): Promise<string | null> => page.evaluate("document.activeElement?.textContent ?? null");

test("a tree has the folders, each loaded as it is opened, and says what the session changed", async () => {
  const page = await open("");
  await page.getByRole("tab", { name: "Files" }).click();
  const tree = page.getByRole("tree", { name: "Files of the workspace" });
  await row(page, /^README\.md\s*changed/u).waitFor();
  expect(await row(page, /^shop/u).getAttribute("aria-expanded")).toBe("true");
  expect(await tree.getByRole("treeitem").allInnerTexts()).toEqual([
    expect.stringContaining("shop"),
    expect.stringContaining("docs"),
    expect.stringMatching(/src\s+changed/u),
    expect.stringMatching(/README\.md\s+changed/u),
    expect.stringContaining("empty.txt"),
    expect.stringMatching(/leads\s+link\s+new/u),
    expect.stringContaining("picture.bin"),
  ]);
  await row(page, /^src/u).click();
  await row(page, /^new\.ts\s*new/u).waitFor();
  expect(await row(page, /^new\.ts/u).getAttribute("aria-level")).toBe("3");
  expect(await accessibilityProblems(page)).toEqual([]);
  await row(page, /^new\.ts/u).click();
  await page.getByRole("region", { name: "Content of new.ts" }).getByText("fresh").waitFor();
  expect(new URL(page.url()).searchParams.get("file")).toBe("shop/src/new.ts");
  await page.getByText("As the agent left it").waitFor();
  expect(await accessibilityProblems(page)).toEqual([]);
  await page.goBack();
  // The tree is as it was left.
  await row(page, /^new\.ts/u).waitFor();
});

test("a submodule is opened as a folder is, and says what it is", async () => {
  const page = await site.signedIn(wide);
  await page.route(/\/file\/list\?/u, async (route) => {
    const response = await route.fetch();
    const folder = (await response.json()) as { entries: { name: string; type: string }[] };
    for (const entry of folder.entries) if (entry.name === "src") entry.type = "submodule";
    await route.fulfill({ response, json: folder });
  });
  await page.goto(`/sessions/${session}?tab=files`);
  const submodule = row(page, /^src\s*submodule/u);
  expect(await submodule.getAttribute("aria-expanded")).toBe("false");
  await submodule.press("ArrowRight");
  await row(page, /^new\.ts/u).waitFor();
  expect(await submodule.getAttribute("aria-expanded")).toBe("true");
  expect(await accessibilityProblems(page)).toEqual([]);
});

test("keys go through the tree, open and close, and come back to where they were", async () => {
  const page = await open();
  await row(page, /^README/u).waitFor();
  await row(page, /^shop/u).focus();
  await page.keyboard.press("ArrowDown");
  expect(await focused(page)).toContain("docs");
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("ArrowRight");
  await row(page, /^cart/u).waitFor();
  await page.keyboard.press("ArrowRight");
  expect(await focused(page)).toContain("cart");
  await page.keyboard.press("Enter");
  await row(page, /^tax\.ts/u).waitFor();
  await page.keyboard.press("ArrowDown");
  expect(await focused(page)).toContain("tax.ts");
  await page.keyboard.press("Enter");
  await page.getByRole("region", { name: "Content of tax.ts" }).getByText("tax").first().waitFor();
  expect(await focused(page)).toBe("All files");
  await page.keyboard.press("Enter");
  await row(page, /^tax\.ts/u).waitFor();
  await expect.poll(() => focused(page)).toContain("tax.ts");
  await page.keyboard.press("ArrowLeft");
  await page.keyboard.press("ArrowLeft");
  await expect.poll(() => row(page, /^tax\.ts/u).count()).toBe(0);
  expect(await focused(page)).toContain("cart");
  await page.keyboard.press("End");
  expect(await focused(page)).toContain("picture.bin");
  await page.keyboard.press("Home");
  expect(await focused(page)).toContain("shop");
  // The tree is one stop.
  expect(await page.locator('[role="treeitem"][tabindex="0"]').count()).toBe(1);
});

test("a long file comes part by part; an empty one, bytes and a link say what they are", async () => {
  const page = await open("?tab=files&file=shop/docs/long.txt");
  const content = page.getByRole("region", { name: "Content of long.txt" });
  await content.getByText("line 1 of a long text").waitFor();
  expect(await content.getByText("line 8999 of").count()).toBe(0);
  const more = page.getByRole("button", { name: "Show more" });
  await more.focus();
  await page.keyboard.press("Enter");
  await content.getByText("line 7000 of a long text").waitFor();
  await page.keyboard.press("Enter");
  await content.getByText("line 8999 of a long text").waitFor();
  // The button that had the focus is gone.
  await expect.poll(() => focused(page)).toBe("That is all of it.");
  for (const [file, words] of [
    ["empty.txt", "The file is empty."],
    ["picture.bin", "This is no text."],
    ["leads", "A link to"],
  ] as const) {
    await page.goto(`/sessions/${session}?tab=files&file=shop/${file}`);
    await page.getByText(words).waitFor();
    expect(await accessibilityProblems(page)).toEqual([]);
  }
  await page.goto(`/sessions/${session}?tab=files&file=shop/none`);
  await page.getByText("workspace has no shop/none").waitFor();
  expect(await accessibilityProblems(page)).toEqual([]);
});

test("on a phone, and in German, nothing is cut off", async () => {
  const page = await open("?tab=files", { viewport: { width: 390, height: 844 }, locale: "de-DE" });
  await page.getByRole("tree", { name: "Dateien des Arbeitsbereichs" }).waitFor();
  await row(page, /^README\.md\s*geändert/u).waitFor();
  expect(await scrollsSideways(page)).toBe(false);
  await row(page, /^README/u).click();
  await page.getByText("Wie der Agent sie hinterlassen hat").waitFor();
  expect(await scrollsSideways(page)).toBe(false);
  expect(await accessibilityProblems(page)).toEqual([]);
});

test("a folder that can't be loaded says why, and is loaded again", async () => {
  const page = await open();
  await row(page, /^README/u).waitFor();
  const ofFolder = /file\/list\?path=shop%2Fsrc&/u;
  await page.route(ofFolder, (route) => route.fulfill({ status: 409, json: { error: "no worker" } }));
  await row(page, /^src/u).click();
  const failed = row(page, "Could not be loaded: no worker. Try again");
  await failed.waitFor();
  expect(await accessibilityProblems(page)).toEqual([]);
  await page.unroute(ofFolder);
  await failed.click();
  await row(page, /^cart/u).waitFor();
  // The row that had the focus is gone.
  await expect.poll(() => focused(page)).toContain("cart");
});

test("a session that has not begun has none, and whoever has a link is not offered them", async () => {
  const draft = await site.client.session.create({ prompt: "say later", queueRightAway: false });
  const page = await site.signedIn(wide);
  await page.goto(`/sessions/${draft.id}?tab=files`);
  await page.getByText("The files can’t be shown").waitFor();
  expect(await accessibilityProblems(page)).toEqual([]);
  const { url } = await site.call(`/session/${session}/share/create`, {});
  const stranger = await site.stranger(wide);
  await stranger.goto(url);
  await stranger.getByRole("tab", { name: "Changes" }).waitFor();
  expect(await stranger.getByRole("tab", { name: "Files" }).count()).toBe(0);
});
