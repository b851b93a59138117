import type { Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "vitest";
import { createClient, type Client } from "../../src/client.ts";
import { findDefaultOrganization } from "../../src/store/people/organizations.ts";
import { addPerson } from "../store/fixtures.ts";
import { accessibilityProblems, scrollsSideways } from "./browser.ts";
import { storeSession } from "./content/sessions.ts";
import { openSite, type Site } from "./site.ts";

/** What a person has not looked at: marked and counted in the list, until they look at it. */
let site: Site;
let organizationId: string;
/** Ada Lovelace, who asks for the sessions, and her client. */
let ada: { readonly userId: string; readonly key: string };
let client: Client;

beforeAll(async () => {
  site = await openSite();
  organizationId = await findDefaultOrganization(site.offstage.database);
  ada = await addPerson(site.offstage.database, organizationId, { name: "Ada Lovelace" });
  client = createClient({ baseUrl: site.offstage.url, key: ada.key });
});
beforeEach(() => client.session.markAllRead());
afterEach(() => site.requireQuiet());
afterAll(() => site?.close());

/** A session of Ada's that has just ended. @returns its id */
const ended = (title: string): Promise<string> =>
  storeSession(site.offstage.database, organizationId, {
    title,
    status: "completed",
    requestedBy: ada.userId,
    minutesAgo: 2,
    minutes: 2,
  });

/** A draft of Ada's, which ends at once when it is cancelled. @returns its id */
const draft = async (title: string): Promise<string> =>
  (await client.session.create({ prompt: title, queueRightAway: false })).id;

/** Opens the list of sessions as Ada. */
async function home(options: Parameters<Site["signedIn"]>[0] = {}): Promise<Page> {
  const page = await site.signedIn({ key: ada.key, ...options });
  await page.goto("/");
  await page.getByRole("main").getByRole("list").first().waitFor();
  return page;
}

/** What a page asked the server to mark as looked at. */
function marksOf(page: Page): string[] {
  const marks: string[] = [];
  page.on("request", (request) => {
    const { pathname } = new URL(request.url());
    if (/^\/session\/(?:read-all|[^/]+\/read)$/u.test(pathname)) marks.push(pathname);
  });
  return marks;
}

/** Has the page believe that it is seen, or that another tab lies over it. */
const show = (page: Page, isShown: boolean): Promise<void> =>
  page.evaluate(`
    Object.defineProperty(document, "hidden", { configurable: true, value: ${!isShown} });
    Object.defineProperty(document, "visibilityState", { configurable: true, value: "${isShown ? "visible" : "hidden"}" });
    document.dispatchEvent(new Event("visibilitychange", { bubbles: true }));
  `);

/** Waits until the page has drawn what it knows, and done what follows from it. */
const untilDrawn = (page: Page): Promise<void> =>
  page.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(done))))");

const unreadRows = (page: Page) => page.locator("[data-session]").filter({ hasText: "unread:" });

test("a session that ends while its person is elsewhere is marked and counted, until they open it in whichever tab", async () => {
  const id = await draft("Count the narwhals");
  const list = await home();
  await list.getByRole("link", { name: "Count the narwhals", exact: true }).waitFor();
  expect(await list.title()).toBe("Sessions · Offstage");
  expect(await list.getByText("unread", { exact: false }).count()).toBe(0);

  await client.session.cancel(id);
  await list.getByRole("link", { name: "unread: Count the narwhals" }).waitFor();
  await list.getByText("1 unread", { exact: true }).waitFor();
  await expect.poll(() => list.title()).toBe("(1) Sessions · Offstage");
  expect(await accessibilityProblems(list)).toEqual([]);

  // What changes of it leaves the mark.
  const { database } = site.offstage;
  await database.pool.query("update session set spent_usd = 7.25 where id = $1", [id]);
  database.notify("offstage_event", id);
  await list.locator("[data-session]").filter({ hasText: "$7.25" }).waitFor();
  expect(await unreadRows(list).count()).toBe(1);

  const tab = await list.context().newPage();
  const marks = marksOf(tab);
  await tab.goto(`/sessions/${id}`);
  await list.getByRole("link", { name: "Count the narwhals", exact: true }).waitFor();
  await list.getByText("1 unread", { exact: true }).waitFor({ state: "detached" });
  await expect.poll(() => list.title()).toBe("Sessions · Offstage");
  expect(marks).toEqual([`/session/${id}/read`]);
  expect(await client.session.unread()).toEqual({ count: 0, more: false });
  await tab.getByRole("navigation").getByRole("link", { name: "Sessions" }).click();
  await tab.getByRole("link", { name: "Count the narwhals", exact: true }).waitFor();
  expect(await unreadRows(tab).count()).toBe(0);
});

