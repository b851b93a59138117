import { once } from "node:events";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import type { Page } from "playwright-core";
import { Webhook } from "standardwebhooks";
import { text } from "node:stream/consumers";
import { afterAll, beforeAll, expect, test } from "vitest";
import { accessibilityProblems, scrollsSideways } from "./browser.ts";
import { openSite, type Site } from "./site.ts";

let site: Site;
let receiver: Server;
/** What the address answers, and its last delivery. */
let status = 200;
let delivered: { readonly body: string; readonly headers: Record<string, string> } | null = null;

beforeAll(async () => {
  receiver = createServer((request, response) => {
    void (async () => {
      delivered = { body: await text(request), headers: request.headers as Record<string, string> };
      response.writeHead(status).end(status === 200 ? "" : "the mailbox is full");
    })();
  }).listen(0, "127.0.0.1");
  await once(receiver, "listening");
  site = await openSite({ OFFSTAGE_WEBHOOK_HOSTS: "127.0.0.1" });
});

afterAll(async () => {
  await site?.close();
  receiver.close();
});

const address = (path: string): string => `http://127.0.0.1:${(receiver.address() as AddressInfo).port}/${path}`;
const deliveries = (page: Page) => page.getByRole("list", { name: "Deliveries" });

/** Makes one that gets no event that these tests cause by the way. */
async function createWebhook(path: string): Promise<{ readonly id: string; readonly url: string }> {
  return site.call("/webhook/create", { url: address(path), events: ["pullRequest.closed"] });
}

test("a webhook is created with the events that are chosen, and its secret is shown once", async () => {
  const page = await site.signedIn();
  await page.goto("/");
  await page.getByRole("link", { name: "Webhooks" }).click();
  await page.getByText("No webhooks yet").waitFor();
  expect(await accessibilityProblems(page)).toEqual([]);
  await page.getByRole("button", { name: "New webhook" }).click();
  await page.getByLabel("URL").fill(address("created"));
  await page.getByLabel("Only what is chosen").check();
  await page.getByLabel("session.failed").check();
  await page.getByLabel("pullRequest.merged").check();
  await page.getByRole("button", { name: "Create" }).click();
  const field = page.getByLabel(`Secret of ${address("created")}`);
  await field.and(page.locator(":focus")).waitFor();
  const secret = await field.inputValue();
  expect(secret).toMatch(/^whsec_/u);
  expect(await accessibilityProblems(page)).toEqual([]);
  await page.getByText("Events session.failed, pullRequest.merged").waitFor();
  await page.getByRole("button", { name: "Done" }).click();
  await field.waitFor({ state: "detached" });
  await page.reload();
  await page.getByRole("link", { name: address("created") }).waitFor();
  expect(await page.content()).not.toContain(secret);
  const [{ id }] = (await site.call("/webhook/list")).webhooks;
  await site.call(`/webhook/${id}/test`, {});
  await expect.poll(() => delivered?.body).toContain("webhook.test");
  expect(() => new Webhook(secret).verify(delivered?.body ?? "", delivered?.headers ?? {})).not.toThrow();
});

test("what the API refuses is said by its field, and nothing is made of it", async () => {
  const page = await site.signedIn();
  await page.goto("/webhooks");
  await page.getByRole("list", { name: "Webhooks" }).waitFor();
  const before = (await site.call("/webhook/list")).webhooks.length;
  await page.getByRole("button", { name: "New webhook" }).click();
  const url = page.getByRole("textbox", { name: "URL" });
  await url.fill("ftp://example.com/");
  await page.getByRole("button", { name: "Create" }).click();
  await page.getByRole("alert").getByText("url must be an http:// or https:// address").waitFor();
  expect(await url.getAttribute("aria-invalid")).toBe("true");
  const about = (await url.getAttribute("aria-describedby")) ?? "none";
  expect(await page.locator(`[id="${about}"]`).textContent()).toContain("url must be");
  expect(await accessibilityProblems(page)).toEqual([]);
  await url.fill("https://user:word@example.com/");
  await url.press("Enter");
  await page.getByRole("alert").getByText("url must not contain credentials").waitFor();
  await url.fill("https://example.com/");
  // Nothing chosen would be everything to the API.
  await page.getByLabel("Only what is chosen").check();
  await page.getByRole("button", { name: "Create" }).click();
  await page.getByRole("alert").getByText("Choose at least one event").waitFor();
  expect(await url.getAttribute("aria-invalid")).toBeNull();
  expect((await site.call("/webhook/list")).webhooks).toHaveLength(before);
});

