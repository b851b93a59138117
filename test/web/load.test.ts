import type { Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { accessibilityProblems } from "./browser.ts";
import { manyEvents, manyFiles } from "./content/events.ts";
import { storeSession } from "./content/sessions.ts";
import { openSite, type Site } from "./site.ts";

/** Pages with as much in them as large organizations have: what counts is how much is drawn, and how often. */
let site: Site;
let organizationId: string;

beforeAll(async () => {
  site = await openSite();
  organizationId = (await site.client.me()).orgId ?? "";
});
afterEach(() => site.requireQuiet());
afterAll(() => site?.close());

const nodes = (page: Page): Promise<number> => page.evaluate<number>("document.querySelectorAll('*').length");

/** Counts the changes of what a page has drawn, from now on. @returns a function that tells how many there were since it was last asked */
async function countChanges(page: Page, selector: string): Promise<() => Promise<number>> {
  await page.evaluate(`{
    window.changes = 0;
    new MutationObserver((all) => { window.changes += all.length; }).observe(document.querySelector(${JSON.stringify(selector)}),
      { subtree: true, childList: true, characterData: true, attributes: true });
  }`);
  return () => page.evaluate<number>("{ const so = window.changes; window.changes = 0; so }");
}

/** Counts how often rows are drawn, from now on: each says how long ago its session was asked for; headings speak of days. */
async function countDrawn(page: Page): Promise<() => Promise<number>> {
  await page.evaluate(`{
    window.drawn = 0;
    const { prototype } = Intl.RelativeTimeFormat;
    const { format } = prototype;
    prototype.format = function (...given) { window.drawn += given[1] === "day" ? 0 : 1; return format.apply(this, given); };
  }`);
  return () => page.evaluate<number>("{ const so = window.drawn; window.drawn = 0; so }");
}

test("ten thousand events are a page of few nodes, at its end at once, and whole as one scrolls", async () => {
  const id = await storeSession(site.offstage.database, organizationId, {
    title: "Work for a long time",
    status: "completed",
    events: manyEvents(10_000),
  });
  const page = await site.signedIn({ viewport: { width: 1_440, height: 900 } });
  await page.goto(`/sessions/${id}`);
  await page.getByText("Pull request #99 opened").waitFor();
  expect(await nodes(page)).toBeLessThan(3_000);
  // While rows are still measured, which moves the list, and the end is followed.
  await page.keyboard.press("g");
  await page.keyboard.press("g");
  await page.getByText("Looking at part 0:").waitFor();
  await page.getByText("Work for a long time").nth(1).waitFor();
  expect(await page.evaluate<number>("scrollY")).toBe(0);
  expect(await nodes(page)).toBeLessThan(3_000);
  await page.evaluate("scrollTo(0, document.documentElement.scrollHeight / 2)");
  await page
    .getByText(/^Looking at part (?:5|6)\d\d:/u)
    .first()
    .waitFor();
  expect(await nodes(page)).toBeLessThan(3_000);
  expect(await accessibilityProblems(page)).toEqual([]);
});

test("a running session of ten thousand events draws anew only what an event is about", async () => {
  const id = await storeSession(site.offstage.database, organizationId, {
    title: "Work for ever",
    status: "running",
    events: manyEvents(10_000).filter(({ type }) => type !== "session.status"),
  });
  const page = await site.signedIn({ viewport: { width: 1_440, height: 900 } });
  await page.goto(`/sessions/${id}`);
  await page.getByText("Looking at part 12").last().waitFor();
  await page.getByText("At work").waitFor();
  const changes = await countChanges(page, "ol[aria-label=Conversation] li:nth-child(3)");
  await changes();
  const { pool } = site.offstage.database;
  await pool.query(
    `with counted as (update session set last_event = last_event + 1 where id = $1 returning last_event)
     insert into event (session_id, seq, type, data) select $1, last_event, 'agent.message', $2 from counted`,
    [id, JSON.stringify({ part: "news", text: "This is new." })],
  );
  site.offstage.database.notify("offstage_event", id);
  await page.getByText("This is new.").waitFor();
  // A line that nothing happened to keeps its nodes and their texts; its place may change.
  expect(await changes()).toBeLessThanOrEqual(2);
});

test("five hundred changed files are a list of folded ones, of which those that are opened are drawn", async () => {
  const { id: repository } = await site.call("/repository/create", { url: "https://git.example/acme/large" });
  const id = await storeSession(site.offstage.database, organizationId, {
    title: "Rename everything",
    status: "completed",
    repositories: [repository],
    patch: manyFiles(500),
  });
  const page = await site.signedIn({ viewport: { width: 1_440, height: 900 } });
  await page.goto(`/sessions/${id}?tab=changes`);
  await page.getByText(/^500 files/u).waitFor();
  expect(await nodes(page)).toBeLessThan(3_000);
  await page.getByRole("button", { name: "Show all 500 files" }).click();
  await page.getByRole("region", { name: "src/module-19/file-499.ts" }).waitFor();
  expect(await nodes(page)).toBeLessThan(12_000);
  const drawn = () => page.locator("diffs-container").count();
  expect(await drawn()).toBe(0);
  await page.getByRole("button", { name: "Open all" }).click();
  await page.getByText("export const answer0 ").first().waitFor();
  // Those that are far away are not drawn until the user scrolls near.
  expect(await drawn()).toBeLessThan(60);
  await page.getByLabel("Find in the changes").fill("answer499 ");
  await page.getByText("1 file has it").waitFor();
  await page.getByText("export const answer499 ").first().waitFor();
  expect(await accessibilityProblems(page)).toEqual([]);
});

test("a thousand sessions are a list of few nodes, of which what changes is drawn anew", async () => {
  const { pool } = site.offstage.database;
  await pool.query(
    `insert into session (id, organization_id, title, description, status, branch_name, created_at, finished_at)
     select gen_random_uuid(), $1, 'Session ' || n, 'x', 'completed', 'b', now() - n * interval '40 days' / 1000, now()
     from generate_series(1, 1000) n`,
    [organizationId],
  );
  const page = await site.signedIn({ viewport: { width: 1_440, height: 900 } });
  await page.goto("/");
  await page.getByRole("link", { name: "Session 1", exact: true }).waitFor();
  const last = page.getByRole("link", { name: "Session 1000", exact: true });
  await expect
    .poll(async () => {
      await page.evaluate("scrollTo(0, document.documentElement.scrollHeight)");
      return last.count();
    })
    .toBe(1);
  expect(await nodes(page)).toBeLessThan(2_500);
  await page.evaluate("scrollTo(0, 0)");
  await page.getByRole("link", { name: "Session 1", exact: true }).waitFor();
  expect(await nodes(page)).toBeLessThan(2_500);
  const drawn = await countDrawn(page);
  const { sessions } = await site.client.session.search("Session 2", { limit: 100 });
  const { id } = sessions.find(({ title }) => title === "Session 2") ?? { id: "" };
  // The list is read again, since a label may move it.
  await site.client.session.labels(id, { add: ["seen"] });
  await page.getByRole("list", { name: "Sessions" }).getByText("seen").waitFor();
  expect(await drawn()).toBeLessThanOrEqual(3);
  // The count counts: another list is drawn.
  await page.getByLabel("Status").selectOption("Completed");
  await expect.poll(drawn).toBeGreaterThan(10);
});

test("an answer that comes late takes away nothing that was loaded meanwhile", async () => {
  const { pool } = site.offstage.database;
  await pool.query(
    `with made as (
       insert into session (id, organization_id, title, description, status, branch_name, created_at, finished_at)
       select gen_random_uuid(), $1, 'Older ' || n, 'x', 'completed', 'b', now() - n * interval '1 hour', now()
       from generate_series(1, 150) n returning id, organization_id, created_at)
     insert into session_label (session_id, organization_id, label, session_created_at)
     select id, organization_id, 'older', created_at from made`,
    [organizationId],
  );
  const page = await site.signedIn({ viewport: { width: 1_440, height: 900 } });
  await page.goto("/?label=older");
  await page.getByRole("link", { name: "Older 1", exact: true }).waitFor();
  const answer = Promise.withResolvers<void>();
  const asked: string[] = [];
  const isNewest = (url: string): boolean => url.includes("limit=40") && !url.includes("cursor=");
  page.on("request", (request) => {
    const cursor = new URL(request.url()).searchParams.get("cursor");
    if (cursor !== null) asked.push(cursor);
  });
  await page.route("**/session/list?*", async (route) => {
    if (isNewest(route.request().url())) await answer.promise;
    await route.continue();
  });
  const reading = page.waitForRequest((request) => isNewest(request.url()));
  const { sessions } = await site.client.session.list({ label: "older", limit: 1 });
  await site.client.session.labels(sessions[0]?.id ?? "", { add: ["seen"] });
  await reading;
  await expect
    .poll(async () => {
      await page.evaluate("scrollTo(0, document.documentElement.scrollHeight)");
      return page.getByRole("link", { name: "Older 150", exact: true }).count();
    })
    .toBe(1);
  const answered = page.waitForResponse((response) => isNewest(response.url()));
  answer.resolve();
  await answered;
  await page.evaluate("scrollTo(0, 0)");
  await page.getByRole("list", { name: "Sessions" }).getByText("seen").waitFor();
  await page.evaluate("scrollTo(0, document.documentElement.scrollHeight)");
  await page.getByRole("link", { name: "Older 150", exact: true }).waitFor();
  // None was asked for again.
  expect(new Set(asked).size).toBe(asked.length);
});
