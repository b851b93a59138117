import type { Locator, Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { accessibilityProblems, scrollsSideways } from "./browser.ts";
import { openSite, type Site } from "./site.ts";

/** The way through the settings: links to their sections, each of which has an address. */
let site: Site;
let member: string;

const ofAdmin = [
  ["sessions", "Sessions"],
  ["accounts", "Your accounts"],
  ["notices", "Notices"],
  ["connections", "Connections"],
  ["secrets", "Secrets"],
  ["registries", "Private package registries"],
  ["keys", "API keys"],
  ["shares", "Links that show sessions"],
  ["sign-ins", "Signed-in browsers"],
  ["programs", "Programs"],
  ["data", "All data of the organization"],
] as const;

beforeAll(async () => {
  site = await openSite();
  ({ key: member } = await site.call("/key/create", { name: "Member", role: "member" }));
});
afterEach(() => site.requireQuiet());
afterAll(() => site?.close());

const links = (page: Page): Locator => page.getByRole("navigation", { name: "Sections of the settings" });
const current = (page: Page): Promise<string | null> => links(page).locator("[aria-current=true]").textContent();
const titles = (page: Page): Promise<string[]> => links(page).getByRole("link").allTextContents();

/** Whether nothing hides an element, and it has the focus. */
const isOpen = (page: Page, id: string): Promise<boolean> =>
  page.evaluate(`{
    const heading = document.getElementById("${id}");
    const { left, top, height } = heading?.getBoundingClientRect() ?? {};
    heading !== null && document.activeElement === heading && document.elementFromPoint(left + 2, top + height / 2) === heading;
  }`);

/** Waits until a section has been opened: its heading is in sight with the focus, and its link is marked. */
async function untilOpen(page: Page, id: string, title: string): Promise<void> {
  await expect.poll(() => isOpen(page, id), { message: `${title} is in sight` }).toBe(true);
  await expect.poll(() => current(page)).toBe(title);
}

async function requireGood(page: Page): Promise<void> {
  expect(await accessibilityProblems(page)).toEqual([]);
  expect(await scrollsSideways(page)).toBe(false);
}

test("each section is opened by its link, beside the settings and on a phone, and none is unknown", async () => {
  for (const viewport of [
    { width: 1440, height: 900 },
    { width: 390, height: 800 },
  ]) {
    const page = await site.signedIn({ viewport });
    await page.goto("/settings");
    await page.getByText("No session is shown by a link.").waitFor();
    expect(await titles(page)).toEqual(ofAdmin.map(([, title]) => title));
    expect(await current(page)).toBe("Sessions");
    for (const [id, title] of ofAdmin) {
      const link = links(page).getByRole("link", { name: title, exact: true });
      await link.press("Enter");
      await page.waitForURL((url) => url.hash === `#${id}`);
      await untilOpen(page, id, title);
    }
    await requireGood(page);
    // The same once more.
    await page.evaluate("scrollTo(0, 0)");
    await expect.poll(() => current(page)).toBe("Sessions");
    await links(page).getByRole("link", { name: "All data of the organization" }).click();
    await untilOpen(page, "data", "All data of the organization");
    await page.context().close();
  }
});

test("the section in view is marked while the page is scrolled", async () => {
  const page = await site.signedIn({ viewport: { width: 390, height: 800 } });
  await page.goto("/settings");
  await page.getByText("No session is shown by a link.").waitFor();
  const seen = new Set<string | null>();
  const room = await page.evaluate<number>("document.documentElement.scrollHeight - innerHeight");
  for (let at = 0; at <= room + 100; at += 100) {
    await page.evaluate(
      `scrollTo(0, ${at}); new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))`,
    );
    seen.add(await current(page));
  }
  expect([...seen]).toEqual(ofAdmin.map(([, title]) => title));
  // On a phone, too, its link is in sight.
  const last = links(page).getByRole("link").last();
  await expect.poll(async () => ((await last.boundingBox())?.x ?? 0) < 390).toBe(true);
});

test("an address leads to its section, which stays in sight while others load above it", async () => {
  const page = await site.signedIn({ viewport: { width: 1440, height: 900 } });
  let answer = (): void => {};
  const answered = new Promise<void>((resolve) => {
    answer = resolve;
  });
  await page.route("**/connection/list?*", async (route) => {
    await answered;
    await route.continue();
  });
  await page.goto("/settings#sign-ins");
  await untilOpen(page, "sign-ins", "Signed-in browsers");
  const height = (): Promise<number> => page.evaluate("document.documentElement.scrollHeight");
  await page.getByText("No session is shown by a link.").waitFor();
  const before = await height();
  answer();
  await page.getByText("No connections yet.").waitFor();
  await expect.poll(height).not.toBe(before);
  await untilOpen(page, "sign-ins", "Signed-in browsers");
  await requireGood(page);

  // A user who scrolls is not moved.
  await page.mouse.move(900, 400);
  await page.mouse.wheel(0, -100_000);
  await expect.poll(() => current(page)).toBe("Sessions");
  await page.goto("/settings#nowhere");
  await page.getByText("No session is shown by a link.").waitFor();
  expect(await current(page)).toBe("Sessions");
});

test("going to another section asks nothing, and keeps what is not saved", async () => {
  const page = await site.signedIn();
  await page.goto("/settings?connection=failed");
  await page.getByLabel("Default agent").fill("basic:other");
  await links(page).getByRole("link", { name: "Programs" }).click();
  await untilOpen(page, "programs", "Programs");
  expect(new URL(page.url()).search).toBe("?connection=failed");
  expect(await page.getByLabel("Default agent").inputValue()).toBe("basic:other");
  await page.goBack();
  await page.waitForURL((url) => url.hash === "");
  expect(await page.getByLabel("Default agent").inputValue()).toBe("basic:other");
  expect(await page.getByRole("alertdialog").count()).toBe(0);
});

test("a section is found among the commands, from any page", async () => {
  const page = await site.signedIn();
  await page.goto("/ledger");
  await page.getByRole("heading", { name: "Ledger" }).waitFor();
  await page.keyboard.press("Control+k");
  await page.getByRole("combobox", { name: "Search and commands" }).fill("settings registries");
  await page.getByRole("option", { name: "Private package registries · Settings", selected: true }).waitFor();
  await requireGood(page);
  await page.keyboard.press("Enter");
  await page.waitForURL((url) => `${url.pathname}${url.hash}` === "/settings#registries");
  await untilOpen(page, "registries", "Private package registries");
  // From a page that leads to it.
  await page.goto("/people");
  await page.getByRole("main").getByRole("link", { name: "Keys for programs are in the settings." }).click();
  await untilOpen(page, "keys", "API keys");
});

test("a user who is no admin has links to what they see, and no command leads to more", async () => {
  const page = await site.signedIn({ key: member, viewport: { width: 390, height: 800 } });
  await page.goto("/settings#keys");
  await page.getByRole("heading", { name: "Programs" }).waitFor();
  const shown = ["Your accounts", "Notices", "Signed-in browsers", "Programs"];
  expect(await titles(page)).toEqual(shown);
  expect(await current(page)).toBe("Your accounts");
  await requireGood(page);
  await page.keyboard.press("Control+k");
  await page.getByRole("combobox", { name: "Search and commands" }).fill("settings");
  const found = page.getByRole("option", { name: "· Settings" });
  await expect.poll(() => found.allTextContents()).toEqual(shown.map((title) => `${title} · Settings`));
});

test("a user who has to sign in first comes to the section, too", async () => {
  const page = await site.stranger();
  await page.goto("/settings#programs");
  await page.waitForURL((url) => url.pathname === "/sign-in");
  await page.getByRole("textbox").fill(member);
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.waitForURL((url) => `${url.pathname}${url.hash}` === "/settings#programs");
  await untilOpen(page, "programs", "Programs");
});

test("secrets are listed page by page, and one of a further page is deleted", async () => {
  const names = Array.from({ length: 23 }, (_, index) => `TOKEN_${index}`);
  for (const name of names) await site.call("/secret/create", { name, value: "x" });
  const page = await site.signedIn({ viewport: { width: 390, height: 800 } });
  let isAway = true;
  await page.route("**/secret/list?*", (route) =>
    isAway ? route.fulfill({ status: 400, json: {} }) : route.fallback(),
  );
  await page.goto("/settings#secrets");
  const section = page.getByRole("region", { name: "Secrets" });
  await section.getByRole("alert").waitFor();
  await requireGood(page);
  isAway = false;
  await section.getByRole("button", { name: "Try again" }).click();
  const rows = section.getByRole("list", { name: "Secrets" }).getByRole("listitem");
  await expect.poll(() => rows.count()).toBe(20);
  const first = rows.filter({ hasText: /TOKEN_0\b/u });
  expect(await first.count()).toBe(0);
  await section.getByRole("button", { name: "Show more" }).press("Enter");
  await expect.poll(() => rows.count()).toBe(23);
  // The button is gone with the last page: the keyboard goes on where that begins.
  await rows.nth(20).and(page.locator(":focus")).waitFor();
  await requireGood(page);
  await first.getByRole("button", { name: "Delete TOKEN_0" }).click();
  await page.getByRole("alertdialog").getByRole("button", { name: "Delete" }).click();
  await expect.poll(() => rows.count()).toBe(22);
  // The focus is not lost with the row that had it.
  await section.locator("ul:focus").waitFor();
  const { secrets } = await site.call("/secret/list?limit=100");
  expect(secrets).toHaveLength(22);
});

test("in another language, too, whose words come later, the section keeps the focus", async () => {
  const { id } = await site.client.session.create({ prompt: "Catch a walrus", queueRightAway: false });
  await site.client.session.share(id);
  const page = await site.signedIn({ locale: "de-DE" });
  await page.goto("/settings#shares");
  await page.getByRole("region", { name: "Links, die Sessions zeigen" }).getByText("noch nicht benutzt").waitFor();
  await expect.poll(() => isOpen(page, "shares")).toBe(true);
});
