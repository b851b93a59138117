import { readFile } from "node:fs/promises";
import type { Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { accessibilityProblems, scrollsSideways } from "./browser.ts";
import { beginning, fewFiles, message, printed, tool, work } from "./content/events.ts";
import { fillOrganization, type Filled } from "./content/fill.ts";
import { storeEvents } from "./content/sessions.ts";
import { openSite, type Site } from "./site.ts";

/** A session's page: what was said and done, and beside it what changed and how it went. */
let site: Site;
let filled: Filled;

beforeAll(async () => {
  site = await openSite();
  await site.client.organization.update({ maxRunningSessions: 1 });
  filled = await fillOrganization(site.offstage.database, (await site.client.me()).orgId ?? "");
});
afterEach(() => site.requireQuiet());
afterAll(() => site?.close());

const wide = { viewport: { width: 1_440, height: 900 } };

async function open(path: string, options: Parameters<Site["signedIn"]>[0] = wide): Promise<Page> {
  const page = await site.signedIn(options);
  await page.goto(`/sessions/${path}`);
  await page.getByRole("heading", { level: 1 }).waitFor();
  return page;
}

/** Adds events to a session that runs, as its worker does. */
async function tell(id: string, ...events: Parameters<typeof storeEvents>[2][number][]): Promise<void> {
  await storeEvents(site.offstage.database, id, events);
  site.offstage.database.notify("offstage_event", id);
}

test("quiet calls fold into one line, commands and edits stay, and thoughts are dimmed", async () => {
  const page = await open(filled.completed);
  const lines = page.getByRole("list", { name: "Conversation" });
  const fold = lines.locator("summary", { hasText: "3 files read, 1 search" });
  await fold.waitFor();
  expect(await lines.locator("summary", { hasText: "src/cart/discount.ts" }).count()).toBe(0);
  await fold.click();
  await lines.locator("summary", { hasText: "src/cart/discount.ts" }).waitFor();
  const failed = lines.locator("summary", { hasText: "npm test -- cart" }).first();
  await failed.getByText("failed").waitFor();
  await failed.click();
  await lines.getByLabel("Output").getByText("expected 2698 to be 2697").waitFor();
  await lines.locator("summary", { hasText: "src/cart/total.ts" }).last().click();
  await lines.getByText("Math.round").first().waitFor();
  expect(await accessibilityProblems(page)).toEqual([]);
});

test("how many lines are left out between changes is said in the page's language", async () => {
  for (const [locale, words] of [
    ["en-GB", /^\d+ unmodified lines$/u],
    ["de-DE", /^\d+ unveränderte Zeilen$/u],
  ] as const) {
    const page = await open(filled.completed, { ...wide, locale });
    await page.locator("[data-unmodified-lines]").getByText(words).first().waitFor();
  }
});

test("comments on changed lines wait, over a reload too, and go to the agent as one message", async () => {
  const page = await open(filled.completed);
  const changes = page.getByRole("region", { name: "Changes in acme/shop" });
  const file = changes.getByRole("region", { name: "src/cart/total.ts" });
  await file.getByText("Math.round(exact)").waitFor();
  // With the keyboard: the line is written.
  await file.getByRole("button", { name: "Comment on src/cart/total.ts" }).press("Enter");
  await page.keyboard.type("34");
  await page.keyboard.press("Tab");
  await page.keyboard.type("Why not floor?");
  expect(await accessibilityProblems(page)).toEqual([]);
  await page.keyboard.press("Control+Enter");
  await file.getByText("Why not floor?").waitFor();
  // With the mouse: the button beside the line.
  await file.getByText("exact = items").hover();
  await file.locator("button", { hasText: /^\+$/u }).click();
  await page.getByLabel("Comment", { exact: true }).fill("Name it sum.");
  await page.getByRole("button", { name: "Keep" }).click();
  await page.reload();
  await page.getByText("2 comments").waitFor();
  await file.getByText("Name it sum.").waitFor();
  expect(await accessibilityProblems(page)).toEqual([]);
  // A server that is slow: what is written meanwhile is not among what was sent.
  const answer = Promise.withResolvers<void>();
  await page.route("**/message", async (route) => {
    await answer.promise;
    await route.continue();
  });
  const sent = page.waitForRequest((request) => request.url().endsWith("/message"));
  await page.getByRole("button", { name: "Send as one message" }).click();
  const { message: text } = (await sent).postDataJSON() as { message: string };
  await file.getByRole("button", { name: "Comment on src/cart/total.ts" }).press("Enter");
  await page.keyboard.type("34");
  await page.keyboard.press("Tab");
  await page.keyboard.type("And test it.");
  await page.keyboard.press("Control+Enter");
  await page.getByText("3 comments").waitFor();
  answer.resolve();
  expect(text).toMatch(
    /1\. `src\/cart\/total\.ts`, line 33:[^]*Name it sum\.[^]*2\. `src\/cart\/total\.ts`, line 34:/u,
  );
  expect(text).toContain("> `return Math.round(exact);`");
  await page.getByText("1 comment", { exact: true }).waitFor();
  await file.getByText("And test it.").waitFor();
  expect(await file.getByText("Name it sum.").count()).toBe(0);
  await page.getByRole("button", { name: "Discard" }).click();
  await page.getByText("1 comment", { exact: true }).waitFor({ state: "detached" });
  await site.client.session.cancel(filled.completed);
});

test("a file that was viewed is folded and stays so until it changes again; words are found in names and lines", async () => {
  const page = await open(filled.failed);
  await page.goto(`/sessions/${filled.running}`);
  const file = page.getByRole("region", { name: "docs/he/README.md" });
  await file.getByText("הסכום").waitFor();
  await file.getByLabel(/^Viewed/u).check();
  await file.getByText("הסכום").waitFor({ state: "detached" });
  await page.getByText("1 of 6 viewed").waitFor();
  await page.reload();
  await page.getByText("1 of 6 viewed").waitFor();
  expect(await file.getByLabel(/^Viewed/u).isChecked()).toBe(true);
  await site.offstage.database.pool.query(
    "update session_repository set patch = replace(patch, '0000000..3333333', '0000000..4444444') where session_id = $1",
    [filled.running],
  );
  await page.reload();
  await file.scrollIntoViewIfNeeded();
  await file.getByText("הסכום").waitFor();
  await page.getByLabel("Find in the changes").fill("MATH.ROUND(exact)");
  await page.getByText("1 file has it").waitFor();
  expect(await file.count()).toBe(0);
  await page.getByLabel("Find in the changes").fill("");
  await page.getByRole("button", { name: "Side by side" }).click();
  await page.getByRole("button", { name: "One below the other" }).waitFor();
  await file.scrollIntoViewIfNeeded();
  await file.getByText("הסכום").waitFor();
  expect(await accessibilityProblems(page)).toEqual([]);
  await page.keyboard.press("Escape");
});

test("the changes show as the agent reports its edits, and the plan ticks", async () => {
  const page = await open(filled.running);
  await page.getByRole("region", { name: "Plan" }).getByText("3 of 4").waitFor();
  await tell(
    filled.running,
    tool("live", {
      title: "src/live.ts",
      kind: "edit",
      content: [{ type: "diff", path: "src/live.ts", oldText: null, newText: "export const live = true;\n" }],
    }),
    { type: "agent.plan", data: { entries: [{ text: "Say so in the changelog", status: "completed" }] } },
  );
  await page.getByRole("region", { name: "src/live.ts" }).getByText("export const live").waitFor();
  await page.getByRole("region", { name: "Plan" }).getByText("1 of 1").waitFor();
});

test("a message that waits is taken back into the field", async () => {
  const { id } = await site.client.session.create({ prompt: "first" });
  await site.client.session.message(id, { message: "and then this" });
  const page = await open(id);
  const waiting = page.getByRole("listitem").filter({ hasText: "and then this" });
  await waiting.getByText("Waits for its turn").waitFor();
  expect(await accessibilityProblems(page)).toEqual([]);
  await waiting.getByRole("button", { name: "Take it back" }).click();
  await waiting.waitFor({ state: "detached" });
  expect(await page.getByLabel("Follow up").inputValue()).toBe("and then this");
  await page.reload();
  const field = page.getByLabel("Follow up");
  expect(await field.inputValue()).toBe("and then this");
  // What is written while a slow server takes a message is the next one, and stays.
  const answer = Promise.withResolvers<void>();
  await page.route(`**/session/${id}/message`, async (route) => {
    await answer.promise;
    await route.continue();
  });
  await field.press("Control+Enter");
  await page.getByRole("button", { name: "Sending" }).waitFor();
  await field.press("End");
  await page.keyboard.type("\nand later that");
  answer.resolve();
  await waiting.waitFor();
  await page.getByRole("button", { name: "Send", exact: true }).waitFor();
  expect(await field.inputValue()).toBe("and later that");
  await site.client.session.cancel(id);
});

test("messages that are taken back at once are all in the field, in whichever order the server answers, beside what was written", async () => {
  const { id } = await site.client.session.create({ prompt: "first" });
  await site.client.session.message(id, { message: "do one thing" });
  await site.client.session.message(id, { message: "do another" });
  const page = await open(id);
  const answers = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  let asked = 0;
  await page.route("**/withdraw", async (route) => {
    await answers[asked++]?.promise;
    await route.continue();
  });
  const waiting = (text: string) => page.getByRole("listitem").filter({ hasText: text });
  for (const text of ["do one thing", "do another"]) {
    const request = page.waitForRequest("**/withdraw");
    await waiting(text).getByRole("button", { name: "Take it back" }).click();
    await request;
  }
  const field = page.getByLabel("Follow up");
  await field.fill("and mine");
  answers[1]?.resolve();
  await expect.poll(() => field.inputValue()).toBe("do another\n\nand mine");
  answers[0]?.resolve();
  await expect.poll(() => field.inputValue()).toBe("do one thing\n\ndo another\n\nand mine");
  await field.fill("");
  await site.client.session.cancel(id);
});

test("what is written to a session is the same in all tabs, and sent in one it is gone from the others", async () => {
  const { id } = await site.client.session.create({ prompt: "first" });
  const page = await open(id);
  const other = await page.context().newPage();
  await other.goto(`/sessions/${id}`);
  await other.getByLabel("Follow up").fill("only once");
  await expect.poll(() => page.getByLabel("Follow up").inputValue()).toBe("only once");
  await page.getByLabel("Follow up").press("Control+Enter");
  await expect.poll(() => other.getByLabel("Follow up").inputValue()).toBe("");
  await site.client.session.cancel(id);
});

test("a session that was cancelled, and goes on with a follow-up, can be cancelled again", async () => {
  const { id } = await site.client.session.create({ prompt: "first" });
  const page = await open(id);
  const cancel = page.getByRole("button", { name: "Cancel" });
  await cancel.click();
  await page.getByRole("button", { name: "Retry" }).waitFor();
  await page.getByLabel("Follow up").fill("go on");
  await page.getByLabel("Follow up").press("Control+Enter");
  await page.getByRole("button", { name: "Retry" }).waitFor({ state: "detached" });
  await cancel.click();
  await page.getByRole("button", { name: "Retry" }).waitFor();
});

test("the progress tells where the time went, what it cost of the budget, and what the sandbox uses", async () => {
  const usage = (memoryBytes: number, cores: number) => ({
    type: "sandbox.usage" as const,
    data: { memoryBytes, memoryLimitBytes: 4e9, cores },
  });
  await tell(filled.running, usage(3e8, 0.2), usage(1.5e9, 1.75));
  const page = await open(`${filled.running}?tab=progress`);
  await page.getByRole("heading", { name: "Where the time went" }).waitFor();
  await page.getByText("Commands").waitFor();
  await page.getByText("$0.41", { exact: true }).waitFor();
  await page.getByText("of $5.00").waitFor();
  await page.getByText("1.5 GB of 4 GB").waitFor();
  await page.getByText("1.8 cores").or(page.getByText("1.75 cores")).waitFor();
  expect(await accessibilityProblems(page)).toEqual([]);
  await page.getByRole("tab", { name: "Changes" }).press("ArrowRight");
  await page.getByRole("tab", { name: "Files", selected: true }).press("ArrowRight");
  await page.getByRole("tab", { name: "Progress", selected: true }).waitFor();
  await page.keyboard.press("c");
  await page.getByLabel("Find in the changes").waitFor();
  await page.keyboard.press("t");
  await page.getByRole("heading", { name: "Where the time went" }).waitFor();
});

test("who asked is on the page", async () => {
  for (const [id, name] of [
    [filled.completed, "Ada Lovelace"],
    [filled.failed, "نور الهدى"],
  ] as const) {
    const page = await open(id);
    await page.getByTitle("Asked by").getByText(name, { exact: true }).waitFor();
  }
});

test("that not all of a patch is kept is said beside it", async () => {
  const words = "Not all of the patch is kept here";
  const page = await open(filled.completed);
  const changes = page.getByRole("region", { name: /^Changes in/u });
  await changes.getByText("src/cart/total.ts").first().waitFor();
  expect(await changes.getByText(words).count()).toBe(0);
  const cut = (isCut: boolean) =>
    site.offstage.database.pool.query("update session_repository set patch_truncated = $2 where session_id = $1", [
      filled.completed,
      isCut,
    ]);
  await cut(true);
  try {
    await page.reload();
    await changes.getByText(words).waitFor();
  } finally {
    await cut(false);
  }
});

test("the patch and the transcript are downloaded", async () => {
  const page = await open(filled.completed);
  await page.getByText("Pull request #482 opened").waitFor();
  const saved = async (name: string): Promise<string> => {
    await page.getByRole("button", { name: "More" }).click();
    const download = page.waitForEvent("download");
    await page.getByRole("button", { name }).click();
    return readFile(await (await download).path(), "utf8");
  };
  expect(await saved("Download the patch")).toBe(fewFiles);
  const transcript = await saved("Download the transcript");
  for (const part of [
    "# Round the cart's total once",
    "I'll look at how the cart",
    "npm test -- cart",
    "Pull request #482",
  ])
    expect(transcript).toContain(part);
});

test("a session is labelled, archived, brought back, and deleted after a question", async () => {
  const { id } = await site.client.session.create({ prompt: "forget me", queueRightAway: false });
  const page = await open(id);
  await page.getByRole("button", { name: "Labels: Label" }).click();
  await page.getByRole("combobox", { name: "Labels" }).fill("later");
  await page.keyboard.press("Enter");
  await page.getByRole("button", { name: "Labels: later" }).waitFor();
  const choose = async (name: string): Promise<void> => {
    await page.getByRole("button", { name: "More" }).click();
    await page.getByRole("button", { name, exact: true }).click();
  };
  await choose("Archive");
  await expect.poll(async () => (await site.client.session.get(id)).archivedAt).not.toBeNull();
  await choose("Take out of the archive");
  await expect.poll(() => site.client.session.get(id)).toMatchObject({ archivedAt: null, labels: ["later"] });
  await choose("Delete");
  const question = page.getByRole("alertdialog", { name: "Delete the session?" });
  await question.waitFor();
  expect(await accessibilityProblems(page)).toEqual([]);
  await question.getByRole("button", { name: "Cancel" }).click();
  await question.waitFor({ state: "detached" });
  await choose("Delete");
  await question.getByRole("button", { name: "Delete" }).click();
  await page.waitForURL((url) => url.pathname === "/");
  await expect(site.client.session.get(id)).rejects.toThrow("was not found");
});

test("a hundred thousand lines of a command's output are drawn where they are looked at, with their colours", async () => {
  const { id } = await site.client.session.create({ prompt: "print much", queueRightAway: false });
  const lines = Array.from({ length: 100_000 }, (_, line) => `\u001b[32m${line}\u001b[0m of many`).join("\n");
  await tell(
    id,
    ...beginning("print much"),
    tool("much", { title: "seq", content: printed(lines) }),
    message("m", "Done."),
  );
  const page = await open(id);
  await page.locator("summary", { hasText: "seq" }).click();
  const output = page.getByLabel("Output");
  // What went wrong stands at the end.
  await output.getByText("99999 of many").waitFor();
  await output.locator(".ansi-green-fg", { hasText: "99999" }).first().waitFor();
  expect(await output.locator("span").count()).toBeLessThan(2_000);
  await output.evaluate("element => element.scrollTo(0, 0)");
  await output.press("Home");
  await output
    .getByText(/^0 of many|\n0 of many/u)
    .first()
    .waitFor();
  expect(await accessibilityProblems(page)).toEqual([]);
});

test("on a phone everything is there in tabs, and nothing sticks out", async () => {
  const page = await open(filled.running, { viewport: { width: 360, height: 740 } });
  await page.getByText("npm test -- cart").first().waitFor();
  for (const tab of ["Conversation", "Changes", "Progress", "Answers"]) {
    await page.getByRole("tab", { name: tab }).click();
    await page.getByRole("tabpanel", { name: tab }).waitFor();
    expect(await scrollsSideways(page)).toBe(false);
    expect(await accessibilityProblems(page)).toEqual([]);
  }
});

test("new output while the user reads further up does not move what they read", async () => {
  const { id } = await site.client.session.create({ prompt: "shell sleep 600", queueRightAway: false });
  await tell(
    id,
    ...beginning("go on"),
    ...Array.from({ length: 400 }, (_, part) => message(`p${part}`, `Part ${part}.`)),
  );
  await site.offstage.database.pool.query(
    "update session set status = 'running', worker = 'elsewhere', lease_until = now() + interval '1 year' where id = $1",
    [id],
  );
  const page = await open(id);
  await page.getByText("Part 399.").waitFor();
  await page.mouse.move(400, 500);
  await page.mouse.wheel(0, -4_000);
  await page.getByRole("button", { name: "Go to the latest" }).waitFor();
  const reading = page.getByText(/^Part \d+\.$/u).nth(12);
  const words = await reading.textContent();
  const place = async (): Promise<number> =>
    Math.round((await page.getByText(words ?? "", { exact: true }).boundingBox())?.y ?? Number.NaN);
  let before = Number.NaN;
  await expect.poll(async () => (before === (before = await place()) ? "still" : "moves")).toBe("still");
  await tell(id, ...work(), message("new", "Something new."));
  await expect.poll(() => page.evaluate<number>("document.documentElement.scrollHeight")).toBeGreaterThan(0);
  await page.getByRole("region", { name: "Plan" }).waitFor();
  expect(await place()).toBe(before);
  await page.getByRole("button", { name: "Go to the latest" }).click();
  await page.getByText("Something new.").waitFor();
});