test("the log shows each attempt with its answer and the next, and a delivery is replayed", async () => {
  const { id } = await createWebhook("logged");
  status = 503;
  const page = await site.signedIn();
  await page.goto(`/webhooks/${id}`);
  await page.getByText("No deliveries yet.").waitFor();
  await page.getByRole("button", { name: "Send a test" }).click();
  const row = deliveries(page).getByRole("listitem").filter({ hasText: "webhook.test" });
  await row.getByText("Pending").waitFor();
  await row.getByText(/\d attempts?, next/u).waitFor();
  await row.locator("summary").click();
  await row.getByText("Answered 503").first().waitFor();
  await row.getByText("the mailbox is full").first().waitFor();
  await row.getByText("It will be tried by itself.").waitFor();
  expect(await row.getByRole("button", { name: "Resend" }).count()).toBe(0);
  expect(await accessibilityProblems(page)).toEqual([]);

  // As after a day of attempts.
  await site.offstage.database.pool.query(
    "update webhook_delivery set attempts = 11, next_attempt_at = now() where webhook_id = $1",
    [id],
  );
  await row.getByText("Dead", { exact: true }).waitFor();
  status = 200;
  await row.getByRole("button", { name: "Resend" }).click();
  await row.getByText("Delivered").waitFor();
  await row.getByText("Answered 200").waitFor();
  await page.getByLabel("Status").selectOption("dead");
  await page.getByText("Nothing matches this filter.").waitFor();
  await page.getByLabel("Status").selectOption("delivered");
  await deliveries(page).getByText("webhook.test").waitFor();
});

test("a delivery of a session leads to it, and a long log comes in pages", async () => {
  const { id } = await createWebhook("long");
  const session = await site.client.session.create({ prompt: "say found by its delivery", queueRightAway: false });
  await site.offstage.database.pool.query(
    `insert into webhook_delivery (id, organization_id, webhook_id, type, data, status, created_at)
     select gen_random_uuid(), organization_id, id, case number when 0 then 'session.draft' else 'job.pending' end,
       jsonb_build_object('id', $2::text), 'delivered', now() - number * interval '1 minute'
     from webhook, generate_series(0, 24) as number where id = $1`,
    [id, session.id],
  );
  const page = await site.signedIn();
  await page.goto(`/webhooks/${id}`);
  await deliveries(page).waitFor();
  expect(await deliveries(page).locator("details").count()).toBe(20);
  await page.getByRole("button", { name: "Show more" }).click();
  await expect.poll(() => deliveries(page).locator("details").count()).toBe(25);
  expect(await page.getByRole("button", { name: "Show more" }).count()).toBe(0);
  await deliveries(page).locator("summary").first().click();
  await page.getByRole("link", { name: "Session", exact: true }).click();
  await page.getByRole("heading", { name: "say found by its delivery" }).waitFor();
});

test("a webhook is changed, disabled, enabled and deleted", async () => {
  const { id, url } = await createWebhook("changed");
  const page = await site.signedIn();
  await page.goto(`/webhooks/${id}`);
  await page.getByRole("button", { name: "Edit" }).click();
  expect(await page.getByRole("textbox", { name: "URL" }).inputValue()).toBe(url);
  expect(await page.getByLabel("pullRequest.closed").isChecked()).toBe(true);
  await page.getByLabel("Everything").check();
  await page.getByRole("button", { name: "Save" }).click();
  await page.getByRole("dialog").waitFor({ state: "detached" });
  await page.getByText("everything").first().waitFor();
  expect((await site.call(`/webhook/${id}`)).events).toEqual([]);

  await page.getByRole("button", { name: "Disable" }).click();
  await page.getByText("Disabled").waitFor();
  expect(await page.getByRole("button", { name: "Send a test" }).isDisabled()).toBe(true);
  expect((await site.call(`/webhook/${id}`)).enabled).toBe(false);
  await page.getByRole("button", { name: "Enable" }).click();
  await page.getByText("Enabled").waitFor();

  await page.getByRole("button", { name: "Delete" }).click();
  await page.getByRole("alertdialog").waitFor();
  expect(await accessibilityProblems(page)).toEqual([]);
  await page.getByRole("button", { name: "Cancel" }).click();
  expect((await site.call(`/webhook/${id}`)).url).toBe(url);
  await page.getByRole("button", { name: "Delete" }).click();
  await page.getByRole("alertdialog").getByRole("button", { name: "Delete" }).click();
  await page.getByRole("heading", { name: "Webhooks" }).waitFor();
  await page.getByRole("link", { name: url }).waitFor({ state: "detached" });
  await page.goto(`/webhooks/${id}`);
  await page.getByText("There is no such webhook").waitFor();
});

