import type { Page } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { waitFor } from "../wait-for.ts";
import { adminKey } from "../world.ts";
import { accessibilityProblems, scrollsSideways } from "./browser.ts";
import { openSite, type Site } from "./site.ts";

let site: Site;
let count = 0;

beforeAll(async () => {
  site = await openSite();
});

afterAll(() => site?.close());

const entries = (page: Page) => page.getByRole("list", { name: "Entries" });
const rows = (page: Page) => entries(page).getByRole("listitem");

async function createAutomation(name: string): Promise<{ readonly id: string; readonly macro: string }> {
  return site.call("/automation/create", {
    name,
    macro: `automation-${(count += 1)}`,
    instructions: "say {{ event.word }}",
  });
}

/** Triggers, and waits until that has ended. @returns the entry's id */
async function trigger(macro: string, event: unknown, idempotencyKey?: string): Promise<string> {
  const response = await fetch(`${site.offstage.url}/automation/${macro}/trigger`, {
    method: "POST",
    headers: {
      Authorization: `Bearer ${adminKey}`,
      "Content-Type": "application/json",
      ...(idempotencyKey !== undefined && { "Idempotency-Key": idempotencyKey }),
    },
    body: JSON.stringify(event),
  });
  expect(response.status).toBe(200);
  const { id } = (await response.json()) as { id: string };
  await waitFor(async () => (await site.call(`/ledger/${id}`)).outcome !== null, "the trigger has ended");
  return id;
}

test("if nothing was triggered, the ledger says what will stand there", async () => {
  const page = await site.signedIn();
  await page.goto("/");
  await page.getByRole("link", { name: "Ledger" }).click();
  await page.getByText("No triggers yet.").waitFor();
  expect(await accessibilityProblems(page)).toEqual([]);
});

test("each trigger shows how it ended and leads to its session", async () => {
  const { macro } = await createAutomation("Answer a question");
  const page = await site.signedIn();
  await page.goto("/ledger");
  await trigger(macro, { word: "an-answer" });
  await trigger(macro, { other: "x" });
  const failed = rows(page).filter({ hasText: "Failed" });
  await failed.getByText("event.word").waitFor();
  expect(await failed.getByRole("link", { name: "Session" }).count()).toBe(0);
  const fired = rows(page).filter({ hasText: "Fired" });
  await fired.getByRole("link", { name: "Answer a question" }).waitFor();
  await fired.getByRole("link", { name: "Session" }).click();
  await page.getByRole("list", { name: "Conversation" }).getByText("an-answer", { exact: true }).waitFor();
});

test("a duplicate leads to the first one, and that shows its job", async () => {
  const { id: automation, macro } = await createAutomation("Told twice");
  const first = await trigger(macro, { word: "once" }, "the-same");
  await trigger(macro, { word: "once" }, "the-same");
  const page = await site.signedIn();
  await page.goto(`/ledger?automation=${automation}&outcome=duplicate`);
  const duplicate = rows(page).filter({ hasText: "Duplicate" });
  await duplicate.getByText("sent again under the same Idempotency-Key").waitFor();
  expect(await rows(page).count()).toBe(1);
  await duplicate.getByRole("link", { name: "The first one" }).click();
  await page.waitForURL(new RegExp(`entry=${first}`, "u"));
  await page.getByRole("heading", { name: "Told twice" }).waitFor();
  await page.getByText(first).waitFor();
  await page.getByText("completed", { exact: true }).waitFor();
  expect(await accessibilityProblems(page)).toEqual([]);
  await page.getByRole("main").getByRole("link", { name: "Ledger" }).click();
  await entries(page).waitFor();
  await page.goto("/ledger?entry=00000000-0000-4000-8000-000000000000");
  await page.getByRole("alert").getByText("was not found").waitFor();
});

test("it is filtered by automation and outcome, which the address keeps", async () => {
  const { id, macro } = await createAutomation("One of many");
  await trigger(macro, { word: "a" });
  await trigger(macro, {});
  const page = await site.signedIn();
  await page.goto("/ledger");
  await page.getByLabel("Automation").selectOption("One of many");
  await expect.poll(() => rows(page).count()).toBe(2);
  await page.getByLabel("Outcome").selectOption("failed");
  await expect.poll(() => rows(page).count()).toBe(1);
  await page.reload();
  await rows(page).getByText("Failed").waitFor();
  await expect.poll(() => page.getByLabel("Automation").inputValue()).toBe(id);
  expect(await rows(page).count()).toBe(1);
  await page.getByLabel("Outcome").selectOption("missed");
  await page.getByText("Nothing matches this filter.").waitFor();
  await page.getByLabel("Automation").selectOption("All automations");
  await page.getByLabel("Outcome").selectOption("All outcomes");
  await page.waitForURL(`${site.offstage.url}/ledger`);
  await expect.poll(() => rows(page).count()).toBeGreaterThan(2);
});

