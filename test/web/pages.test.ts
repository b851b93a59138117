import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Browser, BrowserContext, Page, Request } from "playwright-core";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import type { Client } from "../../src/client.ts";
import type { Offstage } from "../../src/server/offstage.ts";
import { pruneEvents } from "../../src/store/prune.ts";
import { appendEvents } from "../../src/store/sessions/events.ts";
import { script } from "../end-to-end/script.ts";
import { hangTimeoutMs } from "../hang-timeout.ts";
import { inOtherClone } from "../other-clone.ts";
import { startProvider } from "../sign-in/oidc-provider.ts";
import { waitFor } from "../wait-for.ts";
import { adminKey, createWorld, startInProcess, untilOver, type World } from "../world.ts";
import { accessibilityProblems, launchBrowser, scrollsSideways } from "./browser.ts";
import { openFlakyProxy } from "./flaky-proxy.ts";

let world: World;
let offstage: Offstage;
let client: Client;
let browser: Browser;
const contexts: BrowserContext[] = [];
/** Errors and warnings of the browsers' consoles, and what pages threw; that a request was refused or a connection lost is for the page to show. */
const heard: string[] = [];
let count = 0;

beforeAll(async () => {
  world = await createWorld(script);
  ({ offstage, client } = await startInProcess(world, { OFFSTAGE_DEFAULT_AGENT: "basic:scripted" }));
  browser = await launchBrowser();
});

afterEach(async () => {
  const found = heard.splice(0);
  for (const context of contexts.splice(0)) await context.close();
  if (found.length > 0) throw new Error(`browsers complained:\n${found.join("\n")}`);
});

afterAll(async () => {
  await browser?.close();
  await offstage?.stop();
  await world?.close();
});

async function openPage(options: Parameters<Browser["newContext"]>[0] = {}): Promise<Page> {
  const context = await browser.newContext({ baseURL: offstage.url, ...options });
  contexts.push(context);
  context.setDefaultTimeout(hangTimeoutMs);
  const page = await context.newPage();
  page.on("pageerror", (error) => heard.push(`${page.url()} ${error.message}`));
  page.on("console", (line) => {
    const isRefusal = line.text().startsWith("Failed to load resource");
    if (["error", "warning"].includes(line.type()) && !isRefusal) heard.push(`${page.url()} ${line.text()}`);
  });
  return page;
}

/** A page whose browser has signed in with a key. */
async function signedIn(options: Parameters<Browser["newContext"]>[0] = {}): Promise<Page> {
  const page = await openPage(options);
  const answer = await page.request.post("/login/create", { data: { key: adminKey } });
  expect(answer.status()).toBe(200);
  return page;
}

async function repository(): Promise<string> {
  const { url } = await world.forge.createRepository("acme", `pages-${(count += 1)}`, { "README.md": "# Before\n" });
  return url;
}

/** Everything the conversation shows, line by line. */
function conversation(page: Page): Promise<string[]> {
  return page.getByRole("list", { name: "Conversation" }).getByRole("listitem").allInnerTexts();
}

test("the one-time link signs a browser in once, and leaves no token in the address", async () => {
  const link = offstage.first?.loginLink ?? "";
  const page = await openPage();
  await page.goto(link);
  await page.getByRole("heading", { name: "Sessions", level: 1 }).waitFor();
  expect(page.url()).toBe(`${offstage.url}/`);

  const second = await openPage();
  await second.goto(link);
  await second.getByText("this link was already used or has expired").waitFor();
  expect(new URL(second.url()).hash).toBe("");
});

test("a page asked for without a sign-in comes after it, and a wrong key is reported", async () => {
  const { id } = await client.session.create({ prompt: "say later", queueRightAway: false });
  const page = await openPage();
  await page.goto(`/sessions/${id}?tab=changes`);
  await page.getByLabel("API key").fill("not-a-key");
  await page.route("**/login/create", (route) => route.abort());
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.getByText("The server can’t be reached.").waitFor();
  await page.unroute("**/login/create");
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.getByText("the API key is wrong, revoked or expired").waitFor();
  await page.getByLabel("API key").fill(adminKey);
  await page.getByLabel("API key").press("Enter");
  await page.getByRole("heading", { name: "say later" }).waitFor();
  expect(page.url()).toBe(`${offstage.url}/sessions/${id}?tab=changes`);
});

