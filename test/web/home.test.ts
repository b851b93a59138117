import type { Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { inOtherClone } from "../other-clone.ts";
import { waitFor } from "../wait-for.ts";
import { untilOver } from "../world.ts";
import { accessibilityProblems } from "./browser.ts";
import { fillOrganization } from "./content/fill.ts";
import { openSite, type Site } from "./site.ts";

/** The list of all sessions, and the field that starts one. */
let site: Site;
let organizationId: string;

beforeAll(async () => {
  site = await openSite();
  organizationId = (await site.client.me()).orgId ?? "";
  // What is queued stays so: the place is taken by a session that no worker has.
  await site.client.organization.update({ maxRunningSessions: 1 });
  await fillOrganization(site.offstage.database, organizationId);
});
afterEach(() => site.requireQuiet());
afterAll(() => site?.close());

const rows = (page: Page, list: string) => page.getByRole("list", { name: list }).getByRole("listitem");

/** Holds back the answers to requests with such an address. @returns lets them go, and says how many there were */
async function heldAnswers(page: Page, address: RegExp): Promise<() => Promise<number>> {
  const { promise, resolve } = Promise.withResolvers<undefined>();
  let count = 0;
  let released = 0;
  await page.route(address, async (route) => {
    count += 1;
    await promise;
    await route.continue();
    released += 1;
  });
  return async () => {
    resolve(undefined);
    await expect.poll(() => released).toBe(count);
    return count;
  };
}

async function home(path = "/"): Promise<Page> {
  const page = await site.signedIn();
  await page.goto(path);
  await page.getByRole("list").first().waitFor();
  await rows(page, "Sessions").first().waitFor();
  return page;
}

test("sessions that need a person come first with the reason, then running ones with what they do, then those to be reviewed", async () => {
  const page = await home();
  const needs = rows(page, "Needs you");
  await needs.filter({ hasText: "the session's budget is used up" }).waitFor();
  await needs.filter({ hasText: "The forge refused the push" }).waitFor();
  await needs.filter({ hasText: "Pull request #901 collides with its target branch" }).waitFor();
  const work = rows(page, "At work");
  await work.filter({ hasText: "npm test -- cart" }).waitFor();
  await work.filter({ hasText: "Tried again in" }).waitFor();
  await rows(page, "For review").filter({ hasText: "Round the cart's total once" }).waitFor();
  // Each stands once.
  const all = await page
    .locator("[data-session]")
    .evaluateAll((found) =>
      found.map((element) => (element as unknown as { dataset: { session: string } }).dataset.session),
    );
  expect(new Set(all).size).toBe(all.length);
  expect(await accessibilityProblems(page)).toEqual([]);
});

test("the list is narrowed by repository, automation and who asked, which the address keeps", async () => {
  const page = await home();
  await page
    .getByRole("combobox", { name: "Repository" })
    .selectOption("acme/documentation-of-everything-we-ever-built");
  await page.waitForURL(/repository=/u);
  await expect.poll(() => page.locator("[data-session]").count()).toBe(2);
  await page.getByRole("combobox", { name: "Repository" }).selectOption("Every repository");
  await page.getByRole("combobox", { name: "Automation" }).selectOption("nightly-dependencies");
  await expect.poll(() => page.locator("[data-session]").count()).toBe(2);
  await page.reload();
  await expect.poll(() => page.locator("[data-session]").count()).toBe(2);
  await page.getByRole("combobox", { name: "Automation" }).selectOption("Every automation");
  await page.getByRole("combobox", { name: "Asked by" }).selectOption("Ada Lovelace");
  await page.waitForURL(/by=/u);
  await page.getByText("Draft: split the monolith").waitFor();
  await page.getByRole("combobox", { name: "Asked by" }).selectOption("نور الهدى");
  await page.getByText("Draft: split the monolith").waitFor({ state: "detached" });
  await rows(page, "For review").or(page.locator("[data-session]")).first().waitFor();
  await page.getByRole("button", { name: "Clear the filters" }).click();
  await rows(page, "For review").first().waitFor();
});

test("keys move through all groups, open a session, and select several, which are retried together", async () => {
  const page = await home();
  const focused = () => page.evaluate<string>("document.activeElement?.textContent ?? ''");
  await page.keyboard.press("j");
  await expect.poll(focused).toBe("Write the tests that the payment module never had");
  await page.keyboard.press("j");
  await expect.poll(focused).toMatch(/^Move the search/u);
  await page.keyboard.press("x");
  const bar = page.getByRole("toolbar", { name: "1 selected" });
  await bar.waitFor();
  expect(await accessibilityProblems(page)).toEqual([]);
  await bar.getByRole("button", { name: "Retry" }).click();
  await page.getByText("1 session changed").waitFor();
  await rows(page, "At work").filter({ hasText: "Move the search" }).waitFor();
  await page.keyboard.press("k");
  await page.keyboard.press("Enter");
  await page.waitForURL(/\/sessions\//u);
  // Its keys work once it is there.
  await page.getByRole("tab", { name: "Changes" }).waitFor();
  await page.keyboard.press("u");
  await page.waitForURL((url) => url.pathname === "/");
});

test("the list changes by itself as sessions do", async () => {
  const page = await home();
  const { id } = await site.client.session.create({ prompt: "Count the narwhals", queueRightAway: false });
  await rows(page, "Sessions").filter({ hasText: "Count the narwhals" }).waitFor();
  await site.client.session.queue(id);
  await rows(page, "At work").filter({ hasText: "Count the narwhals" }).waitFor();
  await expect.poll(() => rows(page, "Sessions").filter({ hasText: "Count the narwhals" }).count()).toBe(0);
  await site.client.session.delete((await site.client.session.cancel(id)).id);
  await expect.poll(() => page.getByText("Count the narwhals").count()).toBe(0);
});

test("a session is composed with a branch that the forge has, a file of it and a budget; without waiting, as a draft", async () => {
  const { url } = await site.forge.createRepository("acme", "composed", { "README.md": "# Before\n" });
  await inOtherClone(
    { forge: site.forge },
    url,
    "git checkout -qb release && mkdir src && echo x > src/checkout.ts && git add -A && git commit -qm R && git push -q origin release",
  );
  await site.call("/repository/create", { url });
  const page = await home();
  await page.getByLabel("What should be done?").fill("Look at ");
  await page.getByRole("button", { name: "Repository: No repository" }).click();
  const picker = page.getByRole("dialog", { name: "Repository" });
  await picker.getByRole("combobox").fill("composed");
  await picker.getByRole("option", { name: /acme\/composed/u }).waitFor();
  expect(await accessibilityProblems(page)).toEqual([]);
  await page.keyboard.press("Enter");
  // It names the default branch once the forge has said which that is.
  await page.getByRole("button", { name: /^Target branch: (?:Default branch|main)$/u }).click();
  await page.getByRole("combobox", { name: "Target branch" }).fill("rel");
  await page.getByRole("option", { name: "release", exact: true }).click();

  const prompt = page.getByLabel("What should be done?");
  await prompt.press("End");
  await page.keyboard.type("@check");
  await page.getByRole("option", { name: "src/checkout.ts" }).waitFor();
  expect(await accessibilityProblems(page)).toEqual([]);
  await page.keyboard.press("Enter");
  await expect.poll(() => prompt.inputValue()).toBe("Look at @src/checkout.ts ");
  await page.keyboard.type("and say why");
  await page.getByLabel("Budget in US dollars").fill("1,5");
  await page.reload();
  await page.getByRole("button", { name: "Target branch: release" }).waitFor();
  await page.getByRole("button", { name: "Save as a draft" }).click();
  await page.getByRole("heading", { name: "Look at @src/checkout.ts and say why" }).waitFor();
  const id = new URL(page.url()).pathname.split("/").at(-1) ?? "";
  expect(await site.client.session.get(id)).toMatchObject({
    status: "draft",
    prompt: "Look at @src/checkout.ts and say why",
    targetBranch: "release",
    budgetUsd: 1.5,
    repositories: [{ name: "acme/composed" }],
  });
  await page.goto("/");
  await page.getByRole("button", { name: "Repository: acme/composed" }).waitFor();
  expect(await page.getByLabel("What should be done?").inputValue()).toBe("");
});

test("Enter straight after typing takes what was typed, never the first of the list before, and starts no session", async () => {
  const { url } = await site.forge.createRepository("acme", "typed-fast", { "README.md": "# Before\n" });
  await inOtherClone(
    { forge: site.forge },
    url,
    "git push -q origin HEAD:refs/heads/domain HEAD:refs/heads/amain && echo x > a.txt && git add -A && git commit -qm A && git push -q origin HEAD",
  );
  await site.call("/repository/create", { url });
  const page = await home();
  const before = (await site.client.session.list({ limit: 100 })).sessions.length;
  await page.getByLabel("What should be done?").fill("Look at ");
  // Answers to what is typed come only when the test is done with the list that it is typed into.
  const release = await heldAnswers(page, /\?(?:.*&)?q=./u);

  await page.getByRole("button", { name: "Repository: No repository" }).click();
  const repositories = page.getByRole("dialog", { name: "Repository" });
  await repositories.getByRole("option", { name: /acme\/typed-fast/u }).waitFor();
  await repositories.getByRole("combobox").fill("nothing-has-this");
  await page.keyboard.press("Enter");
  await repositories.getByRole("combobox").fill("typed-fast");
  await page.keyboard.press("Enter");
  await page.getByRole("button", { name: "Repository: acme/typed-fast" }).waitFor();

  await page.getByRole("button", { name: "Target branch: Default branch" }).click();
  await page.getByRole("option", { name: "domain", exact: true }).waitFor();
  await page.getByRole("combobox", { name: "Target branch" }).fill("main");
  await page.keyboard.press("Enter");
  await page.getByRole("button", { name: "Target branch: main" }).waitFor();

  const prompt = page.getByLabel("What should be done?");
  await prompt.press("End");
  await page.keyboard.type("@");
  await page.getByRole("option", { name: "a.txt" }).waitFor();
  await page.keyboard.type("README");
  await page.keyboard.press("Enter");
  await expect.poll(() => prompt.inputValue()).toBe("Look at @README.md ");

  expect(await release()).toBeGreaterThan(1);
  expect((await site.client.session.list({ limit: 100 })).sessions).toHaveLength(before);

  // What was moved to is what Enter takes, also if an answer has put it elsewhere meanwhile.
  const late = Promise.withResolvers<void>();
  await page.route(/\/repository\/branches\?(?:.*&)?q=ain/u, async (route) => {
    await late.promise;
    await route.fulfill({ json: { branches: ["main", "domain", "amain"], complete: true } });
  });
  await page.getByRole("button", { name: "Target branch: main" }).click();
  await page.getByRole("combobox", { name: "Target branch" }).fill("ain");
  const offered = page.getByRole("dialog", { name: "Target branch" });
  const first = offered.getByRole("option").first();
  await first.getByText("amain", { exact: true }).waitFor();
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("ArrowUp");
  late.resolve();
  await first.getByText("main", { exact: true }).waitFor();
  expect(await offered.getByRole("option", { selected: true }).textContent()).toBe("amain");
  await page.keyboard.press("Enter");
  await page.getByRole("button", { name: "Target branch: amain" }).waitFor();
});

test("what is wrong with a session is said where it is written, and nothing is lost", async () => {
  const page = await home();
  await page.getByLabel("What should be done?").fill("Do it");
  const asked: string[] = [];
  page.on("request", (request) => asked.push(new URL(request.url()).pathname));
  const budget = page.getByLabel("Budget in US dollars");
  await budget.fill("five");
  // What is no amount is no budget: neither by the keyboard nor as a draft is it sent as if none were wanted.
  await page.getByLabel("What should be done?").press("Control+Enter");
  await budget.and(page.locator(":focus")).waitFor();
  await page.getByRole("button", { name: "Save as a draft" }).press("Enter");
  await budget.and(page.locator(":focus")).waitFor();
  expect(asked).not.toContain("/session/create");
  await budget.fill("99999999999");
  await page.getByRole("button", { name: "Start" }).click();
  await page.getByRole("alert").getByText("budgetUsd").waitFor();
  expect(await accessibilityProblems(page)).toEqual([]);
  expect(await page.getByLabel("What should be done?").inputValue()).toBe("Do it");
  await page.route("**/session/create", (route) => route.abort());
  await page.getByRole("button", { name: "Start" }).click();
  await page.getByText("The server can’t be reached.").waitFor();
});

test("what is written while a session is started is the next one, and who has left the page is not fetched back", async () => {
  const page = await home();
  let answer = Promise.withResolvers<void>();
  await page.route("**/session/create", async (route) => {
    await answer.promise;
    await route.continue();
  });
  const prompt = page.getByLabel("What should be done?");
  const start = async (): Promise<void> => {
    const asked = page.waitForRequest("**/session/create");
    await page.keyboard.press("Control+Enter");
    await asked;
  };
  await prompt.fill("say first");
  await start();
  await page.keyboard.type("\nsay second");
  answer.resolve();
  await page.getByRole("heading", { name: "say first" }).waitFor();
  await page.goto("/");
  await prompt.waitFor();
  expect(await prompt.inputValue()).toBe("say second");

  answer = Promise.withResolvers<void>();
  await prompt.focus();
  await start();
  await page.getByRole("link", { name: "Ledger" }).click();
  await page.getByRole("heading", { name: "Ledger" }).waitFor();
  const answered = page.waitForResponse("**/session/create");
  answer.resolve();
  await answered;
  await page.getByRole("link", { name: "Sessions", exact: true }).click();
  await rows(page, "At work").filter({ hasText: "say second" }).waitFor();
  expect(await prompt.inputValue()).toBe("");
  for (const { id, title } of (await site.client.session.list({ status: "queued" })).sessions)
    if (/^say (?:first|second)/u.test(title)) await site.client.session.cancel(id);
});

test("keys that are pressed twice at once start one session", async () => {
  const page = await home();
  await page.getByLabel("What should be done?").fill("say once alone");
  // Before anything is drawn, as when a page is busy.
  await page.evaluate(`{
    const enter = { key: "Enter", ctrlKey: true, bubbles: true, cancelable: true };
    for (let times = 0; times < 2; times += 1) document.querySelector("textarea").dispatchEvent(new KeyboardEvent("keydown", enter));
  }`);
  await page.getByRole("heading", { name: "say once alone" }).waitFor();
  const { sessions } = await site.client.session.list({ status: "queued" });
  const made = sessions.filter(({ title }) => title === "say once alone");
  expect(made).toHaveLength(1);
  for (const { id } of made) await site.client.session.cancel(id);
});

test("tabs have one draft: what one was opened with takes nothing back that another wrote", async () => {
  const page = await home();
  const other = await page.context().newPage();
  await other.goto("/");
  await other.getByLabel("What should be done?").fill("Half a thought");
  await expect.poll(() => page.getByLabel("What should be done?").inputValue()).toBe("Half a thought");
  await page.getByLabel("Budget in US dollars").fill("2");
  await other.reload();
  expect(await other.getByLabel("What should be done?").inputValue()).toBe("Half a thought");
  expect(await other.getByLabel("Budget in US dollars").inputValue()).toBe("2");
});

test("a list is narrowed by any of many repositories, and says so while its name is not known", async () => {
  const { pool } = site.offstage.database;
  await pool.query(
    `insert into repository (id, organization_id, name, url, address_key)
     select gen_random_uuid(), $1, 'many/' || lpad(n::text, 3, '0'), 'https://many.example/many/' || n, 'many.example/many/' || n
     from generate_series(1, 120) n`,
    [organizationId],
  );
  const page = await home();
  const select = page.getByRole("combobox", { name: "Repository" });
  for (const name of ["many/001", "many/120"]) {
    await select.selectOption(name);
    await page.getByText("Nothing matches these filters.").waitFor();
  }
  await pool.query("delete from repository where starts_with(name, 'many/')");
  await page.reload();
  await page.getByText("Nothing matches these filters.").waitFor();
  expect(await select.inputValue()).toBe(new URL(page.url()).searchParams.get("repository"));
});

test("the repositories of a new session go on at the end of their list, and are found on every page", async () => {
  const { pool } = site.offstage.database;
  await pool.query(
    `insert into repository (id, organization_id, name, url, address_key, created_at)
     select gen_random_uuid(), $1, 'many/' || lpad(n::text, 3, '0'), 'https://many.example/many/' || n, 'many.example/many/' || n,
       now() - n * interval '1 second'
     from generate_series(1, 230) n`,
    [organizationId],
  );
  try {
    const page = await home();
    await page.getByRole("button", { name: "Repository: No repository" }).click();
    const list = page.getByRole("listbox", { name: "Repository" });
    const last = list.getByRole("option", { name: "many/230" });
    await list.getByRole("option", { name: "many/050" }).waitFor();
    expect(await last.count()).toBe(0);
    // With the mouse, and with the keyboard: the one before the first is the last.
    await list.getByRole("option").last().scrollIntoViewIfNeeded();
    await list.getByRole("option", { name: "many/150" }).waitFor();
    await page.keyboard.press("ArrowUp");
    await last.waitFor();
    await page.reload();
    await page.getByRole("button", { name: "Repository: No repository" }).click();
    await page.keyboard.type("many/229");
    await list.getByRole("option", { name: "many/229" }).click();
    await page.getByRole("button", { name: "Repository: many/229" }).waitFor();
  } finally {
    await pool.query("delete from repository where starts_with(name, 'many/')");
  }
});

test("nothing found, and a list that can't be loaded, say so and how to go on", async () => {
  const page = await home();
  await page.getByLabel("Search sessions").fill("there is no such word");
  await page.getByText("No session has these words.").waitFor();
  expect(await accessibilityProblems(page)).toEqual([]);
  await page.route("**/session/list*", (route) => route.fulfill({ status: 403, json: { error: "not today" } }));
  await page.goto("/");
  await page.getByText("not today").waitFor();
  expect(await accessibilityProblems(page)).toEqual([]);
  const again = page.getByRole("button", { name: "Try again" });
  const asked = page.waitForRequest("**/session/list*");
  await again.click();
  await asked;
  await page.unroute("**/session/list*");
  // A session that changes has the page look again by itself, and the button may be gone by then.
  await waitFor(async () => {
    if ((await rows(page, "Sessions").count()) > 0) return true;
    await again.click({ timeout: 1_000 }).catch(() => undefined);
    return false;
  }, "the list is there");
});

test("the page of an organization without sessions says what happens here", async () => {
  const empty = await openSite();
  try {
    const page = await empty.signedIn();
    await page.goto("/");
    await page.getByText("Nothing has been asked yet").waitFor();
    expect(await accessibilityProblems(page)).toEqual([]);
    await page.getByLabel("What should be done?").fill("say hello");
    await page.keyboard.press("Control+Enter");
    await page.waitForURL(/\/sessions\//u);
    const id = new URL(page.url()).pathname.split("/").at(-1) ?? "";
    await waitFor(async () => (await empty.client.session.get(id)).status !== "draft", "it was queued");
    await untilOver(empty.client, id);
  } finally {
    await empty.close();
  }
});
