import type { Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { waitFor } from "../wait-for.ts";
import { adminKey } from "../world.ts";
import { accessibilityProblems, scrollsSideways } from "./browser.ts";
import { openSite, type Site } from "./site.ts";

let site: Site;
/** Ids of the repositories `acme/shop` and `acme/docs`. */
const repositories: Record<string, string> = {};

beforeAll(async () => {
  site = await openSite();
  await addWork("shop", "2031-03-03", "basic:scripted", "merged");
  await addWork("shop", "2031-03-10", "basic:other", "open");
  await addWork("docs", "2031-03-04", "basic:other", null);
  await waitFor(
    async () => (await site.call(`/insight/figures?${time}`)).total.costUsd === 7.5,
    "the sessions are counted",
  );
});
afterEach(() => site.requireQuiet());
afterAll(() => site?.close());

const time = "from=2031-03-03&to=2031-03-16";
const address = (more = ""): string => `/insight?${time}${more}`;

/** A session as it stands once it is over, with its pull request and what its model used. */
async function addWork(repository: string, day: string, agent: string, state: "merged" | "open" | null): Promise<void> {
  const { pool } = site.offstage.database;
  const url = `https://git.example.com/acme/${repository}`;
  const { id, organizationId } = await site.call("/session/create", {
    prompt: "Work",
    agent,
    repositories: [url],
    queueRightAway: false,
  });
  const parts = await pool.query<{ repository_id: string }>(
    "select repository_id from session_repository where session_id = $1",
    [id],
  );
  const repositoryId = parts.rows[0]?.repository_id ?? "";
  repositories[repository] = repositoryId;
  await pool.query(
    `update session set status = $2, created_at = $3::timestamptz, finished_at = $3::timestamptz + interval '1 hour', queue_wait_ms = 20000
     where id = $1`,
    [id, state === null ? "failed" : "completed", `${day}T12:00:00Z`],
  );
  if (state !== null) {
    await pool.query(
      `insert into pull_request (id, organization_id, session_id, repository_id, head, target, number, url, created_at, state, closed_at)
       values (gen_random_uuid(), $1, $2::uuid, $3, $2::text, 'main', 1, '', $4::timestamptz, $5, $4::timestamptz + interval '2 hours')`,
      [organizationId, id, repositoryId, `${day}T12:10:00Z`, state],
    );
  }
  await pool.query(
    `insert into session_usage (session_id, organization_id, day, provider, model, input_tokens, output_tokens, cache_read_tokens,
       cache_write_tokens, reasoning_tokens, cost_usd) values ($1, $2, $3, 'p', 'large', 12000, 800, 0, 0, 0, 2.5)`,
    [id, organizationId, day],
  );
}

test("if there was nothing, the page says what will be here", async () => {
  const page = await site.signedIn();
  await page.goto("/");
  await page.getByRole("link", { name: "Insight" }).click();
  await page.getByText("Nothing happened in this time").waitFor();
  expect(new URL(page.url()).pathname).toBe("/insight");
  expect(await accessibilityProblems(page)).toEqual([]);
});

const total = (page: Page, name: string) =>
  page
    .locator("dl > div")
    .filter({ has: page.getByText(name, { exact: true }) })
    .locator("dd");

test("what came of sessions stands in figures, plots, tables and a file", async () => {
  const page = await site.signedIn();
  await page.goto(address());
  await expect.poll(() => total(page, "Sessions").textContent()).toBe("3Failed: 1");
  expect(await total(page, "Share merged").textContent()).toBe("50%1 / 2");
  expect(await total(page, "Cost per merge").textContent()).toBe("$7.50");
  await expect.poll(() => page.locator("figure canvas").count()).toBe(8);
  expect(await accessibilityProblems(page)).toEqual([]);

  const cost = page.locator("figure").filter({ hasText: "Cost of each that was merged" });
  await cost.getByText("Table", { exact: false }).click();
  await cost.getByRole("row", { name: "Mar 3, 2031 $2.50" }).waitFor();
  await cost.getByRole("row", { name: "All $7.50" }).waitFor();
  expect(await accessibilityProblems(page)).toEqual([]);
  const href = await cost.getByRole("link", { name: "CSV" }).getAttribute("href");
  const file = await page.request.get(href ?? "");
  expect([file.status(), file.headers()["content-type"]]).toEqual([200, "text/csv; charset=utf-8"]);
  expect((await file.text()).split("\r\n")[1]).toMatch(/^"2031-03-03",1,1,0,/u);
});

test("the values of a period show under the pointer", async () => {
  const page = await site.signedIn();
  await page.goto(address("&by=week"));
  const sessions = page.locator("figure").first();
  const canvas = sessions.locator("canvas");
  await canvas.waitFor();
  // What lies over the canvas takes the pointer.
  await sessions.locator(".u-over").hover({ position: { x: 60, y: 60 } });
  await sessions.getByText("Week of Mar 3, 2031").waitFor();
  await page.getByRole("heading", { name: "Insight" }).hover();
  await expect.poll(() => sessions.getByText("Week of").count()).toBe(0);
});

test("it is narrowed and grouped, which the address keeps", async () => {
  const page = await site.signedIn();
  await page.goto(address());
  await page.getByLabel("Repository", { exact: true }).selectOption({ value: repositories["shop"] ?? "" });
  await expect.poll(() => total(page, "Sessions").textContent()).toBe("2Failed: 0");
  await page.getByLabel("Group").selectOption("By agent");
  const groups = page.getByRole("region", { name: "By agent" }).getByRole("row");
  await groups.filter({ hasText: "basic:other" }).waitFor();
  expect(await groups.count()).toBe(3);
  await page.reload();
  await groups.filter({ hasText: "basic:other" }).getByRole("button").click();
  await expect.poll(() => total(page, "Sessions").textContent()).toBe("1Failed: 0");
  await page.waitForURL(/key=basic/u);
  await page.getByRole("button", { name: "Only basic:other" }).click();
  await expect.poll(() => total(page, "Sessions").textContent()).toBe("2Failed: 0");
  await page.getByLabel("Period").selectOption("Last 7 days");
  await page.waitForURL(/days=7/u);
  await page.getByLabel("Period").selectOption("Other days");
  await page.getByLabel("From", { exact: true }).fill("2031-03-01");
  await page.getByLabel("To", { exact: true }).fill("2031-03-16");
  await page.waitForURL(/from=2031-03-01/u);
  await expect.poll(() => total(page, "Sessions").textContent()).toBe("2Failed: 0");
});

test("what can't be shown is said, and comes back", async () => {
  const page = await site.signedIn();
  await page.goto("/insight?from=2031-03-03&to=2031-03-01");
  await page.getByRole("alert").getByText("must not be after the last day").waitFor();
  await page.getByRole("button", { name: "Try again" }).waitFor();
  expect(await accessibilityProblems(page)).toEqual([]);
  await page.getByLabel("To", { exact: true }).fill("2031-03-16");
  await expect.poll(() => total(page, "Sessions").textContent()).toBe("3Failed: 1");
});

test("the keyboard, the palette and German lead there", async () => {
  const page = await site.signedIn({ locale: "de-DE" });
  await page.goto("/ledger");
  await page.locator("html[lang=de]").waitFor();
  await page.getByRole("link", { name: "Auswertung" }).waitFor();
  await page.keyboard.press("g");
  await page.keyboard.press("i");
  await page.getByRole("heading", { name: "Auswertung" }).waitFor();
  await page.goto("/");
  await page.getByRole("link", { name: "Auswertung" }).waitFor();
  await page.keyboard.press("Control+k");
  await page.getByRole("dialog").getByRole("combobox").fill("Auswert");
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { name: "Auswertung" }).waitFor();
});

test("a viewer sees it all", async () => {
  const { key } = await site.call("/key/create", { name: "viewer", scopes: ["read"] });
  expect(key).not.toBe(adminKey);
  const page = await site.signedIn({ key });
  await page.goto(address("&group=person"));
  await expect.poll(() => total(page, "Sessions").textContent()).toBe("3Failed: 1");
});

for (const colorScheme of ["light", "dark"] as const) {
  for (const width of [360, 1_280]) {
    test(`axe finds nothing and nothing sticks out in ${colorScheme} at ${width} pixels`, async () => {
      const page = await site.signedIn({ colorScheme, viewport: { width, height: 800 } });
      await page.goto(address("&group=repository&by=week"));
      await expect.poll(() => page.locator("figure canvas").count()).toBe(8);
      await page.locator("summary").first().click();
      await page
        .getByRole("row", { name: /^Week of/u })
        .first()
        .waitFor();
      expect(await accessibilityProblems(page)).toEqual([]);
      expect(await scrollsSideways(page)).toBe(false);
    });
  }
}