test("a rotated secret is shown once, and signs from then on", async () => {
  const { id, url } = await createWebhook("rotated");
  const page = await site.signedIn();
  await page.goto(`/webhooks/${id}`);
  await page.getByRole("button", { name: "Rotate the secret" }).click();
  await page.getByRole("alertdialog").getByRole("button", { name: "Rotate the secret" }).click();
  const secret = await page.getByLabel(`Secret of ${url}`).inputValue();
  delivered = null;
  await page.getByRole("button", { name: "Send a test" }).click();
  await expect.poll(() => delivered?.body).toContain("webhook.test");
  expect(() => new Webhook(secret).verify(delivered?.body ?? "", delivered?.headers ?? {})).not.toThrow();
  await page.reload();
  await deliveries(page).waitFor();
  expect(await page.content()).not.toContain(secret);
});

test("an address that said it is gone is shown as disabled by Offstage, with the remedy", async () => {
  const { id } = await createWebhook("gone");
  status = 410;
  const page = await site.signedIn();
  await page.goto(`/webhooks/${id}`);
  await page.getByRole("button", { name: "Send a test" }).click();
  await page.getByRole("note").getByText("Offstage disabled it: its address answered 410 Gone").waitFor();
  const row = deliveries(page).getByRole("listitem").first();
  await row.locator("summary").click();
  await row.getByText("Enable the webhook first.").waitFor();
  expect(await row.getByRole("button", { name: "Resend" }).isDisabled()).toBe(true);
  status = 200;
  await page.getByRole("button", { name: "Enable" }).click();
  await page.getByRole("note").waitFor({ state: "detached" });
});

test("a user who is no admin is shown that the scope is missing", async () => {
  const { key } = await site.call("/key/create", { name: "reader", scopes: ["read"] });
  const page = await site.signedIn({ key });
  await page.goto("/webhooks");
  await page.getByRole("alert").getByText(/admin/u).waitFor();
  expect(await page.getByText("No webhooks yet").count()).toBe(0);
});

test("what can't be loaded says why, and is tried again by a button", async () => {
  const { id, url } = await createWebhook("refused-at-first");
  const page = await site.signedIn();
  const refuse = /\/(?:webhook\/list|webhook\/[0-9a-f-]{36})(?:\?|$)/u;
  await page.route(refuse, (route) => route.fulfill({ status: 429, json: { error: "too many requests" } }));
  for (const path of ["/webhooks", `/webhooks/${id}`]) {
    await page.goto(path);
    await page.getByText("too many requests").waitFor();
  }
  await page.unroute(refuse);
  await page.getByRole("button", { name: "Try again" }).click();
  await page.getByRole("heading", { name: url }).waitFor();

  await page.route(refuse, (route) => route.fulfill({ status: 429, json: { error: "too many requests" } }));
  await page.goto("/webhooks");
  const again = page.getByRole("button", { name: "Try again" });
  await again.waitFor();
  expect(await accessibilityProblems(page)).toEqual([]);
  await page.unroute(refuse);
  await again.click();
  await page.getByRole("link", { name: url }).waitFor();
  await page.getByText("too many requests").waitFor({ state: "detached" });
});

for (const colorScheme of ["light", "dark"] as const) {
  for (const width of [360, 1_280]) {
    test(`axe finds nothing and nothing sticks out in ${colorScheme} at ${width} pixels`, async () => {
      const { id } = await createWebhook(`a-rather-long-path/of/an/address/${"x".repeat(60)}/${colorScheme}-${width}`);
      status = 500;
      await site.call(`/webhook/${id}/test`, {});
      const page = await site.signedIn({ colorScheme, viewport: { width, height: 800 } });
      const looksRight = async (): Promise<void> => {
        expect(await accessibilityProblems(page)).toEqual([]);
        expect(await scrollsSideways(page)).toBe(false);
      };
      await page.goto("/webhooks");
      await page.getByRole("list", { name: "Webhooks" }).waitFor();
      await looksRight();
      await page.getByRole("button", { name: "New webhook" }).click();
      await page.getByLabel("Only what is chosen").check();
      await looksRight();
      await page.goto(`/webhooks/${id}`);
      await deliveries(page).locator("summary").first().click();
      await page.getByText("Answered 500").first().waitFor();
      await looksRight();
      await page.getByRole("button", { name: "Rotate the secret" }).click();
      await page.getByRole("alertdialog").getByRole("button", { name: "Rotate the secret" }).click();
      await page.getByLabel(/^Secret of/u).waitFor();
      await page.getByRole("alertdialog").waitFor({ state: "detached" });
      await looksRight();
      status = 200;
    });
  }
}
