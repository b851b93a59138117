import type { Locator, Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { findDefaultOrganization } from "../../src/store/people/organizations.ts";
import { reportWorker } from "../../src/store/queue/worker-nodes.ts";
import { addPerson, addSession } from "../store/fixtures.ts";
import { waitFor } from "../wait-for.ts";
import { accessibilityProblems, scrollsSideways } from "./browser.ts";
import { openSite, type Site } from "./site.ts";

/** What admins of the server look after: how it is, and who may do what. */
let site: Site;
let organizationId: string;
/** Ids and keys of people, by their first name. */
const people: Record<string, { readonly userId: string; readonly key: string }> = {};

beforeAll(async () => {
  site = await openSite();
  organizationId = await findDefaultOrganization(site.offstage.database);
});
afterEach(() => site.requireQuiet());
afterAll(() => site?.close());

const pool = () => site.offstage.database.pool;

async function opened(path: string, options: Parameters<Site["signedIn"]>[0] = {}): Promise<Page> {
  const page = await site.signedIn(options);
  await page.goto(path);
  return page;
}

/** In light on a desktop, and in dark on a phone: axe finds nothing, and nothing sticks out. */
async function isFitting(page: Page): Promise<void> {
  const size = page.viewportSize();
  expect(await accessibilityProblems(page)).toEqual([]);
  await page.emulateMedia({ colorScheme: "dark" });
  await page.setViewportSize({ width: 390, height: 800 });
  expect(await scrollsSideways(page)).toBe(false);
  expect(await accessibilityProblems(page)).toEqual([]);
  await page.emulateMedia({ colorScheme: "light" });
  if (size !== null) await page.setViewportSize(size);
}

const problemsOf = (page: Page): Locator => page.getByRole("list", { name: "What is wrong" }).getByRole("listitem");
const workerOf = (page: Page, id: string): Locator =>
  page.getByRole("list", { name: "Workers" }).getByRole("listitem").filter({ hasText: id });

test("the page of the system has the server's worker, database and disk, and says that nothing is wrong", async () => {
  const page = await opened("/");
  await page.getByRole("link", { name: "System" }).click();
  await page.getByText("Nothing is wrong.").waitFor();
  expect(await problemsOf(page).count()).toBe(0);
  const worker = page.getByRole("list", { name: "Workers" }).getByRole("listitem");
  await worker.getByText("Up", { exact: true }).waitFor();
  await worker.getByText(/^0 of \d+ places taken$/u).waitFor();
  await worker.getByText(/^Offstage \S+, Node\.js \S+ · \d+ mirrors? · \d+ warm sandbox/u).waitFor();
  await worker.getByText(/ of .+ free$/u).waitFor();
  expect(await worker.getByText("Another version").count()).toBe(0);
  const database = page.getByRole("region", { name: "Database" });
  await database.getByText(/^\d{4}_\w+\.sql$/u).waitFor();
  await page
    .getByRole("region", { name: "This server" })
    .getByText(/ of .+ free/u)
    .waitFor();
  await isFitting(page);
});

/** Has a worker count as there however long the test takes. */
async function reportThere(node: Parameters<typeof reportWorker>[1]): Promise<void> {
  await reportWorker(site.offstage.database, node);
  const later = "now() + interval '1 day'";
  await pool().query(`update worker_node set seen_at = ${later}, machine_at = ${later} where id = $1`, [node.id]);
}

test("what goes wrong stands on top without a reload, and goes when it is over", async () => {
  const { database } = site.offstage;
  const page = await opened("/system");
  await page.getByText("Nothing is wrong.").waitFor();
  const agents = [
    {
      id: "a",
      name: "An agent",
      available: true,
      problem: null,
      defaultModel: "m",
      reasoningLevels: [],
      isDefault: true,
    },
  ];
  const node = { agents, defaultAgent: "a:m", concurrency: 1 };
  for (const id of ["a-busy-node", "a-lost-node"]) await reportThere({ id, ...node });
  await workerOf(page, "a-busy-node").getByText("It does not tell its version and its disk.").waitFor();
  await pool().query("update worker_node set seen_at = now() - interval '10 minutes' where id = 'a-lost-node'");
  // The one place of the organization is taken, so that the other session waits.
  await site.client.organization.update({ maxRunningSessions: 1 });
  const running = await addSession(database, organizationId, { queueRightAway: false });
  const waiting = await addSession(database, organizationId, { queueRightAway: false });
  await pool().query(
    `update session set status = 'running', worker = 'a-busy-node', started_at = now(), lease_until = now() + interval '1 hour'
     where id = $1`,
    [running.id],
  );
  await pool().query("update session set status = 'queued', queued_at = now() - interval '20 minutes' where id = $1", [
    waiting.id,
  ]);
  await page.getByText("2 problems").waitFor();
  expect(await problemsOf(page).allTextContents()).toEqual([
    expect.stringContaining("A worker is not seen any more, and did not stop in order: a-lost-node."),
    expect.stringMatching(/A session has waited in the queue for 2\d minutes\./u),
  ]);
  await workerOf(page, "a-lost-node").getByText("Not seen").waitFor();
  await workerOf(page, "a-busy-node").getByText("1 of 1 places taken").waitFor();
  await isFitting(page);

  await pool().query("delete from worker_node where id like 'a-%'");
  await pool().query("delete from session where id = any($1)", [[running.id, waiting.id]]);
  await site.client.organization.update({ maxRunningSessions: null });
  await page.getByText("Nothing is wrong.").waitFor();
  await workerOf(page, "a-busy-node").waitFor({ state: "detached" });
});

test("a worker of another version is marked, and one whose disk is full or nearly so", async () => {
  const page = await opened("/system");
  await page.getByText("Nothing is wrong.").waitFor();
  const disk = { freeBytes: 1, totalBytes: 2e12, neededBytes: 1e9 };
  const machine = { version: "0.0.9", nodeVersion: "22.18.0", startedAt: new Date().toISOString(), disk, mirrors: 1 };
  const node = { agents: [], defaultAgent: null, concurrency: 1 };
  await reportThere({ id: "a-full-node", ...node, machine });
  const filling = { ...machine, disk: { ...disk, freeBytes: 2e9 } };
  await reportThere({ id: "a-filling-node", ...node, machine: filling });
  await page.getByText("3 problems").waitFor();
  expect(await problemsOf(page).allTextContents()).toEqual([
    expect.stringContaining("The disk of the worker a-full-node is full"),
    expect.stringContaining("The disk of the worker a-filling-node is nearly full"),
    expect.stringContaining("2 workers have another version (0.0.9): a-full-node, a-filling-node"),
  ]);
  const full = workerOf(page, "a-full-node");
  await full.getByText("Full", { exact: true }).waitFor();
  await full.getByText("Another version").waitFor();
  await full.getByText("Offstage 0.0.9, Node.js 22.18.0 · 1 mirror · 0 warm sandboxes").waitFor();
  await full.getByRole("meter", { name: "Disk of a-full-node" }).waitFor();
  await workerOf(page, "a-filling-node").getByText("Nearly full").waitFor();
  await isFitting(page);
  await pool().query("delete from worker_node where id like 'a-%'");
  await page.getByText("Nothing is wrong.").waitFor();
});

test("without any worker the page says how one comes, and a server that does not answer is reported", async () => {
  const page = await opened("/");
  await page.route("**/system/health", (route) => route.fulfill({ status: 400, json: { error: "it failed" } }));
  await page.getByRole("link", { name: "System" }).click();
  await page.getByRole("alert").getByText("it failed").waitFor();
  expect(await accessibilityProblems(page)).toEqual([]);
  const health = await site.call("/system/health");
  const problem = { code: "no_worker", severity: "bad", what: "No worker is there.", remedy: "Start one." };
  // Over the route before, which stays: between the two the page would ask the server.
  await page.route("**/system/health", (route) =>
    route.fulfill({ json: { ...health, workers: [], problems: [problem] } }),
  );
  await page.getByRole("button", { name: "Try again" }).click();
  await problemsOf(page).getByText("Stands still").waitFor();
  await page.getByText("No worker is listed.").waitFor();
  await page.getByRole("alert").waitFor({ state: "detached" });
  expect(await accessibilityProblems(page)).toEqual([]);
  await page.route("**/system/health", (route) => route.fulfill({ status: 400, json: { error: "it failed" } }));
  await page.getByText("What is below is from before.").waitFor();
  await problemsOf(page).getByText("No worker is there.").waitFor();
});

test("before the first sign-in, the page of people says how they come, and a failed one that it failed", async () => {
  const page = await opened("/people");
  await page.getByText("No one has signed in by an identity provider yet").waitFor();
  await page.getByText("People who signed in to the organization default or were invited.").waitFor();
  expect(await accessibilityProblems(page)).toEqual([]);
  await page.route("**/user/list*", (route) => route.fulfill({ status: 400, json: { error: "it failed" } }));
  await page.reload();
  await page.getByRole("alert").getByText("it failed").waitFor();
  expect(await accessibilityProblems(page)).toEqual([]);
  await page.unroute("**/user/list*");
  await page.getByRole("button", { name: "Try again" }).click();
  await page.getByText("No one has signed in by an identity provider yet").waitFor();
});

const personOf = (page: Page, name: string): Locator =>
  page.getByRole("list", { name: "People" }).getByRole("listitem").filter({ hasText: name });

test("an admin sees who there is, and gives a role, which counts at once", async () => {
  const { database } = site.offstage;
  people["ada"] = await addPerson(database, organizationId, { name: "Ada Lovelace", role: "admin", scopes: ["admin"] });
  people["grace"] = await addPerson(database, organizationId, { name: "Grace Hopper" });
  people["noor"] = await addPerson(database, organizationId, { name: "نور الهدى" });
  const page = await opened("/people", { key: people["ada"].key });
  await personOf(page, "Ada Lovelace").getByText("you", { exact: true }).waitFor();
  await page.getByText("Also starts and steers sessions").waitFor();
  const grace = personOf(page, "Grace Hopper");
  expect(await grace.getByLabel("Role of Grace Hopper").inputValue()).toBe("member");
  await isFitting(page);
  await grace.getByLabel("Role of Grace Hopper").selectOption("Viewer");
  await page.getByRole("status").getByText("Grace Hopper: Viewer from now on.").waitFor();
  const { users } = await site.client.user.list();
  expect(users.find(({ name }) => name === "Grace Hopper")?.role).toBe("viewer");

  await personOf(page, "Ada Lovelace").getByLabel("Role of Ada Lovelace").selectOption("Member");
  await personOf(page, "Ada Lovelace").getByRole("alert").getByText("this is the last admin").waitFor();
  expect(await page.getByLabel("Role of Ada Lovelace").inputValue()).toBe("admin");
  expect(await accessibilityProblems(page)).toEqual([]);
});

test("a person's sessions are one step away", async () => {
  for (const name of ["grace", "noor"]) {
    await addSession(site.offstage.database, organizationId, {
      prompt: `Work of ${name}`,
      queueRightAway: false,
      requestedBy: people[name]?.userId ?? "",
    });
  }
  const page = await opened("/people");
  await personOf(page, "Grace Hopper").getByRole("link", { name: "Sessions of Grace Hopper" }).click();
  await page.getByRole("link", { name: "Work of grace" }).waitFor();
  expect(new URL(page.url()).searchParams.get("by")).toBe(people["grace"]?.userId);
  expect(await page.getByRole("link", { name: "Work of noor" }).count()).toBe(0);
});

test("a person is disabled, let in again, and removed, each by the keyboard and after a question", async () => {
  const page = await opened("/people", { key: people["ada"]?.key ?? "" });
  const grace = personOf(page, "Grace Hopper");
  const statusOf = async (): Promise<number> =>
    (await fetch(`${site.offstage.url}/me`, { headers: { Authorization: `Bearer ${people["grace"]?.key}` } })).status;
  await grace.getByRole("button", { name: "Disable Grace Hopper" }).press("Enter");
  const question = page.getByRole("alertdialog");
  await question.getByText("signed out everywhere").waitFor();
  expect(await accessibilityProblems(page)).toEqual([]);
  await page.keyboard.press("Escape");
  await question.waitFor({ state: "detached" });
  expect(await statusOf()).toBe(200);
  await grace.getByRole("button", { name: "Disable Grace Hopper" }).press("Enter");
  await question.getByRole("button", { name: "Disable" }).press("Enter");
  await grace.getByText("Disabled", { exact: true }).waitFor();
  expect(await statusOf()).toBe(401);
  expect(await accessibilityProblems(page)).toEqual([]);
  await grace.getByRole("button", { name: "Enable Grace Hopper" }).press("Enter");
  await page.getByRole("status").getByText("Grace Hopper can sign in again.").waitFor();
  expect(await statusOf()).toBe(200);

  // It can't be pressed before the list is there again.
  await grace.getByRole("button", { name: "Remove Grace Hopper", disabled: false }).press("Enter");
  await question.getByText("This can’t be undone").waitFor();
  // It is said for some seconds, however late the list comes.
  const said = page.getByRole("status").getByText("Grace Hopper was removed.");
  await Promise.all([said.waitFor(), question.getByRole("button", { name: "Remove" }).press("Enter")]);
  await grace.waitFor({ state: "detached" });
  expect(await statusOf()).toBe(401);
  expect(await page.getByText("deleted user").count()).toBe(0);
  await page.reload();
  await personOf(page, "نور الهدى").waitFor();
  expect(await page.getByText("deleted user").count()).toBe(0);
});

test("an admin invites a person, who signs in by the link as themselves, and gets another one when it is used", async () => {
  const page = await opened("/people");
  await page.getByRole("button", { name: "Invite" }).click();
  const form = page.getByRole("dialog", { name: "Invite a person" });
  await form.getByRole("button", { name: "Make a link" }).click();
  await form.getByRole("alert").getByText("name must not be empty").waitFor();
  expect(await accessibilityProblems(page)).toEqual([]);
  await form.getByLabel("Name").fill("Edsger <b>D</b>");
  await form.getByLabel("E-mail address (optional)").fill("edsger");
  await form.getByRole("button", { name: "Make a link" }).click();
  await form.getByRole("alert").getByText("email must be an e-mail address").waitFor();
  await form.getByLabel("E-mail address (optional)").fill("edsger@example.com");
  await form.getByLabel("Role").selectOption("Viewer");
  await form.getByRole("button", { name: "Make a link" }).press("Enter");
  const link = page.getByLabel("Link for Edsger <b>D</b>");
  await link.waitFor();
  // The focus is at the link, and not at the button that opened the form.
  await link.and(page.locator(":focus")).waitFor();
  const address = await link.inputValue();
  await page.getByText("This server has no mail server: give them the link yourself.").waitFor();
  const row = personOf(page, "Edsger <b>D</b>");
  await row.getByText("not here yet").waitFor();
  await isFitting(page);
  const theirs = await site.stranger();
  await theirs.goto(address);
  await theirs.getByRole("heading", { name: "Sessions", level: 1 }).waitFor();
  expect(await (await theirs.request.get("/me")).json()).toMatchObject({
    orgId: organizationId,
    scopes: ["read"],
    userId: expect.any(String),
  });
  const navigation = theirs.getByRole("navigation", { name: "Main" });
  expect(await navigation.getByRole("link", { name: "People" }).count()).toBe(0);

  await page.getByRole("button", { name: "Done" }).click();
  await link.waitFor({ state: "detached" });
  await page.reload();
  await row.getByText("edsger@example.com").waitFor();
  expect(await row.getByText("not here yet").count()).toBe(0);
  await row.getByRole("button", { name: "New link Edsger <b>D</b>" }).press("Enter");
  await page.getByRole("alertdialog").getByRole("button", { name: "New link" }).press("Enter");
  await link.waitFor();
  expect(await link.inputValue()).not.toBe(address);
  // A person whom an identity provider signs in gets no link.
  expect(await page.getByRole("button", { name: /^New link/u }).count()).toBe(1);
});

test("a member is offered neither page, and shown why not", async () => {
  const page = await opened("/people", { key: people["noor"]?.key ?? "" });
  await page.getByRole("alert").getByText("lacks the scope admin").waitFor();
  const navigation = page.getByRole("navigation", { name: "Main" });
  await navigation.getByRole("link", { name: "People" }).waitFor({ state: "detached" });
  expect(await navigation.getByRole("link", { name: "System" }).count()).toBe(0);
  await page.goto("/system");
  await page.getByRole("alert").getByText("lacks the scope admin").waitFor();
  expect(await accessibilityProblems(page)).toEqual([]);
});

test("both pages are there in German", async () => {
  const page = await opened("/people", { locale: "de-AT" });
  await page.getByText("Was eine Rolle darf").waitFor();
  await page.getByRole("link", { name: "System" }).click();
  await page.getByText("Alles in Ordnung.").waitFor();
  await waitFor(async () => (await page.title()) === "System · Offstage", "the page has its title");
});