test("a sign-in leads to the page that it was asked for, and to no other site", async () => {
  for (const [next, reached] of [
    ["/webhooks", "/webhooks"],
    ["/ledger?outcome=failed", "/ledger?outcome=failed"],
    ["/?status=failed", "/?status=failed"],
    ["//evil.example/webhooks", "/"],
    ["/\\evil.example", "/"],
    ["https://evil.example/", "/"],
  ]) {
    const page = await openPage();
    await page.goto(`/sign-in?next=${encodeURIComponent(next ?? "")}`);
    await page.getByLabel("API key").fill(adminKey);
    await page.getByLabel("API key").press("Enter");
    await page.waitForURL(`${offstage.url}${reached}`);
  }
});

test("signing out ends the sign-in on the server too", async () => {
  const page = await signedIn();
  await page.goto("/");
  await page.route("**/login/delete", (route) => route.fulfill({ status: 403, json: { error: "not today" } }));
  await page.getByRole("button", { name: "Sign out" }).click();
  await page.getByRole("status").getByText("not today").waitFor();
  expect((await page.request.get("/session/list")).status()).toBe(200);
  await page.unroute("**/login/delete");
  await page.getByRole("button", { name: "Sign out" }).click();
  await page.getByRole("heading", { name: "Sign in" }).waitFor();
  expect((await page.request.get("/session/list")).status()).toBe(401);
});

