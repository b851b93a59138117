import type { Locator, Page } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { Role } from "../../src/domain/people/user.ts";
import { waitFor } from "../wait-for.ts";
import { untilOver } from "../world.ts";
import { accessibilityProblems } from "./browser.ts";
import { openSite, type Site } from "./site.ts";

/** What pages offer depends on the signed-in user's role. */
let site: Site;
let sessionId: string;
let automationId: string;

beforeAll(async () => {
  site = await openSite({ OFFSTAGE_PRICES: JSON.stringify({ scripted: { input: 100, output: 100 } }) });
  const triggers = [{ type: "api" }, { type: "webhook" }];
  const made = await site.call("/automation/create", {
    name: "Greet",
    macro: "greet",
    instructions: "say x",
    triggers,
  });
  automationId = made.id;
  await site.call(`/automation/${automationId}/state/update`, { set: { seen: 1 } });
  const { id } = await site.call("/automation/greet/trigger", {});
  await waitFor(async () => (await site.call(`/ledger/${id}`)).outcome !== null, "the trigger has ended");
  const { url } = await site.forge.createRepository("acme", "roles", { "README.md": "# Before\n" });
  const prompt = "shell curl -s https://packages.example.com; true";
  ({ id: sessionId } = await site.client.session.create({ prompt, repositories: [url] }));
  await untilOver(site.client, sessionId);
});
afterAll(() => site?.close());

interface Visitor {
  readonly page: Page;
  readonly role: Role;
}

/** A user who has signed in with a key of the role. */
async function signedInAs(role: Role): Promise<Visitor> {
  const { key } = await site.call("/key/create", { name: role, role });
  return { page: await site.signedIn({ key }), role };
}

/** Opens a page, and waits until what is to be seen is there, and who may do what is known. @returns its content */
async function open({ page, role }: Visitor, path: string, shown: string): Promise<Locator> {
  await page.goto(path);
  const main = page.getByRole("main");
  await main.getByText(shown).filter({ visible: true }).first().waitFor();
  // Until it is known, the way to what only admins may see has its place, and is not seen.
  const forAdmins = page.locator("nav a", { hasText: "Webhooks" });
  await forAdmins.waitFor({ state: role === "admin" ? "visible" : "detached" });
  return main;
}

/** What can be pressed on a page and in its menus, links that look so among it, but for what copies or downloads something or signs out; and its fields of several lines. */
async function offered(visitor: Visitor, path: string, shown: string): Promise<string[]> {
  const main = await open(visitor, path, shown);
  const menus = await main.locator("[popover] li button").allTextContents();
  const ways = await main.locator("a.button").allTextContents();
  const buttons = [...ways, ...(await main.getByRole("button").allTextContents()), ...menus];
  const fields = await main.locator("textarea").count();
  const changing = buttons.filter((name) => !/^(?:$|Copy|Download|Go to the latest|Sign out )/u.test(name));
  return fields === 0 ? changing : [...changing, `${fields} fields`];
}

const everything = async (visitor: Visitor) => ({
  sessions: await offered(visitor, "/", "packages.example.com"),
  session: await offered(visitor, `/sessions/${sessionId}`, "Refused packages.example.com:443"),
  automations: await offered(visitor, "/automations", "Greet"),
  automation: await offered(visitor, `/automations/${automationId}`, "seen"),
  ledger: await offered(visitor, "/ledger", "Fired"),
  settings: await offered(visitor, "/settings", "Your accounts"),
});

const ofMembers = {
  sessions: ["Repository: No repository", "Agent: Default agent", "More", "Save as a draft", "Start", "1 fields"],
  session: ["Labels: Label", "Send", "Share …", "Archive", "Delete", "1 fields"],
  automations: ["New automation"],
  automation: [
    "Edit",
    "Trigger",
    "Pause",
    "Delete",
    "Change",
    "Condition API",
    "Set up API",
    "Condition Webhook, not signed",
    "Set up Webhook, not signed",
    "Replace the address",
    "Add an entry",
    "Change seen",
    "Remove seen",
  ],
  ledger: ["Replay Greet"],
  settings: [],
};

test("a viewer sees every page, and is offered nothing that would be refused", async () => {
  const viewer = await signedInAs("viewer");
  const nothing = Object.fromEntries(Object.keys(ofMembers).map((name) => [name, []]));
  expect(await everything(viewer)).toEqual(nothing);
  await open(viewer, `/sessions/${sessionId}`, "Refused packages.example.com:443");
  expect(await accessibilityProblems(viewer.page)).toEqual([]);
});

test("a member is offered what members may", async () => {
  expect(await everything(await signedInAs("member"))).toEqual(ofMembers);
});

test("an admin is offered more: to allow a host that was refused", async () => {
  const { settings, session, ...others } = await everything(await signedInAs("admin"));
  const { settings: _, session: ofSession, ...rest } = ofMembers;
  expect(others).toEqual(rest);
  expect(session).toEqual(expect.arrayContaining([...ofSession, "Allow for acme/roles"]));
  expect(settings).toEqual(expect.arrayContaining(["Save", "New key"]));
});

test("whose role is changed is shown what was refused, and is offered no more than they may from then on", async () => {
  const { user, url } = await site.call("/user/invite", { name: "Grace Hopper", role: "member" });
  const page = await site.stranger();
  await page.goto(url);
  const prompt = page.getByLabel("What should be done?");
  await prompt.fill("Half a thought");
  // Their role is known. A window that gets the focus again reads the new one afterwards.
  await page.locator("nav a", { hasText: "Webhooks" }).waitFor({ state: "detached" });
  const refused = Promise.withResolvers<void>();
  await page.route("**/me", async (route) => {
    await refused.promise;
    await route.continue();
  });
  await site.call(`/user/${user.id}/update`, { role: "viewer" });
  const answer = page.waitForResponse("**/session/create");
  await prompt.press("Control+Enter");
  expect((await answer).status()).toBe(403);
  refused.resolve();
  await page.getByRole("status").getByText("lacks the scope").waitFor();
  await prompt.waitFor({ state: "detached" });
  await page.getByRole("link", { name: "packages.example.com" }).click();
  await page.getByText("Refused packages.example.com:443").first().waitFor();
  expect(await page.getByLabel("Follow up").count()).toBe(0);
});

test("whose budget is used up, an admin can raise, and others see that", async () => {
  await site.call("/organization/update", { sessionBudgetUsd: 0.2 });
  const prompt = "shell echo a, then shell echo b, then shell echo c, then shell echo d";
  const { id } = await site.client.session.create({ prompt });
  await waitFor(async () => (await site.client.session.get(id)).status === "waiting", "the session waits");
  const path = `/sessions/${id}`;
  const ofMember = await open(await signedInAs("member"), path, "An admin can raise its budget.");
  expect(await ofMember.getByRole("button", { name: "Raise and go on" }).count()).toBe(0);
  const ofAdmin = await open(await signedInAs("admin"), path, "Waiting: ");
  await ofAdmin.getByRole("spinbutton").fill("1000");
  await ofAdmin.getByRole("button", { name: "Raise and go on" }).click();
  expect(await untilOver(site.client, id)).toMatchObject({ status: "completed", failure: null });
});
