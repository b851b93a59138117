import type { Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { accessibilityProblems, scrollsSideways } from "./browser.ts";
import { message } from "./content/events.ts";
import { fillOrganization, type Filled } from "./content/fill.ts";
import { storeEvents } from "./content/sessions.ts";
import { openSite, type Site } from "./site.ts";

/** Links that show a session without a sign-in. */
let site: Site;
let filled: Filled;

beforeAll(async () => {
  site = await openSite();
  filled = await fillOrganization(site.offstage.database, (await site.client.me()).orgId ?? "");
});
afterEach(() => site.requireQuiet());
afterAll(() => site?.close());

async function choose(page: Page, name: string): Promise<void> {
  await page.getByRole("button", { name: "More", exact: true }).click();
  await page.getByRole("button", { name, exact: true }).click();
}

test("a user makes a link, a stranger reads the session by it, and it is revoked", async () => {
  const page = await site.signedIn({ viewport: { width: 1_440, height: 900 } });
  await page.goto(`/sessions/${filled.completed}`);
  await choose(page, "Share …");
  const dialog = page.getByRole("dialog", { name: "Links that show this session" });
  await dialog.getByText("There is no link.").waitFor();
  expect(await accessibilityProblems(page)).toEqual([]);
  await dialog.getByLabel("Show it for").selectOption("30 days");
  await dialog.getByRole("button", { name: "Make a link" }).click();
  const url = await dialog.getByLabel("The link", { exact: true }).inputValue();
  expect(url).toContain(`/shared/${filled.completed}#ofsh_`);
  expect(await accessibilityProblems(page)).toEqual([]);

  const stranger = await site.stranger({ viewport: { width: 1_440, height: 900 } });
  const asked: string[] = [];
  stranger.on("request", (request) => asked.push(new URL(request.url()).pathname));
  expect((await stranger.goto(url))?.status()).toBe(200);
  await stranger.getByRole("heading", { level: 1, name: "Round the cart's total once" }).waitFor();
  await stranger.getByRole("list", { name: "Conversation" }).getByText("rounds").first().waitFor();
  await stranger.getByRole("region", { name: "Changes in acme/shop" }).getByText("Math.round(exact)").waitFor();
  expect(await accessibilityProblems(stranger)).toEqual([]);
  expect(await stranger.getByRole("navigation").count()).toBe(0);
  for (const name of ["Send", "Retry", "Cancel", "Label", "Allow for acme/shop", "Sessions"])
    expect(
      await stranger
        .getByRole("button", { name })
        .or(stranger.getByRole("link", { name, exact: true }))
        .count(),
    ).toBe(0);
  await stranger.getByRole("tab", { name: "Progress" }).click();
  await stranger.getByRole("tab", { name: "Answers" }).waitFor({ state: "detached" });
  await stranger.getByRole("link", { name: "Skip to the content" }).press("Enter");
  expect(await stranger.locator(":focus").getAttribute("id")).toBe("main");
  await stranger.reload();
  await stranger.getByRole("tab", { name: "Progress", selected: true }).waitFor();
  await stranger.getByRole("button", { name: "More", exact: true }).click();
  const names = await stranger.locator("[popover]:popover-open button").allTextContents();
  expect(names).toEqual(["Download the patch", "Download the transcript"]);
  // Nothing was asked for that the link does not show.
  expect(
    asked.filter((path) => path.startsWith("/session/") && !path.startsWith(`/session/${filled.completed}`)),
  ).toEqual([]);
  expect(asked).not.toContain("/me");

  await dialog.getByRole("button", { name: "Done" }).click();
  await dialog.getByRole("list").getByText("used").waitFor();
  await dialog.getByRole("button", { name: "Revoke" }).click();
  await page.getByRole("alertdialog", { name: "Revoke the link?" }).getByRole("button", { name: "Revoke" }).click();
  await dialog.getByText("revoked").waitFor();
  await stranger.reload();
  await stranger.getByText("This link shows nothing").waitFor();
  // Another link, in the same tab: its address differs after the # alone.
  await stranger.goto((await site.client.session.share(filled.completed)).url);
  await stranger.getByRole("heading", { level: 1, name: "Round the cart's total once" }).waitFor();
  await stranger.goto(url);
  await stranger.getByText("This link shows nothing").waitFor();
  expect(new URL(stranger.url()).pathname).toBe(`/shared/${filled.completed}`);
  expect(await accessibilityProblems(stranger)).toEqual([]);
});

test("a session that is at work goes on before the stranger's eyes, on a phone too", async () => {
  const { url } = await site.client.session.share(filled.running);
  const stranger = await site.stranger({ viewport: { width: 360, height: 800 } });
  await stranger.goto(url);
  await stranger.getByText("At work").waitFor();
  expect(await scrollsSideways(stranger)).toBe(false);
  expect(await accessibilityProblems(stranger)).toEqual([]);
  const { database } = site.offstage;
  await storeEvents(database, filled.running, [message("own", "I go on before your eyes.")]);
  database.notify("offstage_event", filled.running);
  await stranger.getByText("I go on before your eyes.").waitFor();
});

test("an admin sees the links of all sessions in the settings, and ends one", async () => {
  const made = [await site.client.session.share(filled.running), await site.client.session.share(filled.failed)];
  const page = await site.signedIn({ viewport: { width: 390, height: 800 } });
  const asked: string[] = [];
  page.on("request", (request) => asked.push(new URL(request.url()).pathname));
  await page.goto("/settings");
  const list = page.getByRole("list", { name: "Links that show sessions" }).getByRole("listitem");
  const { title } = await site.client.session.get(filled.failed);
  const row = list.filter({ has: page.getByRole("link", { name: title }) }).filter({ hasText: "not used yet" });
  await row.getByText("ends").waitFor();
  // The list has the titles.
  expect(asked.filter((path) => path.startsWith("/session/"))).toEqual([]);
  expect(await accessibilityProblems(page)).toEqual([]);
  expect(await scrollsSideways(page)).toBe(false);
  await row.getByRole("button", { name: "Revoke" }).click();
  await page.getByRole("alertdialog", { name: "Revoke the link?" }).getByRole("button", { name: "Revoke" }).click();
  await row.getByText("revoked").waitFor();
  const { shares } = await site.call("/share/list");
  const revoked = (id: string | undefined) =>
    shares.find((share: { readonly id: string }) => share.id === id).revokedAt !== null;
  expect(made.map(({ id }) => revoked(id))).toEqual([false, true]);
  await row.getByRole("link", { name: title }).click();
  await page.waitForURL(`**/sessions/${filled.failed}`);
});