test("a session that ends while its page is open is looked at when the page is seen, and not before", async () => {
  const [seen, hidden] = [await draft("Count what is seen"), await draft("Count what is hidden")];
  const page = await site.signedIn({ key: ada.key });
  const marks = marksOf(page);
  await page.goto(`/sessions/${seen}`);
  await page.getByRole("heading", { level: 1, name: "Count what is seen" }).waitFor();
  expect(marks).toEqual([]);
  await client.session.cancel(seen);
  const read = `/session/${seen}/read`;
  await expect.poll(() => marks).toEqual([read]);
  // A follow-up has an end of its own.
  await client.session.message(seen, { message: "say more" });
  await client.session.cancel(seen);
  await show(page, true);
  await expect.poll(() => marks).toEqual([read, read]);

  await page.goto(`/sessions/${hidden}`);
  await page.getByRole("heading", { level: 1, name: "Count what is hidden" }).waitFor();
  await show(page, false);
  await client.session.cancel(hidden);
  await page.getByRole("main").getByText("Cancelled").first().waitFor();
  await untilDrawn(page);
  expect(marks).toEqual([read, read]);
  expect(await client.session.unread()).toEqual({ count: 1, more: false });
  await show(page, true);
  await expect.poll(() => marks).toEqual([read, read, `/session/${hidden}/read`]);
  await expect.poll(() => client.session.unread()).toEqual({ count: 0, more: false });
});

test("keys move to what is unread, and all is marked as read by a key or a button, or is said why not", async () => {
  await ended("Paint the walrus");
  await ended("Feed the walrus");
  const page = await home();
  await page.getByText("2 unread", { exact: true }).waitFor();
  await expect.poll(() => unreadRows(page).count()).toBe(2);
  const focused = () => page.evaluate<string>("document.activeElement?.textContent ?? ''");
  await page.keyboard.press("i");
  await expect.poll(focused).toContain("Feed the walrus");
  await page.keyboard.press("i");
  await expect.poll(focused).toContain("Paint the walrus");
  await page.keyboard.press("i");
  await expect.poll(focused).toContain("Feed the walrus");
  await page.keyboard.press("?");
  const help = page.getByRole("dialog", { name: "Keyboard shortcuts" });
  await help.getByText("Next unread session").waitFor();
  await help.getByText("Mark all as read").waitFor();
  await page.keyboard.press("Escape");
  await help.waitFor({ state: "detached" });

  await page.route("**/session/read-all", (route) => route.fulfill({ status: 503, json: { error: "not today" } }));
  const button = page.getByRole("button", { name: "Mark all as read" });
  await button.click();
  await page.getByText("not today").waitFor();
  expect(await unreadRows(page).count()).toBe(2);
  await page.unroute("**/session/read-all");
  await button.focus();
  await page.keyboard.press("Enter");
  await page.getByText("All marked as read").waitFor();
  await button.waitFor({ state: "detached" });
  expect(await unreadRows(page).count()).toBe(0);
  expect(await page.locator(":focus").getAttribute("id")).toBe("main");
  expect(await client.session.unread()).toEqual({ count: 0, more: false });
  await page.keyboard.press("i");
  await page.getByText("Nothing is unread").waitFor();

  await ended("Wash the walrus");
  await page.reload();
  await page.getByText("1 unread", { exact: true }).waitFor();
  await page.keyboard.press("Shift+M");
  await page.getByText("All marked as read").waitFor();
  await expect.poll(() => unreadRows(page).count()).toBe(0);
});