test("a session started from a sentence is followed live to its pull request", async () => {
  const page = await signedIn();
  const url = await repository();
  await page.goto("/");
  await page
    .getByLabel("What should be done?")
    .fill("write hello.js: const greeting = 1;, then shell echo from the shell, then say It is **done**.");
  await page.getByRole("button", { name: "Repository: No repository" }).click();
  await page.getByRole("dialog", { name: "Repository" }).getByRole("combobox").fill(url);
  await page.keyboard.press("Enter");
  await page.getByRole("button", { name: "Start" }).click();

  await page
    .getByRole("link", { name: /Pull request #1/u })
    .first()
    .waitFor();
  await page.getByText("Completed").first().waitFor();
  const [pullRequest] = await world.forge.pullRequests("acme", url.split("/").at(-1) ?? "");
  expect(
    await page
      .getByRole("link", { name: /Pull request #1/u })
      .first()
      .getAttribute("href"),
  ).toBe(`${url}/pull/${pullRequest?.number}`);
  for (const step of ["Prepare", "Agent", "Commit", "Push", "Pull request"]) {
    await page.getByRole("region", { name: "Steps" }).getByText(`${step} done`).waitFor();
  }

  // Folded: its output is not there until it is asked for.
  expect(await page.getByText("from the shell", { exact: true }).count()).toBe(0);
  await page.locator("summary", { hasText: "echo from the shell" }).click();
  await page.getByLabel("Output").getByText("from the shell").waitFor();
  // What was asked is Markdown as well as what was answered.
  await expect.poll(() => page.locator("strong", { hasText: "done" }).count()).toBe(2);

  await page.getByRole("tab", { name: "Changes" }).click();
  await page.getByText("1 file").waitFor();
  await page.reload();
  const changes = page.getByRole("region", { name: /^Changes in/u });
  await changes.getByRole("button", { name: "hello.js new" }).waitFor();
  await changes.getByText("const greeting = 1;").waitFor();
});

test("a follow-up is sent with the keyboard alone and its turn joins the conversation", async () => {
  const session = await client.session.create({ prompt: "write one.txt: 1", repositories: [await repository()] });
  await untilOver(client, session.id);
  const page = await signedIn();
  await page.goto(`/sessions/${session.id}`);
  await page.getByText("Pull request #1 opened").waitFor();
  await page.getByLabel("Follow up").focus();
  await page.keyboard.type("write two.txt: 2");
  await page.keyboard.press("Control+Enter");
  await page.getByText("Did as asked: write two.txt: 2").waitFor();
  await page.getByText("Pull request #1 updated").waitFor();
  const lines = await conversation(page);
  expect(lines.filter((line) => line.startsWith("You asked"))).toHaveLength(2);
  expect(lines.filter((line) => line.includes("Did as asked: write one.txt"))).toHaveLength(1);
});

test("conflicts with the target branch are resolved by one button", async () => {
  const url = await repository();
  const { id } = await client.session.create({ prompt: "write one.txt: 1", repositories: [url], branchName: "work" });
  await untilOver(client, id);
  await inOtherClone(world, url, "echo t > target.txt && git add -A && git commit -qm T && git push -q");
  const page = await signedIn();
  await page.goto(`/sessions/${id}`);
  const button = page.getByRole("button", { name: "Resolve conflicts" });
  await page.getByText("Pull request #1 opened").waitFor();
  expect(await button.count()).toBe(0);
  // As the forge says a while later.
  await offstage.database.pool.query("update pull_request set mergeable = false where session_id = $1", [id]);
  await page.reload();
  await page.getByText("in conflict").waitFor();
  await button.click();
  await page.getByText("Bring the branch up to date with main").waitFor();
  await page.getByText("Pull request #1 updated").waitFor();
  // Of the commit that was pushed since, the forge has not said anything yet.
  await expect.poll(() => button.count()).toBe(0);
  expect(await inOtherClone(world, url, "git show origin/work:target.txt")).toBe("t");
});

test("a running session is cancelled from its page, and retried", async () => {
  const session = await client.session.create({ prompt: "shell sleep 600" });
  const page = await signedIn();
  await page.goto(`/sessions/${session.id}`);
  await page.locator("summary", { hasText: "sleep 600" }).waitFor();
  await page.getByRole("button", { name: "Cancel" }).click();
  await page.getByRole("button", { name: "Retry" }).waitFor();
  expect((await untilOver(client, session.id)).status).toBe("cancelled");
  await page.getByRole("button", { name: "Retry" }).click();
  await page.getByRole("button", { name: "Cancel" }).waitFor();
  await client.session.cancel(session.id);
  await page.getByRole("button", { name: "Retry" }).waitFor();
});

test("a failed session says why and what to do", async () => {
  const session = await client.session.create({
    prompt: "write a.txt: a",
    repositories: [`${world.forge.url}/acme/not-there`],
  });
  await untilOver(client, session.id);
  const page = await signedIn();
  await page.goto(`/sessions/${session.id}`);
  await page.getByRole("alert").getByText("repository_not_found").waitFor();
  expect(await page.getByRole("button", { name: "Retry" }).count()).toBe(1);
});

test("a session that is tried again by itself says why and when, in the list too, and a button does not wait", async () => {
  const { id } = await client.session.create({ prompt: "write a: b", repositories: ["http://nowhere.invalid/a/b"] });
  const { database } = offstage;
  const later = "update session set retry_at = now() + interval '1 hour' where id = $1 and retry_at is not null";
  await waitFor(async () => (await database.pool.query(later, [id])).rowCount === 1, "it waits for its retry");
  const page = await signedIn();
  await page.goto("/");
  await page.getByText(/Tried again in .*nowhere\.invalid/u).waitFor();
  await page.goto(`/sessions/${id}`);
  const banner = page.getByRole("note").filter({ hasText: "nowhere.invalid" });
  await banner.getByText(/tried again in (?:59 minutes|1 hour)/u).waitFor();
  expect(await accessibilityProblems(page)).toEqual([]);
  await page.getByRole("button", { name: "Try again now" }).click();
  await page.getByText("It will be tried again.").nth(1).waitFor();
  await page.getByRole("button", { name: "Cancel" }).click();
  await page.getByRole("button", { name: "Retry" }).waitFor();
});

test("a refused host is shown with a button that allows it for the repository", async () => {
  const { id } = await client.session.create({
    prompt: "shell curl -s https://packages.example.com; true",
    repositories: [await repository()],
  });
  await untilOver(client, id);
  const page = await signedIn();
  await page.goto(`/sessions/${id}`);
  await page.getByText("Refused packages.example.com:443").waitFor();
  await page.getByRole("region", { name: "Steps" }).getByText("not needed").first().waitFor();
  expect(await accessibilityProblems(page)).toEqual([]);
  await page.getByRole("button", { name: /^Allow for acme/u }).click();
  await page.getByText(/^Allowed for acme/u).waitFor();
});

test("a lost connection and a reload lose no line of the conversation and double none", async () => {
  const frail = await openFlakyProxy(offstage.url);
  try {
    // It goes on when the page is cut off, however late that is.
    const wait = "until [ -e go ]; do sleep 0.1; done";
    const session = await client.session.create({ prompt: `shell ${wait}, then shell echo 2, then shell echo 3` });
    const page = await signedIn();
    await page.goto(`${frail.url}/sessions/${session.id}`);
    await page.locator("summary", { hasText: "until [ -e go ]" }).waitFor();
    frail.cut();
    await page.getByText("Connection lost: reconnecting").waitFor();
    await writeFile(join(world.data, "sessions", session.id, "workspace/go"), "");
    await untilOver(client, session.id);
    expect(await page.getByText("Did as asked").count()).toBe(0);
    frail.repair();
    await lastLine(page).waitFor();
    await page.getByText("Connection lost").waitFor({ state: "detached" });
    const live = await conversation(page);
    expect(live).toEqual(await conversationAfterReload(page));
    expect(new Set(live).size).toBe(live.length);
    expect(await page.getByRole("list", { name: "Conversation" }).locator("summary").count()).toBe(3);
  } finally {
    await frail.close();
  }
});

async function conversationAfterReload(page: Page): Promise<string[]> {
  await page.reload();
  await page.getByText("Did as asked").waitFor();
  await lastLine(page).waitFor();
  return conversation(page);
}

/** What the conversation ends with: the badge above it may be ahead. */
function lastLine(page: Page) {
  return page.getByRole("list", { name: "Conversation" }).getByText("Completed", { exact: true });
}

test("HTML and remote pictures in an agent's message stay text and links", async () => {
  const session = await client.session.create({
    prompt:
      "say <img src=x onerror=\"document.title='taken'\"> <script>document.title='taken'</script> ![spy](https://example.com/spy.png)",
  });
  await untilOver(client, session.id);
  const page = await signedIn();
  const elsewhere: string[] = [];
  page.on("request", (request) => {
    if (!request.url().startsWith(offstage.url)) elsewhere.push(request.url());
  });
  await page.goto(`/sessions/${session.id}`);
  await page.getByRole("link", { name: "spy" }).first().waitFor();
  expect(await page.title()).not.toBe("taken");
  expect(elsewhere.filter((url) => !url.startsWith("data:"))).toEqual([]);
});

test("the list shows sessions as they change, and searches them", async () => {
  const page = await signedIn();
  await page.goto("/");
  const { id } = await client.session.create({ prompt: "say a walrus in the list" });
  await page.getByRole("link", { name: "say a walrus in the list" }).waitFor();
  await untilOver(client, id);
  await page.getByRole("listitem").filter({ hasText: "walrus" }).getByText("Completed").waitFor();
  await page.getByLabel("Search sessions").fill("walrus");
  await page.keyboard.press("Enter");
  await page.waitForURL(/q=walrus/u);
  await expect.poll(() => page.getByRole("list", { name: "Sessions" }).getByRole("listitem").count()).toBe(1);
  await page.getByRole("link", { name: "say a walrus in the list" }).press("Enter");
  await page.waitForURL(`${offstage.url}/sessions/${id}`);
});

test("the list narrows to a status, which the address keeps and back and forward do not lose", async () => {
  const { id } = await client.session.create({ prompt: "say a narwhal as a draft", queueRightAway: false });
  await client.session.cancel((await client.session.create({ prompt: "say a narwhal", queueRightAway: false })).id);
  const page = await signedIn();
  const rows = page.getByRole("list", { name: "Sessions" }).getByRole("listitem");
  await page.goto("/?q=narwhal");
  await expect.poll(() => rows.count()).toBe(2);
  await page.getByLabel("Status").selectOption("Draft");
  await expect.poll(() => rows.count()).toBe(1);
  await page.reload();
  await rows.getByText("Draft", { exact: true }).waitFor();
  expect(await page.getByLabel("Search sessions").inputValue()).toBe("narwhal");
  await page.getByLabel("Search sessions").fill("");
  await page.waitForURL(/\?status=draft$/u);
  await page.goBack();
  await expect.poll(() => page.getByLabel("Search sessions").inputValue()).toBe("narwhal");
  await page.getByRole("link", { name: "say a narwhal as a draft" }).click();
  await page.getByRole("button", { name: "Start" }).click();
  expect((await untilOver(client, id)).status).toBe("completed");
});

test("a page that is come to has the focus, and what was written is kept, over a reload too", async () => {
  const page = await signedIn();
  await page.goto("/");
  await page.getByRole("link", { name: "Settings" }).click();
  await page.locator("main:focus").waitFor();
  await page.getByRole("navigation", { name: "Main" }).getByRole("link", { name: "Sessions", exact: true }).click();
  const prompt = page.getByLabel("What should be done?");
  await prompt.waitFor();
  await page.keyboard.press("n");
  await prompt.and(page.locator(":focus")).waitFor();
  await page.keyboard.type("Half a thought");
  await page.getByRole("link", { name: "Ledger" }).click();
  await page.getByRole("link", { name: "Sessions", exact: true }).click();
  expect(await prompt.inputValue()).toBe("Half a thought");
  await page.reload();
  expect(await prompt.inputValue()).toBe("Half a thought");
  await prompt.fill("");
});

test("the end of a running session stays in sight, until the user scrolls up", async () => {
  const { id } = await client.session.create({ prompt: "shell sleep 600" });
  const page = await signedIn({ viewport: { width: 800, height: 600 } });
  await page.goto(`/sessions/${id}`);
  await page.locator("summary", { hasText: "sleep 600" }).waitFor();
  const tell = async (...texts: string[]): Promise<void> => {
    const events = texts.map((text) => ({ type: "agent.message" as const, data: { part: text, text } }));
    await appendEvents(offstage.database.pool, id, events);
    offstage.database.notify("offstage_event", id);
  };
  const distance = (): Promise<number> =>
    page.evaluate<number>("document.documentElement.scrollHeight - innerHeight - scrollY");
  await tell(...Array.from({ length: 60 }, (_, index) => `Line ${index}.`));
  await page.getByText("Line 59.").waitFor();
  await expect.poll(distance).toBeLessThan(2);
  expect(await page.evaluate<number>("scrollY")).toBeGreaterThan(1_000);

  const latest = page.getByRole("button", { name: "Go to the latest" });
  expect(await latest.count()).toBe(0);
  // A small step is meant, too, as one of the first of a smooth movement is.
  await page.mouse.wheel(0, -30);
  await latest.waitFor();
  await tell("Told at once.");
  await page.getByText("Told at once.").waitFor();
  expect(await distance()).toBeGreaterThan(20);
  await latest.click();
  await expect.poll(distance).toBeLessThan(2);
  await latest.waitFor({ state: "detached" });

  await page.mouse.wheel(0, -800);
  await latest.waitFor();
  await tell("Told meanwhile.");
  await page.getByText("Told meanwhile.").waitFor();
  expect(await distance()).toBeGreaterThan(500);
  await latest.click();
  await expect.poll(distance).toBeLessThan(2);
  await client.session.cancel(id);
  await page.getByRole("button", { name: "Retry" }).waitFor();
});

test("a long request is folded, and its code can be copied", async () => {
  const lines = Array.from({ length: 40 }, (_, index) => `- point ${index}`).join("\n");
  const prompt = `Do all of it\n\n\`\`\`sh\nnpm run all\n\`\`\`\n\n${lines}`;
  const { id } = await client.session.create({ prompt, queueRightAway: false });
  const page = await signedIn({ permissions: ["clipboard-read", "clipboard-write"] });
  await page.goto(`/sessions/${id}`);
  // It is said for two seconds.
  const said = page.getByText("Copied", { exact: true });
  await Promise.all([said.waitFor(), page.getByRole("button", { name: "Copy the code" }).click()]);
  expect(await page.evaluate("navigator.clipboard.readText()")).toBe("npm run all\n");
  const fold = page.getByRole("button", { name: "Show all of it" });
  expect(await fold.getAttribute("aria-expanded")).toBe("false");
  const height = async (): Promise<number> => (await page.getByRole("listitem").first().boundingBox())?.height ?? 0;
  const folded = await height();
  await fold.click();
  await page.getByRole("button", { name: "Show less" }).waitFor();
  expect(await height()).toBeGreaterThan(folded + 200);
});

test("no page asks for what its own Content-Security-Policy forbids", async () => {
  const page = await signedIn();
  const complaints: string[] = [];
  page.on("console", (message) => {
    if (message.type() === "error") complaints.push(`${page.url()} ${message.text()}`);
  });
  const loading = new Set<Request>();
  page.on("request", (request) => loading.add(request));
  page.on("requestfinished", (request) => loading.delete(request));
  page.on("requestfailed", (request) => loading.delete(request));
  // The stream of changes stays open as long as the list is shown.
  const awaited = () => [...loading].map((request) => request.url()).filter((url) => !url.endsWith("/session/changes"));
  for (const [path, title] of [
    ["/", "Sessions"],
    ["/settings", "Settings"],
    ["/audit", "Audit log"],
    ["/automations", "Automations"],
    ["/repositories", "Repositories"],
    ["/ledger", "Ledger"],
    ["/insight", "Insight"],
    ["/webhooks", "Webhooks"],
    ["/people", "People"],
    ["/system", "System"],
  ] as const) {
    loading.clear();
    await page.goto(path);
    await page.getByRole("heading", { name: title, exact: true }).waitFor();
    await expect.poll(awaited).toEqual([]);
  }
  expect(complaints).toEqual([]);
});

test("an address that leads nowhere says so", async () => {
  const page = await signedIn();
  await page.goto("/sessions/00000000-0000-4000-8000-000000000000");
  await page.getByText("There is no such session").waitFor();
  // A browser is shown a page; programs are answered as always.
  expect((await page.goto("/nowhere/at/all"))?.status()).toBe(404);
  await page.getByRole("heading", { name: "There is no such page" }).waitFor();
  await page.getByRole("link", { name: "Go to the sessions" }).click();
  await page.getByRole("heading", { name: "Sessions", level: 1 }).waitFor();
  const answer = await fetch(`${offstage.url}/nowhere/at/all`);
  expect([answer.status, Object.keys((await answer.json()) as object)]).toEqual([404, ["error"]]);
});

test("an admin makes an API key, which is shown once, and revokes it", async () => {
  const page = await signedIn();
  await page.goto("/settings");
  await page.getByRole("button", { name: "New key" }).click();
  await page.getByRole("button", { name: "Create" }).click();
  await page.getByRole("alert").getByText(/^name/u).waitFor();
  await page.getByRole("dialog").getByRole("textbox", { name: "Name" }).fill("Continuous integration");
  await page.getByLabel("Role").selectOption("viewer");
  await page.getByLabel("Expires").selectOption("In 7 days");
  expect(await accessibilityProblems(page)).toEqual([]);
  await page.getByRole("button", { name: "Create" }).click();
  const key = await page.getByLabel("Key Continuous integration").inputValue();
  const listWith = () => fetch(`${offstage.url}/session/list`, { headers: { Authorization: `Bearer ${key}` } });
  expect((await listWith()).status).toBe(200);
  await page.getByRole("button", { name: "Done" }).click();
  const row = page.getByRole("list", { name: "Keys" }).getByRole("listitem").filter({ hasText: "Continuous" });
  await row.getByText(/^read · .*expires/u).waitFor();
  expect(await accessibilityProblems(page)).toEqual([]);
  expect(await page.content()).not.toContain(key);
  await row.getByRole("button", { name: "Revoke Continuous integration" }).click();
  await page.getByRole("alertdialog").getByRole("button", { name: "Revoke" }).click();
  await row.getByText("Revoked").waitFor();
  expect((await listWith()).status).toBe(401);
});

test("an admin makes a key that only triggers automations", async () => {
  const page = await signedIn();
  await page.goto("/settings");
  await page.getByRole("button", { name: "New key" }).click();
  await page.getByRole("dialog").getByRole("textbox", { name: "Name" }).fill("Deploy hook");
  await page.getByLabel("Role").selectOption("only trigger automations");
  await page.getByRole("button", { name: "Create" }).click();
  const key = await page.getByLabel("Key Deploy hook").inputValue();
  const headers = { Authorization: `Bearer ${key}` };
  expect((await fetch(`${offstage.url}/session/list`, { headers })).status).toBe(403);
  expect((await fetch(`${offstage.url}/automation/none/trigger`, { method: "POST", headers })).status).toBe(404);
});

test("a browser that is signed in elsewhere is seen in the settings, and signed out there", async () => {
  const page = await signedIn();
  const other = await signedIn();
  await page.goto("/settings");
  const rows = page.getByRole("list", { name: "Signed-in browsers" }).getByRole("listitem");
  await rows.filter({ hasText: "this browser" }).waitFor();
  expect(await accessibilityProblems(page)).toEqual([]);
  // The newest first.
  const newest = rows.first();
  expect(await newest.getByText("this browser").count()).toBe(0);
  await newest.getByRole("button", { name: /^Sign out/u }).click();
  await page.getByRole("alertdialog").getByRole("button", { name: "Sign out" }).click();
  await other.goto("/settings");
  await other.getByRole("heading", { name: "Sign in" }).waitFor();
  await page.reload();
  await rows.filter({ hasText: "this browser" }).waitFor();
});

test("a session of a server without a sandbox says so on its page", async () => {
  const bare = await createWorld(script);
  const started = await startInProcess(bare, { OFFSTAGE_SANDBOX: "none" });
  try {
    const { id } = await started.client.session.create({ prompt: "say hello", queueRightAway: false });
    const page = await openPage({ baseURL: started.offstage.url });
    await page.request.post("/login/create", { data: { key: adminKey } });
    await page.goto(`/sessions/${id}`);
    await page.getByRole("note").getByText("Not sandboxed").waitFor();
    expect(await accessibilityProblems(page)).toEqual([]);
  } finally {
    await started.offstage.stop();
    await bare.close();
  }
});

test("an admin sets budgets, lists and secrets, and the audit log shows it", async () => {
  const page = await signedIn();
  await page.goto("/");
  await page.getByRole("link", { name: "Settings" }).click();
  await page.getByLabel("All of them in a month").fill("250");
  await page.getByLabel(/^Allowed models/u).fill("scripted*\nclaude-*");
  await page.getByRole("button", { name: "Save" }).click();
  await page.getByText("Saved").waitFor();
  const value = "typed-into-the-page";
  await page.getByRole("button", { name: "Add a secret" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByLabel("Name", { exact: true }).fill("NPM_TOKEN");
  await dialog.getByLabel("Value").fill(value);
  await dialog.getByRole("button", { name: "Save" }).click();
  const row = page.getByRole("list", { name: "Secrets" }).getByRole("listitem").filter({ hasText: "NPM_TOKEN" });
  await row.waitFor();
  expect(await accessibilityProblems(page)).toEqual([]);
  expect(await page.content()).not.toContain(value);
  await page.reload();
  expect(await page.getByLabel("All of them in a month").inputValue()).toBe("250");
  await row.getByRole("button", { name: "Delete NPM_TOKEN" }).click();
  await page.getByRole("alertdialog").getByRole("button", { name: "Delete" }).click();
  await row.waitFor({ state: "detached" });
  await page.getByRole("link", { name: "Audit" }).click();
  const entries = page.getByRole("list", { name: "Entries" });
  for (const action of ["updateOrganization", "createSecret", "deleteSecret"]) {
    await entries.getByText(action).first().waitFor();
  }
  expect(await accessibilityProblems(page)).toEqual([]);
  await page.getByLabel("Outcome").selectOption("refused");
  await page.getByText("Nothing matches this filter.").or(entries.getByText("refused").first()).waitFor();
  await client.organization.update({ monthlyBudgetUsd: null, models: null });
});

test("a person signs in by the company's provider, and stays the admin that is needed", async () => {
  const provider = await startProvider({ ada: { name: "Ada", email: "ada@company.example", email_verified: true } });
  const own = await createWorld(script);
  const started = await startInProcess(own, {
    OFFSTAGE_OIDC_ISSUER: provider.issuer,
    OFFSTAGE_OIDC_CLIENT_ID: provider.clientId,
    OFFSTAGE_OIDC_CLIENT_SECRET: provider.clientSecret,
    OFFSTAGE_OIDC_NAME: "Company",
    OFFSTAGE_ADMINS: "ada@company.example",
  });
  try {
    provider.serve([`${started.offstage.url}/login/oidc/callback`]);
    const page = await openPage({ baseURL: started.offstage.url });
    await page.goto("/sign-in?problem=expired");
    await page.getByRole("alert").getByText("The sign-in took too long").waitFor();
    const button = page.getByRole("link", { name: "Sign in with Company" });
    await button.waitFor();
    expect(await accessibilityProblems(page)).toEqual([]);
    await button.click();
    await page.getByPlaceholder(/login/iu).fill("ada");
    await page.getByPlaceholder(/password/iu).fill("any");
    await page.getByRole("button", { name: /sign-in/iu }).click();
    await page.getByRole("button", { name: /continue/iu }).click();
    await page.getByRole("heading", { name: "Sessions", level: 1 }).waitFor();
    await page.getByRole("link", { name: "People" }).click();
    const row = page.getByRole("list", { name: "People" }).getByRole("listitem").filter({ hasText: "Ada" });
    await row.waitFor();
    expect(await accessibilityProblems(page)).toEqual([]);
    await row.getByLabel("Role of Ada").selectOption("Viewer");
    await row.getByText("this is the last admin: make someone else an admin first").waitFor();
  } finally {
    await started.offstage.stop();
    await own.close();
    await provider.close();
  }
});

test("axe, as these tests run it, finds a button without a name and a text of too little contrast", async () => {
  const page = await openPage();
  await page.goto("/sign-in");
  await page.getByRole("heading", { name: "Sign in" }).waitFor();
  await page.evaluate(`
    const text = document.createElement("p");
    text.textContent = "grey on grey";
    text.style.color = "#888";
    text.style.backgroundColor = "#999";
    document.querySelector("main").append(text, document.createElement("button"));
  `);
  const found = (await accessibilityProblems(page)).map((problem) => problem.split(" ")[0]);
  expect(found).toEqual(expect.arrayContaining(["button-name", "color-contrast"]));
});

for (const colorScheme of ["light", "dark"] as const) {
  for (const width of [360, 1_280]) {
    test(`axe finds nothing and nothing sticks out in ${colorScheme} at ${width} pixels`, async () => {
      const session = await client.session.create({
        prompt:
          "write src/a/rather/long/path/of/folders/module.ts: export const answer = 42;, then shell ls -la && exit 3, then say # Done\n",
        repositories: [await repository()],
      });
      await untilOver(client, session.id);
      const page = await signedIn({ colorScheme, viewport: { width, height: 800 } });
      await page.goto(`/sessions/${session.id}`);
      await page.getByText("Pull request #1 opened").waitFor();
      for (const summary of await page.getByRole("list", { name: "Conversation" }).locator("summary").all())
        await summary.click();
      await page.getByLabel("Output").first().waitFor();
      expect(await accessibilityProblems(page)).toEqual([]);
      expect(await scrollsSideways(page)).toBe(false);

      await page.getByRole("tab", { name: "Changes" }).click();
      await page
        .getByRole("region", { name: /^Changes in/u })
        .getByText("export const answer")
        .waitFor();
      expect(await accessibilityProblems(page)).toEqual([]);
      expect(await scrollsSideways(page)).toBe(false);

      await page.goto("/");
      await page.locator("[data-session]").first().waitFor();
      expect(await accessibilityProblems(page)).toEqual([]);
      await page.getByRole("button", { name: /^Repository:/u }).click();
      await page.getByRole("dialog", { name: "Repository" }).waitFor();
      expect(await accessibilityProblems(page)).toEqual([]);
      expect(await scrollsSideways(page)).toBe(false);

      const stranger = await openPage({ colorScheme, viewport: { width, height: 800 } });
      await stranger.goto("/sign-in");
      await stranger.getByRole("heading", { name: "Sign in" }).waitFor();
      expect(await accessibilityProblems(stranger)).toEqual([]);
    });
  }
}

test("a page whose events were removed for their age says so, shows what is kept, and takes a follow-up", async () => {
  const url = await repository();
  const { id } = await client.session.create({ prompt: "write kept.txt: still here", repositories: [url] });
  const { summary } = await untilOver(client, id);
  await offstage.database.pool.query("update session set finished_at = now() - interval '9 days' where id = $1", [id]);
  expect(await pruneEvents(offstage.database, 7, new AbortController().signal)).toBeGreaterThan(0);
  const page = await signedIn();
  await page.goto(`/sessions/${id}`);
  await page.getByText("was removed, for its age").waitFor();
  await page.getByText(summary ?? "no summary").waitFor();
  await page.getByRole("link", { name: /Pull request #\d+/u }).waitFor();
  expect(await page.getByText("Loading the conversation").count()).toBe(0);
  expect(await accessibilityProblems(page)).toEqual([]);
  await page.getByRole("tab", { name: "Changes" }).click();
  await page.getByText("still here").first().waitFor();
  await client.session.message(id, { message: "say welcome back" });
  await page.reload();
  await page.getByText("say welcome back").first().waitFor();
  await page.getByText("was removed, for its age").waitFor();
});
