import { execFile } from "node:child_process";
import { promisify } from "node:util";
import type { Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { signed } from "../inbound/deliveries.ts";
import { waitFor } from "../wait-for.ts";
import { accessibilityProblems, scrollsSideways } from "./browser.ts";
import { farFromEachOther } from "./pixels.ts";
import { openSite, type Site } from "./site.ts";

let site: Site;
let count = 0;

beforeAll(async () => {
  site = await openSite({ OFFSTAGE_FORGE_HOSTS: "127.0.0.1" });
});
afterEach(() => site.requireQuiet());
afterAll(() => site?.close());

const issue = { title: "Crash", url: "https://example.com/7", labels: ["bug"], author: { name: "Rita" } };

async function createAutomation(more: object = {}): Promise<{ readonly id: string; readonly triggers: Trigger[] }> {
  count += 1;
  return site.call("/automation/create", {
    name: `Edited ${count}`,
    macro: `edited-${count}`,
    instructions: "say {{ event.issue.title }}",
    ...more,
  });
}

interface Trigger {
  readonly id: string;
  readonly type: string;
  readonly url: string;
}

/** Delivers to a webhook, and waits until it is in the ledger with what became of it. */
async function deliver({ url }: Trigger, body: object): Promise<void> {
  const { pathname } = new URL(url);
  const answer = await fetch(`${site.offstage.url}${pathname}`, { method: "POST", body: JSON.stringify(body) });
  expect(answer.status).toBe(202);
}

const preview = (page: Page) => page.getByRole("region", { name: "Preview" });
const prompt = (page: Page) => page.getByLabel("What the agent would be asked");

test("values of the last delivery are offered, chosen by keys, and what they become is shown", async () => {
  const { id, triggers } = await createAutomation({ triggers: [{ type: "webhook", condition: "false" }] });
  await deliver(triggers[1] as Trigger, { issue });
  const page = await site.signedIn();
  await page.goto(`/automations/${id}/edit`);
  await prompt(page).getByText("say Crash", { exact: true }).waitFor();
  const field = page.getByLabel("Instructions");
  await field.fill("");
  await preview(page).getByText("Write instructions to see").waitFor();
  await field.pressSequentially("Fix {{ event.");
  const list = page.getByRole("listbox", { name: "Values of the event" });
  await list.getByRole("option", { name: 'event.issue.author.name "Rita"' }).waitFor();
  expect(await accessibilityProblems(page)).toEqual([]);
  await page.keyboard.press("Escape");
  await list.waitFor({ state: "detached" });
  // The arrow keys move in the text until the list is asked for.
  await page.keyboard.press("Control+Space");
  await list.getByRole("option", { name: "event.issue {" }).and(page.locator("[aria-selected=true]")).waitFor();
  await page.keyboard.press("ArrowUp");
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("ArrowDown");
  await list
    .getByRole("option", { name: 'event.issue.url "https://example.com/7"' })
    .and(page.locator("[aria-selected=true]"))
    .waitFor();
  await page.keyboard.press("ArrowUp");
  await page.keyboard.press("Enter");
  expect(await field.inputValue()).toBe("Fix {{ event.issue.");
  await page.keyboard.type("TIT");
  await list.getByRole("option", { name: 'event.issue.title "Crash"' }).waitFor();
  await page.keyboard.press("Enter");
  await page.keyboard.type(" | upcase }}");
  expect(await field.inputValue()).toBe("Fix {{ event.issue.title | upcase }}");
  await prompt(page).getByText("Fix CRASH", { exact: true }).waitFor();
  // The browser's own undo takes back what was chosen, too.
  for (let presses = 0; presses < 30 && (await field.inputValue()) !== ""; presses += 1)
    await page.keyboard.press("Control+z");
  expect(await field.inputValue()).toBe("");
  await page.keyboard.press("Control+Shift+z");
  await field.fill("Look at {{ event.issue.url }}");
  await page.getByRole("button", { name: "Save" }).click();
  await page.getByRole("heading", { name: `Edited ${count}` }).waitFor();
  expect(await site.call(`/automation/${id}`)).toMatchObject({ instructions: "Look at {{ event.issue.url }}" });
});

test("a preview is asked for after a pause, and the last answer wins", async () => {
  const { id } = await createAutomation();
  const page = await site.signedIn();
  let asked = 0;
  let release = (): void => undefined;
  const held = new Promise<void>((resolve) => {
    release = resolve;
  });
  await page.goto(`/automations/${id}/edit`);
  await preview(page).getByText("The event", { exact: true }).waitFor();
  await page.route("**/automation/preview", async (route) => {
    asked += 1;
    const answer = await route.fetch();
    if (route.request().postData()?.includes("first") === true) await held;
    await route.fulfill({ response: answer });
  });
  const field = page.getByLabel("Instructions");
  await field.fill("");
  const first = page.waitForRequest((request) => request.postData()?.includes("the first of all") === true);
  // By the page's own clock: on a machine however busy a letter comes before what waits longer for the next.
  await page.evaluate(`(async () => {
    for (const letter of "the first of all") {
      document.execCommand("insertText", false, letter);
      await new Promise((typed) => setTimeout(typed, 20));
    }
  })()`);
  await first;
  await field.fill("the second");
  await prompt(page).getByText("the second").waitFor();
  const late = page.waitForResponse((answer) => answer.request().postData()?.includes("first") === true);
  release();
  await (await late).finished();
  expect(await prompt(page).innerText()).toBe("the second");
  // The empty text may have been asked for as well.
  expect(asked).toBeLessThanOrEqual(3);
});

test("what can't be rendered is said with its place, and other events can be chosen", async () => {
  const { id } = await createAutomation({ instructions: "one\ntwo {{ event.walrus }} three" });
  const page = await site.signedIn();
  await page.goto(`/automations/${id}/edit`);
  await preview(page).getByLabel("Your event").fill("{}");
  await preview(page).getByText("undefined variable: event.walrus, line:2").waitFor();
  expect(await page.locator("pre .decoration-wavy").allInnerTexts()).toEqual(["event", ".", "walrus", " "]);
  expect(await accessibilityProblems(page)).toEqual([]);
  await page.getByRole("button", { name: "Show the place" }).click();
  const field = page.getByLabel("Instructions");
  await field.and(page.locator(":focus")).waitFor();
  expect(await page.evaluate("String(getSelection())")).toBe("event.walrus ");
  const event = preview(page).getByLabel("Event", { exact: true });
  await preview(page).getByLabel("Your event").fill("{");
  await preview(page).getByRole("alert").getByText("This is no JSON").waitFor();
  await preview(page).getByLabel("Your event").fill('{ "walrus": "שלום" }');
  await prompt(page).getByText("two שלום three").waitFor();
  await event.selectOption({ label: "Triage new issues: github" });
  await preview(page).getByText("undefined variable").waitFor();
  await field.fill("Look at {{ event.issue.number }}");
  await prompt(page)
    .getByText(/^Look at \d+$/u)
    .waitFor();
  await page.getByLabel("Title of a run").fill("Issue {{ event.issue.nothing }}");
  await preview(page).getByText("title: undefined variable").waitFor();
});

/** In the page: shows the coloured layer or the field's own text alone, in black. */
const showOnly = `(what) => {
  const area = document.querySelector("pre[aria-hidden] + textarea");
  const layer = area.previousElementSibling;
  for (const piece of [layer, ...layer.querySelectorAll("*")]) piece.style.color = "black";
  layer.style.visibility = what === "layer" ? "visible" : "hidden";
  area.style.webkitTextFillColor = what === "layer" ? "transparent" : "black";
}`;

test("the colours stay on their words: wrapped, scrolled, from right to left, with emoji", async () => {
  const { id } = await createAutomation();
  const texts = [
    `${"long ".repeat(60)}{{ event.x | append: '${"x".repeat(150)}' }} trailing   \n\n`,
    "Fix\nשלום {{ event.issue.url | upcase }} עולם\n{% if event.labels contains 'bug' %}It is.{% endif %}\nמה {{ event.x }}",
    "{{ 'مرحبا' | append: event.x }} مرحبا بالعالم {% assign x = 'العالم' %}",
    "{{ event.a }} 👩‍🚀👨‍👩‍👧‍👦 1️⃣ 🇩🇪 {{ '👩‍🚀' | append: '🇩🇪' }} café\ta\t{{ b }}",
    Array.from({ length: 60 }, (_, line) => `line ${line} {{ event.x${line} }}`).join("\n"),
  ];
  const page = await site.signedIn({ viewport: { width: 390, height: 800 } });
  await page.goto(`/automations/${id}/edit`);
  const field = page.getByLabel("Instructions");
  for (const text of texts) {
    await field.fill(text);
    await field.press("Control+End");
    await field.blur();
    const box = page.locator("div:has(> textarea)").first();
    const pictures: Buffer[] = [];
    for (const shown of ["layer", "field"]) {
      await page.evaluate(`(${showOnly})(${JSON.stringify(shown)})`);
      pictures.push(await box.screenshot());
    }
    // A letter at another place has dozens; letters that are drawn by other fractions of a pixel have a few.
    expect(await farFromEachOther(page, pictures)).toBeLessThan(20);
  }
});

test("a condition is tried on what came to its trigger, and saved", async () => {
  const { id, triggers } = await createAutomation({
    triggers: [
      { type: "webhook", condition: "event.kind == 'x'" },
      { type: "schedule", cron: "0 9 * * 1" },
    ],
  });
  const hook = triggers[1] as Trigger;
  await deliver(hook, { kind: "bug", size: 3 });
  await deliver(hook, { kind: "task", size: 9 });
  await deliver(hook, { size: 1 });
  const page = await site.signedIn();
  await page.goto(`/automations/${id}`);
  await page.getByRole("button", { name: "Condition Schedule" }).click();
  await page.getByText("Nothing has come to this trigger yet").waitFor();
  expect(await accessibilityProblems(page)).toEqual([]);
  await page.keyboard.press("Escape");
  await page.getByRole("button", { name: "Condition Webhook" }).click();
  const field = page.getByRole("dialog").getByLabel("Condition");
  const rows = page.getByRole("list", { name: "The last 3 deliveries" }).getByRole("listitem");
  await rows.first().waitFor();
  await field.fill("");
  await field.pressSequentially("event.s");
  await page.getByRole("option", { name: "event.size 1" }).waitFor();
  await page.keyboard.press("Escape");
  await page.getByRole("listbox").waitFor({ state: "detached" });
  // The dialog is still there.
  await field.fill("event.kind == 'bug' && trigger.type == 'webhook'");
  await page.getByRole("button", { name: "Try the condition" }).click();
  await page.getByText("1 would pass, 1 would not, 1 can’t be evaluated").waitFor();
  expect(await rows.allInnerTexts()).toEqual([
    expect.stringMatching(/Error\s+condition: No such key: kind/u),
    expect.stringContaining("Would not pass"),
    expect.stringContaining("Would pass"),
  ]);
  expect(await accessibilityProblems(page)).toEqual([]);
  await field.fill("event.kind == ");
  // What was found of another condition is not shown as this one's.
  await page.getByText("1 would pass").waitFor({ state: "detached" });
  await page.getByRole("button", { name: "Save" }).click();
  await page
    .getByRole("alert")
    .getByText(/^triggers\[1\]\.condition/u)
    .waitFor();
  expect(await field.getAttribute("aria-invalid")).toBe("true");
  await field.fill("has(event.kind) && event.kind == 'bug'");
  await page.getByRole("button", { name: "Save" }).click();
  await page.getByRole("dialog").waitFor({ state: "detached" });
  await page.getByRole("list", { name: "Triggers" }).getByText("has(event.kind) && event.kind == 'bug'").waitFor();
  expect((await site.call(`/automation/${id}`)).triggers).toMatchObject([
    { type: "api" },
    { id: hook.id, url: hook.url, condition: "has(event.kind) && event.kind == 'bug'" },
    { type: "schedule" },
  ]);
});

test("a forge's delivery is tried, and a trigger of a forge says what to set up there", async () => {
  const connection = await site.call("/connection/create", {
    kind: "github",
    name: "Our GitHub",
    webUrl: `${site.forge.url}/acme`,
    apiUrl: site.forge.apiUrl,
    credential: { type: "token", token: site.forge.token },
  });
  const { url: repository } = await site.forge.createRepository("acme", "told", { "a.txt": "1\n" });
  const events = ["issue.opened", "session.failed"];
  const { id } = await createAutomation({
    repositories: [repository],
    triggers: [{ type: "forge", events, condition: "event.issue.number > 100" }],
  });
  const opened = {
    action: "opened",
    issue: {
      ...issue,
      id: 1,
      number: 7,
      body: "",
      state: "open",
      labels: [],
      html_url: `${repository}/issues/7`,
      user: rita,
    },
    repository: { id: 3, full_name: "acme/told", html_url: repository, default_branch: "main" },
    sender: rita,
  };
  const { headers, body } = signed(
    "github",
    { "x-github-event": "issues", "content-type": "application/json" },
    Buffer.from(JSON.stringify(opened)),
    connection.webhookSecret,
  );
  const { pathname } = new URL(connection.hookUrl);
  const answer = await fetch(`${site.offstage.url}${pathname}`, {
    method: "POST",
    headers: headers as Record<string, string>,
    body,
  });
  const { ledgerId } = (await answer.json()) as { ledgerId: string };
  await waitFor(async () => (await site.call(`/ledger/${ledgerId}`)).outcome === "filtered", "it is decided");

  const page = await site.signedIn();
  await page.goto(`/automations/${id}`);
  await page.getByRole("button", { name: "Condition Events of forges" }).click();
  const field = page.getByRole("dialog").getByLabel("Condition");
  await field.fill("event.issue.number == 7 && repository.name == 'acme/told'");
  await page.getByRole("button", { name: "Try the condition" }).click();
  await page.getByText("1 would pass, 0 would not").waitFor();
  await page.getByRole("listitem").filter({ hasText: "issue.opened" }).getByText("Would pass").waitFor();
  await page.keyboard.press("Escape");
  await page.getByRole("button", { name: "Set up Events of forges" }).click();
  await page.getByText("Offstage tells of session.failed itself").waitFor();
  const forge = page.getByRole("region", { name: "Our GitHub" });
  await forge.getByText(connection.hookUrl).waitFor();
  await forge.getByText("choose Issues, and enter").waitFor();
  expect(await accessibilityProblems(page)).toEqual([]);
});

const rita = { id: 2, login: "rita", type: "User" };
const run = promisify(execFile);

/** What an example answers when a shell runs it. */
async function answerOf(
  code: string,
  environment: Record<string, string>,
): Promise<{ outcome?: string; task?: string }> {
  // The examples have the address that people reach the server at.
  const { stdout } = await run("bash", ["-euo", "pipefail", "-c", code], { env: { ...process.env, ...environment } });
  return JSON.parse(stdout) as { outcome?: string; task?: string };
}

test("the examples of each trigger, as they are copied, start a run", async () => {
  const secret = Buffer.from("a secret of 24 bytes, no").toString("base64");
  const hmac = { type: "hmac", header: "X-Signature" };
  const { id, triggers } = await createAutomation({
    instructions: "say it's {{ event.issue.title | default: 'x' }}",
    triggers: [
      { type: "webhook" },
      { type: "webhook", verify: { ...hmac, prefix: "sha256=" }, secret },
      { type: "webhook", verify: { ...hmac, algorithm: "sha512", encoding: "base64" }, secret },
      { type: "webhook", verify: { type: "standardWebhooks" }, secret },
      { type: "source", source: "cloudEvents", events: ["com.example.built"], secret },
      { type: "source", source: "slack", secret },
    ],
  });
  const { key } = await site.call("/key/create", { name: "only triggers", scopes: ["trigger"] });
  const page = await site.signedIn();
  await page.goto(`/automations/${id}`);
  const rows = page.getByRole("list", { name: "Triggers" }).getByRole("listitem");
  for (const [index, { type }] of triggers.entries()) {
    await rows.nth(index).getByRole("button", { name: "Set up" }).click();
    const dialog = page.getByRole("dialog");
    await dialog.getByRole("button", { name: "Copy" }).first().waitFor();
    expect(await accessibilityProblems(page)).toEqual([]);
    const codes = await dialog.getByLabel("In a shell").allInnerTexts();
    expect(codes).toHaveLength(type === "api" ? 2 : index === 6 ? 0 : 1);
    for (const code of codes) {
      const answer = await answerOf(code, { SECRET: secret, OFFSTAGE_API_KEY: key });
      expect(answer).toMatchObject(type === "api" ? { task: "RunWorkflow" } : { outcome: "accepted" });
    }
    if (index === 6) {
      await dialog.getByText("Basic Information → Signing Secret").waitFor();
      await dialog.getByLabel("A condition").getByText("event.message.channel").waitFor();
      await dialog
        .getByLabel("The address")
        .getByText((triggers[6] as Trigger).url)
        .waitFor();
    }
    await page.keyboard.press("Escape");
    await dialog.waitFor({ state: "detached" });
  }
});

test("an example of a trigger is added to the list, and saved as it is", async () => {
  const { id } = await createAutomation();
  const page = await site.signedIn();
  await page.goto(`/automations/${id}`);
  await page.getByRole("button", { name: "Change", exact: true }).click();
  for (const name of ["Schedule", "Linear"]) {
    await page.getByLabel("An example").selectOption(name);
    await page.getByRole("button", { name: "Add to the list" }).click();
  }
  expect(await accessibilityProblems(page)).toEqual([]);
  await page.getByRole("button", { name: "Save" }).click();
  await page.getByRole("list", { name: "Triggers" }).getByText("linear: issue.created", { exact: true }).waitFor();
  expect((await site.call(`/automation/${id}`)).triggers).toMatchObject([
    { type: "api" },
    { type: "schedule", timeZone: "Europe/Berlin" },
    { type: "source", source: "linear" },
  ]);
});

test("who may not change automations is offered no form", async () => {
  const { id } = await createAutomation();
  const { key } = await site.call("/key/create", { name: "sees", role: "viewer" });
  const page = await site.signedIn({ key });
  for (const path of ["/automations/new?template=none", `/automations/${id}/edit`]) {
    await page.goto(path);
    await page.getByRole("heading", { name: /You may not/u }).waitFor();
    expect(await page.getByRole("textbox").count()).toBe(0);
  }
});

for (const [colorScheme, width] of [
  ["light", 390],
  ["dark", 1_440],
] as const) {
  test(`axe finds nothing and nothing sticks out in ${colorScheme} at ${width} pixels`, async () => {
    const { id, triggers } = await createAutomation({
      instructions: `Look at {{ event.${"a".repeat(80)} | default: "${"b".repeat(90)}" }}`,
      triggers: [{ type: "webhook", condition: `has(event.${"c".repeat(80)})` }],
    });
    await deliver(triggers[1] as Trigger, { x: 1 });
    const page = await site.signedIn({ colorScheme, viewport: { width, height: 800 } });
    const looksRight = async (): Promise<void> => {
      expect(await accessibilityProblems(page)).toEqual([]);
      expect(await scrollsSideways(page)).toBe(false);
    };
    await page.goto("/automations/new");
    await page.getByRole("link", { name: "Triage new issues" }).waitFor();
    await looksRight();
    await page.goto(`/automations/${id}/edit`);
    await prompt(page).waitFor();
    await looksRight();
    await page.goto(`/automations/${id}`);
    await page.getByRole("button", { name: "Condition Webhook" }).click();
    await page.getByRole("button", { name: "Try the condition" }).click();
    await page.getByText("0 would pass, 1 would not").waitFor();
    await looksRight();
    await page.keyboard.press("Escape");
    await page.getByRole("button", { name: "Set up Webhook" }).click();
    await page.getByLabel("In a shell").waitFor();
    await looksRight();
  });
}