test("the list is narrowed to what is unread by its number or a key, and loses what is looked at", async () => {
  await client.session.markAllRead();
  await ended("Weigh the walrus");
  const measured = await ended("Measure the walrus");
  await client.session.markRead(await ended("Forget the walrus"));
  const page = await home();
  const rows = page.locator("[data-session]");
  await page.getByRole("link", { name: "Forget the walrus" }).waitFor();
  const only = page.getByRole("button", { name: "2 unread" });
  expect(await only.getAttribute("aria-pressed")).toBe("false");
  await only.focus();
  await page.keyboard.press("Enter");
  await expect.poll(() => rows.count()).toBe(2);
  expect(new URL(page.url()).search).toBe("?unread=true");
  expect(await only.getAttribute("aria-pressed")).toBe("true");
  expect(await accessibilityProblems(page)).toEqual([]);
  await page.reload();
  await expect.poll(() => rows.count()).toBe(2);
  const tab = await page.context().newPage();
  await tab.goto(`/sessions/${measured}`);
  await page.getByRole("button", { name: "1 unread" }).waitFor();
  await expect.poll(() => rows.allTextContents()).toEqual([expect.stringContaining("Weigh the walrus")]);
  await tab.close();
  await page.keyboard.press("Shift+I");
  await page.getByRole("link", { name: "Forget the walrus" }).waitFor();
  expect(new URL(page.url()).search).toBe("");
  await page.keyboard.press("Shift+I");
  await expect.poll(() => rows.count()).toBe(1);
  await page.keyboard.press("Shift+M");
  await page.getByText("Nothing is unread").waitFor();
  expect(await accessibilityProblems(page)).toEqual([]);
  await page.getByRole("button", { name: "Clear the filters" }).click();
  await page.getByRole("link", { name: "Weigh the walrus" }).waitFor();
});

test("a reader by a link, another person, and a key without an owner have no marks and set none", async () => {
  const id = await ended("Hide the walrus");
  const { url } = await site.client.session.share(id);
  const grace = await addPerson(site.offstage.database, organizationId, { name: "Grace Hopper" });
  const visits = [
    { page: await site.stranger(), path: url },
    { page: await site.signedIn({ key: grace.key }), path: `/sessions/${id}` },
    { page: await site.signedIn(), path: `/sessions/${id}` },
  ];
  for (const { page, path } of visits) {
    const marks = marksOf(page);
    await page.goto(path);
    await page.getByRole("heading", { level: 1, name: "Hide the walrus" }).waitFor();
    await page.getByRole("tab", { name: "Progress" }).waitFor();
    await untilDrawn(page);
    expect(marks).toEqual([]);
  }
  expect(await client.session.unread()).toEqual({ count: 1, more: false });

  const nobody = await site.signedIn();
  const asked: string[] = [];
  nobody.on("request", (request) => asked.push(new URL(request.url()).pathname));
  await nobody.goto("/");
  await nobody.getByRole("link", { name: "Hide the walrus", exact: true }).waitFor();
  await nobody.keyboard.press("?");
  const help = nobody.getByRole("dialog", { name: "Keyboard shortcuts" });
  await help.getByText("Next session").waitFor();
  expect(await help.getByText("Next unread session").count()).toBe(0);
  expect(asked).toContain("/me");
  expect(asked).not.toContain("/session/unread");
});

test("on a phone, in German and in the dark, it fits and says the same", async () => {
  await ended("Das Walross über die Maßen gründlich waschen, trocknen, bürsten und wieder in sein Becken bringen");
  const page = await home({ locale: "de", colorScheme: "dark", viewport: { width: 390, height: 844 } });
  await page.getByText("1 ungelesen", { exact: true }).waitFor();
  await page.getByRole("button", { name: "Alle als gelesen markieren" }).waitFor();
  await page.getByRole("link", { name: "ungelesen: Das Walross" }).waitFor();
  expect(await scrollsSideways(page)).toBe(false);
  expect(await accessibilityProblems(page)).toEqual([]);
});
