import type { Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { waitFor } from "../wait-for.ts";
import { untilOver } from "../world.ts";
import { accessibilityProblems, scrollsSideways } from "./browser.ts";
import { openSite, type Site } from "./site.ts";

/** What leads from a server with nothing to the first pull request. */
let bare: Site;
let ready: Site;
let repository: string;

beforeAll(async () => {
  ready = await openSite();
  ({ url: repository } = await ready.forge.createRepository("acme", "first", { "README.md": "# Before\n" }));
  // No model, and no token; with another address of GitHub's API, so that no request goes to the real one.
  const { apiUrl } = ready.forge;
  bare = await openSite({
    OFFSTAGE_MODEL_BASE_URL: "",
    OFFSTAGE_MODEL: "",
    OFFSTAGE_DEFAULT_AGENT: "",
    OFFSTAGE_FORGES: JSON.stringify([{ kind: "github", webUrl: "https://github.com", apiUrl }]),
    OFFSTAGE_FORGE_HOSTS: "127.0.0.1",
  });
});
afterEach(() => {
  bare.requireQuiet();
  ready.requireQuiet();
});
afterAll(async () => {
  await bare?.close();
  await ready?.close();
});

const guide = (page: Page) => page.getByRole("region", { name: "Your first pull request" });
/** A step by its title, once it is known whether it is done. */
const step = (page: Page, title: string, state: "Done" | "To do") =>
  guide(page)
    .getByRole("listitem")
    .filter({ has: page.getByText(`${title} ${state}`, { exact: true }) });

test("where nothing is there, each step says what is missing, and what to do", async () => {
  const page = await bare.signedIn();
  await page.goto("/");
  await step(page, "A model’s key", "To do").filter({ hasText: "set ANTHROPIC_API_KEY" }).waitFor();
  await step(page, "An agent that works", "To do").filter({ hasText: "as soon as there is a key" }).waitFor();
  const forge = step(page, "A forge that takes pull requests", "To do");
  await forge.filter({ hasText: "None is connected." }).waitFor();
  await step(page, "A first session", "To do").waitFor();
  await step(page, "Its pull request", "To do").waitFor();
  expect(await accessibilityProblems(page)).toEqual([]);
  await page.setViewportSize({ width: 320, height: 800 });
  expect(await scrollsSideways(page)).toBe(false);

  await forge.getByRole("link", { name: "Connect a forge" }).click();
  await page.getByRole("heading", { name: "Connections" }).waitFor();
  const { url: webUrl, token } = ready.forge;
  const { id } = await bare.client.connection.create({
    kind: "gitea",
    webUrl,
    name: "Our Gitea",
    credential: { type: "token", token },
  });
  await page.goBack();
  await step(page, "A forge that takes pull requests", "Done").filter({ hasText: "Connected: Our Gitea." }).waitFor();

  ready.forge.setGiteaScopes(["read:user"]);
  await bare.client.connection.check(id);
  ready.forge.setGiteaScopes(null);
  await page.reload();
  await forge.filter({ hasText: "Our Gitea: write:repository" }).waitFor();
  await bare.client.connection.delete(id);
});

test("a user who may not connect a forge is shown who may, and one who may not start a session is not led to one", async () => {
  const as = async (role: string): Promise<Page> => {
    const { key } = await bare.call("/key/create", { name: role, role });
    const page = await bare.signedIn({ key });
    await page.goto("/");
    return page;
  };
  const member = await as("member");
  const forge = step(member, "A forge that takes pull requests", "To do");
  await forge.filter({ hasText: "An admin connects it in the settings." }).waitFor();
  expect(await forge.getByRole("link").count()).toBe(0);
  const viewer = await as("viewer");
  await viewer.getByText("Sessions show here once one is started.").waitFor();
  expect(await guide(viewer).count()).toBe(0);
});

test("the guide ends with a real pull request, and says why a session has none", async () => {
  const page = await ready.signedIn();
  await page.goto("/");
  await step(page, "A model’s key", "Done").filter({ hasText: "scripted" }).waitFor();
  await step(page, "An agent that works", "Done").filter({ hasText: "Basic" }).waitFor();
  await step(page, "A forge that takes pull requests", "Done").waitFor();
  const title = "Add a file";
  const start = async (order: string): Promise<void> => {
    const { id } = await ready.client.session.create({ prompt: `${title}\n\n${order}`, repositories: [repository] });
    await untilOver(ready.client, id);
  };
  await start("fail 401");
  await step(page, "A first session", "Done").getByRole("link", { name: "Open it" }).waitFor();
  const pullRequest = step(page, "Its pull request", "To do");
  const [failed] = (await ready.client.session.list({})).sessions;
  await pullRequest.filter({ hasText: failed?.failure?.remedy ?? "?" }).waitFor();
  await start("say nothing");
  await pullRequest.filter({ hasText: "The session ended without a change." }).waitFor();

  await page.getByRole("button", { name: "Repository: No repository" }).click();
  await page.getByRole("dialog", { name: "Repository" }).getByRole("combobox").fill("first");
  await page.getByRole("option", { name: /acme\/first/u }).click();
  await page.getByLabel("What should be done?").fill("write new.txt: new");
  await page.getByRole("button", { name: "Start", exact: true }).click();
  await page.waitForURL(/\/sessions\//u);
  await untilOver(ready.client, new URL(page.url()).pathname.split("/").at(-1) ?? "");
  await page.goto("/");
  const opened = step(page, "Its pull request", "Done");
  const address = await opened.getByRole("link", { name: /#1/u }).getAttribute("href");
  expect(await ready.forge.pullRequests("acme", "first")).toMatchObject([{ number: 1 }]);
  expect(address).toBe(`${repository.replace(/\.git$/u, "")}/pull/1`);
  expect(await accessibilityProblems(page)).toEqual([]);

  // A narrowed list has no guide.
  await page.goto("/?status=completed");
  await page.locator("[data-session]").first().waitFor();
  expect(await guide(page).count()).toBe(0);
  await ready.client.session.create({ prompt: "Later", queueRightAway: false });
  await page.goto("/");
  await waitFor(async () => (await page.locator("[data-session]").count()) === 4, "all four are shown");
  expect(await guide(page).count()).toBe(0);
});