test("an entry is replayed into one that leads back to it, and a refusal is said beside it", async () => {
  const { id: automation, macro } = await createAutomation("Done again");
  const id = await trigger(macro, { word: "again" });
  const page = await site.signedIn();
  await page.goto(`/ledger?automation=${automation}`);
  await page.getByRole("button", { name: "Replay Done again" }).click();
  await page.getByRole("link", { name: "Triggered again" }).waitFor();
  const replayed = rows(page).filter({ hasText: "Replay of an earlier one" });
  await replayed.getByText("Fired").waitFor();
  expect(await accessibilityProblems(page)).toEqual([]);
  await replayed.getByRole("link", { name: "Replay of an earlier one" }).click();
  await page.waitForURL(new RegExp(`entry=${id}`, "u"));
  await site.call(`/automation/${macro}/update`, { paused: true });
  await page.getByRole("button", { name: "Replay Done again" }).click();
  await page.getByRole("alert").getByText("is paused: resume it first").waitFor();
});

test("an event is replayed into a new entry, to which its link leads", async () => {
  const { rows: made } = await site.offstage.database.pool.query<{ id: string }>(
    `insert into arrival (id, organization_id, name, outcome, reason, payload)
     select gen_random_uuid(), id, 'issue.opened', 'filtered', 'nothing listens to it', '{}' from organization returning id`,
  );
  const id = made[0]?.id ?? "";
  const page = await site.signedIn();
  await page.goto(`/ledger?entry=${id}`);
  await page.getByRole("button", { name: /^Replay / }).click();
  await page.getByRole("link", { name: "Triggered again" }).click();
  await page.getByRole("link", { name: "Replay of an earlier one" }).click();
  await page.waitForURL(new RegExp(`entry=${id}`, "u"));
  expect(await page.getByRole("alert").count()).toBe(0);
});

test("what was dead-lettered says why, also once its automation was deleted", async () => {
  const { macro } = await createAutomation("Deleted since");
  const id = await trigger(macro, { word: "x" });
  await site.offstage.database.pool.query(
    "update job set status = 'failed', dead = true, session_id = null, error = 'the worker broke off 10 times' where id = $1",
    [id],
  );
  await site.call(`/automation/${macro}/delete`, {});
  const page = await site.signedIn();
  await page.goto("/ledger?outcome=dead-lettered");
  await rows(page).getByText("the worker broke off 10 times").waitFor();
  await rows(page).getByRole("link", { name: "An automation that was deleted" }).waitFor();
});

test("a long ledger comes in pages", async () => {
  const { id: automation, macro } = await createAutomation("Very often");
  const id = await trigger(macro, { word: "first" });
  await site.offstage.database.pool.query(
    `insert into arrival (id, organization_id, automation_id, outcome, reason, original_id)
     select gen_random_uuid(), organization_id, automation_id, 'duplicate', 'again', id
     from job, generate_series(1, 34) where id = $1`,
    [id],
  );
  const page = await site.signedIn();
  await page.goto(`/ledger?automation=${automation}`);
  await entries(page).waitFor();
  expect(await rows(page).count()).toBe(30);
  await page.getByRole("button", { name: "Show more" }).click();
  await expect.poll(() => rows(page).count()).toBe(35);
});

for (const colorScheme of ["light", "dark"] as const) {
  for (const width of [360, 1_280]) {
    test(`axe finds nothing and nothing sticks out in ${colorScheme} at ${width} pixels`, async () => {
      const { id: automation, macro } = await createAutomation(`An automation with a name ${"y".repeat(60)} ${width}`);
      const id = await trigger(macro, {});
      const page = await site.signedIn({ colorScheme, viewport: { width, height: 800 } });
      for (const path of ["/ledger", `/ledger?automation=${automation}`, `/ledger?entry=${id}`]) {
        await page.goto(path);
        await page.getByText("event.word").first().waitFor();
        expect(await accessibilityProblems(page)).toEqual([]);
        expect(await scrollsSideways(page)).toBe(false);
      }
    });
  }
}
