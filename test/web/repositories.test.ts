import type { Page, Request } from "playwright-core";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import type { Role } from "../../src/domain/people/user.ts";
import { untilOver } from "../world.ts";
import { accessibilityProblems, scrollsSideways } from "./browser.ts";
import { openSite, type Site } from "./site.ts";

let site: Site;
let count = 0;

beforeAll(async () => {
  // A setup that fails is run once.
  site = await openSite({ OFFSTAGE_RETRY_HOURS: "0" });
});
afterEach(() => site.requireQuiet());
afterAll(() => site?.close());

interface Connected {
  readonly id: string;
  readonly name: string;
  readonly url: string;
}

/** A repository of the test's forge, connected. */
async function connected(files: Record<string, string> = {}, more: object = {}): Promise<Connected> {
  const { url } = await site.forge.createRepository("acme", `pages-${(count += 1)}`, {
    "README.md": "# Before\n",
    ...files,
  });
  return site.call("/repository/create", { url, ...more });
}

/** The page of a repository. */
async function openRepository({ id, name }: Connected, options: Parameters<Site["signedIn"]>[0] = {}): Promise<Page> {
  const page = await site.signedIn(options);
  await page.goto(`/repositories/${id}`);
  await page.getByRole("heading", { level: 1, name }).waitFor();
  return page;
}

const section = (page: Page, name: string) => page.getByRole("region", { name, exact: true });
const rows = (page: Page) => page.getByRole("list", { name: "Repositories" }).getByRole("listitem");

async function keyOf(role: Role): Promise<string> {
  return (await site.call("/key/create", { name: role, role })).key;
}

test("a repository is connected by its address, and what is wrong with that is said at its field", async () => {
  const { url } = await site.forge.createRepository("acme", "first", { "README.md": "# First\n" });
  const page = await site.signedIn();
  await page.goto("/");
  await page.getByRole("link", { name: "Repositories" }).click();
  await page.getByText("No repositories yet").waitFor();
  expect(await accessibilityProblems(page)).toEqual([]);

  await page.getByRole("button", { name: "Connect a repository" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByRole("button", { name: "Connect", exact: true }).click();
  await dialog.getByRole("alert").getByText("url is required").waitFor();
  const address = dialog.getByLabel("Address");
  expect(await address.getAttribute("aria-invalid")).toBe("true");
  await address.fill("ftp://example.com/acme/first");
  await dialog.getByRole("button", { name: "Connect", exact: true }).click();
  await dialog.getByRole("alert").getByText("url has the scheme ftp:// which is not supported").waitFor();
  expect(await accessibilityProblems(page)).toEqual([]);

  await address.fill(url);
  await dialog.getByLabel("Note").fill("What came first");
  await dialog.getByRole("button", { name: "Connect", exact: true }).click();
  await page.getByRole("heading", { level: 1, name: "acme/first" }).waitFor();
  await page.getByText("No session yet").waitFor();
  expect((await site.call("/repository/list")).codeRepositories).toMatchObject([
    { name: "acme/first", url, description: "What came first", branch: null },
  ]);
  await page.getByRole("main").getByRole("link", { name: "Repositories" }).click();
  await rows(page).getByText("What came first").waitFor();
});

test("the list is narrowed while words are written, and walked with the keyboard", async () => {
  const wanted = await connected({}, { description: "Where the zebras are" });
  const other = await connected();
  const prompt = "say what zebras eat";
  await site.client.session.create({ prompt, repositories: [wanted.url], queueRightAway: false });
  const page = await site.signedIn();
  await page.goto("/repositories");
  await rows(page).filter({ hasText: other.name }).waitFor();
  expect(await accessibilityProblems(page)).toEqual([]);
  await page.keyboard.press("j");
  const focused = page.locator(":focus");
  const first = (await rows(page).first().getByRole("link").first().textContent()) ?? "";
  expect(await focused.textContent()).toBe(first);
  await page.keyboard.press("j");
  expect(await focused.textContent()).not.toBe(first);
  await page.keyboard.press("k");
  expect(await focused.textContent()).toBe(first);

  await page.keyboard.press("/");
  await page.keyboard.type("ZEBRA");
  await rows(page).filter({ hasText: other.name }).waitFor({ state: "detached" });
  expect(new URL(page.url()).search).toBe("?q=ZEBRA");
  await page.getByText(/^1 of \d+$/u).waitFor();
  await rows(page).getByRole("link", { name: prompt }).waitFor();
  await rows(page).getByText("Draft").waitFor();
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { level: 1, name: wanted.name }).waitFor();
  await page.getByRole("link", { name: prompt }).waitFor();
  await page.getByRole("link", { name: "All of them" }).click();
  await page.waitForURL(`${site.offstage.url}/?repository=${wanted.id}`);
  await page.getByRole("main").getByRole("link", { name: prompt }).waitFor();

  await page.goto("/repositories?q=nothing-like-it");
  await page.getByText("No repository has these words").waitFor();
  expect(await accessibilityProblems(page)).toEqual([]);
});

test("of many, the oldest is found by words and by its address, and rows are drawn as they are asked for", async () => {
  const oldest = await connected();
  await site.offstage.database.pool.query(
    `insert into repository (id, organization_id, name, url, address_key)
     select gen_random_uuid(), organization_id, 'many/' || n, 'https://many.example/many/' || n, 'many.example/many/' || n
     from repository, generate_series(1, 205) n where id = $1`,
    [oldest.id],
  );
  const page = await site.signedIn();
  const asked: string[] = [];
  page.on("request", (request) => asked.push(new URL(request.url()).pathname));
  await page.goto(`/repositories/${oldest.id}`);
  await page.getByRole("heading", { level: 1, name: oldest.name }).waitFor();
  // Its page asks for it alone.
  expect(asked).not.toContain("/repository/list");
  await page.goto("/repositories");
  await rows(page).nth(29).waitFor();
  expect(await rows(page).count()).toBe(30);
  await page.getByRole("button", { name: "Show more" }).click();
  await rows(page).nth(59).waitFor();
  await page.getByLabel("Find a repository").fill(oldest.name);
  await rows(page).getByRole("link", { name: oldest.name, exact: true }).waitFor();
  await page.goto("/repositories/00000000-0000-4000-8000-000000000000");
  await page.getByText("There is no such repository").waitFor();
  await site.offstage.database.pool.query("delete from repository where starts_with(name, 'many/')");
});

test("name, note, own branch and limit are saved, and refused at their fields", async () => {
  const made = await connected();
  const page = await openRepository(made);
  const general = section(page, "General");
  await general.getByLabel("Own branch").fill("not a branch");
  await general.getByRole("button", { name: "Save" }).click();
  await general.getByRole("alert").getByText("branch is not a valid git branch name").waitFor();
  expect(await general.getByLabel("Own branch").getAttribute("aria-invalid")).toBe("true");
  await general.getByLabel("Own branch").fill("develop");
  // A text that is no number is not sent as if no limit were wanted.
  await general.getByLabel("Concurrent sessions").pressSequentially("2e");
  await general.getByRole("button", { name: "Save" }).press("Enter");
  await general.getByLabel("Concurrent sessions").and(page.locator(":focus")).waitFor();
  expect(await general.getByText("Saved").count()).toBe(0);
  await general.getByLabel("Concurrent sessions").fill("0");
  await general.getByRole("button", { name: "Save" }).click();
  await general.getByRole("alert").getByText("maxRunningSessions must be at least 1").waitFor();
  expect(await accessibilityProblems(page)).toEqual([]);
  await general.getByLabel("Concurrent sessions").fill("2");
  await general.getByLabel("Name").fill("The shop");
  await general.getByLabel("Note").fill("Asks the shop’s people first");
  await general.getByRole("button", { name: "Save" }).click();
  await general.getByText("Saved", { exact: true }).waitFor();
  await page.getByRole("heading", { level: 1, name: "The shop" }).waitFor();
  expect(await site.call(`/repository/${made.id}/limits`)).toEqual({ maxRunningSessions: 2 });
  expect((await site.call("/repository/list")).codeRepositories).toContainEqual(
    expect.objectContaining({ id: made.id, branch: "develop", description: "Asks the shop’s people first" }),
  );

  await page.reload();
  expect(await general.getByLabel("Concurrent sessions").inputValue()).toBe("2");
  for (const label of ["Concurrent sessions", "Own branch", "Note"]) await general.getByLabel(label).fill("");
  await general.getByRole("button", { name: "Save" }).click();
  await general.getByText("Saved", { exact: true }).waitFor();
  expect(await site.call(`/repository/${made.id}/limits`)).toEqual({ maxRunningSessions: null });
});

test("setup script, variables and folders are saved, and refused at their fields", async () => {
  const made = await connected();
  const page = await openRepository(made);
  const environment = section(page, "Environment");
  const save = environment.getByRole("button", { name: "Save", exact: true });
  await environment.getByLabel("This script").check();
  await environment.getByLabel("Setup script").fill("npm ci\nnpm run build");
  await environment.getByRole("button", { name: "Add a variable" }).click();
  await environment.getByLabel("Name of variable 1").fill("PATH");
  await environment.getByLabel("Value of variable 1").fill("/opt/bin");
  await save.click();
  await environment.getByRole("alert").getByText("variables.PATH is set by Offstage itself").waitFor();
  expect(await environment.getByLabel("Name of variable 1").getAttribute("aria-invalid")).toBe("true");
  expect(await accessibilityProblems(page)).toEqual([]);
  await environment.getByLabel("Name of variable 1").fill("NODE_ENV");
  await environment.getByRole("button", { name: "Add a variable" }).click();
  await environment.getByLabel("Name of variable 2").fill("NODE_ENV");
  await save.click();
  await environment.getByRole("alert").getByText("NODE_ENV stands there twice").waitFor();
  await environment.getByLabel("Name of variable 2").fill("LINES");
  await environment.getByLabel("Value of variable 2").fill("one\ntwo");
  await environment.getByLabel("Folders").fill("services/api\n../elsewhere");
  await save.click();
  await environment.getByRole("alert").getByText("sparse.1 must be a folder within the repository").waitFor();
  await environment.getByLabel("Folders").fill("services/api\n\nlibraries");
  await save.click();
  await environment.getByText("Saved", { exact: true }).waitFor();
  expect(await site.call(`/repository/${made.id}/environment`)).toEqual({
    setupScript: "npm ci\nnpm run build",
    variables: { NODE_ENV: "/opt/bin", LINES: "one\ntwo" },
    sparse: ["services/api", "libraries"],
  });

  await page.reload();
  expect(await environment.getByLabel("Value of variable 1").inputValue()).toBe("one\ntwo");
  await environment.getByRole("button", { name: "Remove variable 1" }).click();
  await environment.getByLabel("As its devcontainer.json says").check();
  await environment.getByLabel("Folders").fill("");
  await save.click();
  await environment.getByText("Saved", { exact: true }).waitFor();
  expect(await site.call(`/repository/${made.id}/environment`)).toEqual({
    setupScript: null,
    variables: { NODE_ENV: "/opt/bin" },
    sparse: [],
  });
});

test("what is written while the rest is saved is not taken for saved", async () => {
  const page = await openRepository(await connected());
  const environment = section(page, "Environment");
  const answered = Promise.withResolvers<void>();
  const saves = (request: Request): boolean => request.method() === "POST" && request.url().endsWith("/environment");
  await page.route("**/environment", async (route) => {
    if (saves(route.request())) await answered.promise;
    await route.continue();
  });
  await environment.getByLabel("Folders").fill("services");
  const asked = page.waitForRequest(saves);
  await environment.getByRole("button", { name: "Save", exact: true }).click();
  await asked;
  await environment.getByLabel("Folders").fill("services\nlibraries");
  const saved = page.waitForResponse((response) => saves(response.request()));
  answered.resolve();
  await saved;
  // What the answer changes is drawn.
  await page.evaluate("new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn)))");
  const away = page.getByRole("main").getByRole("link", { name: "Repositories" });
  await away.click();
  await page.getByRole("alertdialog", { name: "Leave without saving?" }).waitFor();
  await page.keyboard.press("Escape");
  await environment.getByRole("button", { name: "Save", exact: true }).click();
  await environment.getByText("Saved", { exact: true }).waitFor();
  await away.click();
  await page.waitForURL(/\/repositories$/u);
});

test("what is written is saved and tried, with its output as it comes; a trial is cancelled", async () => {
  const made = await connected();
  const page = await openRepository(made);
  const environment = section(page, "Environment");
  const result = page.getByRole("region", { name: "Result of the trial" });
  await environment.getByLabel("This script").check();
  await environment.getByLabel("Setup script").fill('echo "begun as $WHO"; sleep 1000');
  await environment.getByRole("button", { name: "Add a variable" }).click();
  await environment.getByLabel("Name of variable 1").fill("BAD NAME");
  await environment.getByRole("button", { name: "Save and try the setup" }).click();
  await environment.getByRole("alert").getByText("variables.BAD NAME must be letters").waitFor();
  await environment.getByRole("button", { name: "Save and try the setup" }).waitFor();
  expect((await site.client.session.list({ repositoryId: made.id })).sessions).toEqual([]);
  await environment.getByLabel("Name of variable 1").fill("WHO");
  await environment.getByLabel("Value of variable 1").fill("a trial");
  await environment.getByRole("button", { name: "Save and try the setup" }).click();
  await result.getByText("begun as a trial").waitFor();
  await result.getByText("Running", { exact: true }).waitFor();
  expect(await accessibilityProblems(page)).toEqual([]);
  await result.getByRole("button", { name: "Cancel" }).click();
  await result.getByText("Cancelled", { exact: true }).waitFor();
  expect(await result.getByRole("button", { name: "Cancel" }).count()).toBe(0);
});

test("a trial that fails says why, one that works says so, and both are there after a reload", async () => {
  const made = await connected();
  await site.call(`/repository/${made.id}/environment`, { setupScript: "echo before it breaks; exit 3" });
  await site.forge.commit("acme", made.name.slice("acme/".length), "other", { "OTHER.md": "# Other\n" });
  const page = await openRepository(made);
  const environment = section(page, "Environment");
  const result = page.getByRole("region", { name: "Result of the trial" });
  await environment.getByLabel("Branch to try").fill("not a branch");
  await environment.getByRole("button", { name: "Try the setup" }).click();
  await environment.getByRole("alert").getByText("branch is not a valid git branch name").waitFor();
  await environment.getByLabel("Branch to try").fill("");
  await environment.getByRole("button", { name: "Try the setup" }).click();
  await result.getByText("Failed", { exact: true }).waitFor();
  await result.getByText("(setup_failed)").waitFor();
  await page.reload();
  await result.getByText("before it breaks", { exact: true }).waitFor();
  expect(await accessibilityProblems(page)).toEqual([]);

  await environment.getByLabel("Setup script").fill("ls; echo done it");
  await environment.getByLabel("Branch to try").fill("other");
  await environment.getByRole("button", { name: "Save and try the setup" }).click();
  await result.getByText("The setup works.").waitFor();
  await result.getByText("OTHER.md").waitFor();
  await page.reload();
  await result.getByText("Completed", { exact: true }).waitFor();
  expect(await accessibilityProblems(page)).toEqual([]);
  const { sessions } = await site.client.session.list({ repositoryId: made.id });
  expect(sessions.map(({ setupTrial, spentUsd }) => ({ setupTrial, spentUsd }))).toEqual(
    Array.from({ length: 2 }, () => ({ setupTrial: true, spentUsd: 0 })),
  );
  await result.getByRole("link", { name: "Open it as a session" }).click();
  await page.waitForURL(`${site.offstage.url}/sessions/${sessions[0]?.id}`);
});

test("hosts are saved, and a wrong one is refused at their field", async () => {
  const made = await connected();
  const page = await openRepository(made);
  const egress = section(page, "Hosts that its sandboxes may reach");
  await egress.getByLabel("Hosts", { exact: true }).fill("registries\nhttps://example.com/");
  await egress.getByRole("button", { name: "Save" }).click();
  await egress.getByRole("alert").getByText("egress.1 must be written <host>").waitFor();
  expect(await accessibilityProblems(page)).toEqual([]);
  await egress.getByLabel("Hosts", { exact: true }).fill("registries\n*.example.com:8443\n");
  await egress.getByRole("button", { name: "Save" }).click();
  await egress.getByText("Saved", { exact: true }).waitFor();
  expect(await site.call(`/repository/${made.id}/egress`)).toEqual({ egress: ["registries", "*.example.com:8443"] });
});

test("its own secrets are added, changed and deleted, and their values never shown", async () => {
  const made = await connected();
  await site.call("/secret/create", { name: "OF_ALL", value: "for everybody" });
  const value = "-----BEGIN KEY-----\nline-of-a-key-4711\n-----END KEY-----";
  const page = await openRepository(made);
  const secrets = section(page, "Secrets");
  const list = secrets.getByRole("list", { name: "Secrets" });
  const dialog = page.getByRole("dialog");
  await secrets.getByText("No secrets of its own yet.").waitFor();
  await secrets.getByRole("button", { name: "Add a secret" }).click();
  await dialog.getByLabel("Name").fill("1BAD");
  await dialog.getByLabel("Value").fill(value);
  await dialog.getByRole("button", { name: "Save" }).click();
  await dialog.getByRole("alert").getByText("name must be letters, digits and _").waitFor();
  expect(await accessibilityProblems(page)).toEqual([]);
  await dialog.getByLabel("Name").fill("DEPLOY_KEY");
  await dialog.getByLabel("setup").uncheck();
  await dialog.getByRole("button", { name: "Save" }).click();
  await dialog.getByRole("alert").getByText("phases must have at least 1 entry").waitFor();
  await dialog.getByLabel("setup").check();
  await dialog.getByRole("button", { name: "Save" }).click();
  await list.getByRole("code").getByText("DEPLOY_KEY").waitFor();
  expect(await list.getByRole("listitem").count()).toBe(1);

  await list.getByRole("button", { name: "Change DEPLOY_KEY" }).click();
  await dialog.getByLabel("agent").check();
  await dialog.getByRole("button", { name: "Save" }).click();
  await list.getByText("setup and agent").waitFor();
  await page.reload();
  await list.getByText("setup and agent").waitFor();
  expect(await page.content()).not.toContain("line-of-a-key-4711");
  expect((await site.call(`/secret/list?repositoryId=${made.id}`)).secrets).toMatchObject([
    { name: "DEPLOY_KEY", phases: ["setup", "agent"], repositoryId: made.id },
  ]);
  await list.getByRole("button", { name: "Delete DEPLOY_KEY" }).click();
  await page.getByRole("alertdialog").getByRole("button", { name: "Delete" }).click();
  await secrets.getByText("No secrets of its own yet.").waitFor();
  expect((await site.call("/secret/list")).secrets).toMatchObject([{ name: "OF_ALL" }]);
});

test("a finding is let through, and stopped again", async () => {
  const made = await connected();
  const page = await openRepository(made);
  const findings = section(page, "Findings that may be pushed");
  const dialog = page.getByRole("dialog");
  await findings.getByText("Everything that looks like a secret stops a push.").waitFor();
  await findings.getByRole("button", { name: "Let a finding pass" }).click();
  await dialog.getByRole("button", { name: "Let it pass" }).click();
  await dialog.getByRole("alert").getByText("must have a path, a rule or a fingerprint").waitFor();
  await dialog.getByLabel("Fingerprint").fill("nothing");
  await dialog.getByRole("button", { name: "Let it pass" }).click();
  await dialog.getByRole("alert").getByText("fingerprint must be the 24 hexadecimal digits").waitFor();
  expect(await accessibilityProblems(page)).toEqual([]);
  await dialog.getByLabel("Fingerprint").fill("");
  await dialog.getByLabel("Path").fill("test/fixtures/**");
  await dialog.getByLabel("Rule").fill("github");
  await dialog.getByRole("button", { name: "Let it pass" }).click();
  const list = findings.getByRole("list", { name: "Findings that may be pushed" });
  await list.getByText("test/fixtures/**", { exact: true }).waitFor();
  // Another person adds one meanwhile, which stays.
  await site.call(`/repository/${made.id}/allow-finding`, { rule: "stripe" });
  await list.getByRole("button", { name: "Remove" }).click();
  await page.getByRole("alertdialog").getByRole("button", { name: "Remove" }).click();
  await list.getByRole("code").getByText("stripe").waitFor();
  expect(await site.call(`/repository/${made.id}/findings`)).toEqual({ allowedFindings: [{ rule: "stripe" }] });
});

test("automations are read from its files, each with what is wrong with it, and no longer", async () => {
  const made = await connected({
    ".offstage/automations/greet.yml": "name: Greet\ninstructions: say hello\n",
    ".offstage/automations/wrong.yml": "name: Wrong\n",
  });
  const page = await openRepository(made);
  const files = section(page, "Automations in its files");
  await files.getByText("Not read", { exact: true }).waitFor();
  await files.getByRole("button", { name: "Read them" }).click();
  const list = files.getByRole("list", { name: "Automation files" });
  const good = list.getByRole("listitem").filter({ hasText: "greet.yml" });
  await good.getByText("Works").waitFor();
  const wrong = list.getByRole("listitem").filter({ hasText: "wrong.yml" });
  await wrong.getByText("Refused").waitFor();
  await wrong.getByText("instructions").waitFor();
  expect(await accessibilityProblems(page)).toEqual([]);
  await good.getByRole("link", { name: /^Automation / }).click();
  await page.getByRole("heading", { level: 1, name: "Greet" }).waitFor();
  await page.goBack();
  await files.getByRole("button", { name: "No longer read them" }).click();
  await page.getByRole("alertdialog").getByRole("button", { name: "No longer read them" }).click();
  await files.getByText("Not read", { exact: true }).waitFor();
  expect(await site.call(`/repository/${made.id}/automation-files`)).toMatchObject({ enabled: false, files: [] });
});

test("a repository is disconnected", async () => {
  const made = await connected();
  const page = await openRepository(made);
  await page.getByRole("button", { name: "Disconnect" }).click();
  await page.getByRole("alertdialog").getByText("Its secrets and the automations of its files are deleted.").waitFor();
  await page.getByRole("alertdialog").getByRole("button", { name: "Disconnect" }).click();
  await page.getByRole("heading", { level: 1, name: "Repositories" }).waitFor();
  await rows(page).first().waitFor();
  await rows(page).filter({ hasText: made.url }).waitFor({ state: "detached" });
});

test("a viewer sees what is set and is offered nothing, a member what members may", async () => {
  const made = await connected();
  await site.call(`/repository/${made.id}/environment`, { setupScript: "npm ci", variables: { CI: "1" } });
  await site.call(`/repository/${made.id}/limits`, { maxRunningSessions: 3 });
  const refused: string[] = [];
  const offered = async (role: Role): Promise<string[]> => {
    const page = await site.signedIn({ key: await keyOf(role) });
    page.on("response", (answer) => answer.status() >= 400 && refused.push(answer.url()));
    await page.goto(`/repositories/${made.id}`);
    // Until it is known who it is, everything is offered.
    await page.locator("nav a", { hasText: "Webhooks" }).waitFor({ state: "detached" });
    await page.getByText("CI=1").waitFor();
    await page.getByText("npm ci").waitFor();
    await section(page, "General").getByText("3", { exact: true }).waitFor();
    await page.getByText("Not read", { exact: true }).waitFor();
    expect(await section(page, "Secrets").count()).toBe(0);
    expect(await accessibilityProblems(page)).toEqual([]);
    const buttons = await page.getByRole("main").getByRole("button").allTextContents();
    await page.goto("/repositories");
    await rows(page).filter({ hasText: made.url }).waitFor();
    await page.locator("nav a", { hasText: "Webhooks" }).waitFor({ state: "detached" });
    return [...buttons, ...(await page.getByRole("main").getByRole("button").allTextContents())];
  };
  expect(await offered("viewer")).toEqual([]);
  expect(await offered("member")).toEqual(["Save", "Try the setup", "Connect a repository"]);
  expect(refused).toEqual([]);
});

test("a list, or a repository, that can't be loaded says so, and is loaded when asked again", async () => {
  const made = await connected();
  const page = await site.signedIn();
  await page.route("**/repository/list*", (route) =>
    route.fulfill({ status: 429, json: { error: "too many requests" } }),
  );
  await page.goto("/repositories");
  await page.getByRole("alert").getByText("too many requests").waitFor();
  expect(await accessibilityProblems(page)).toEqual([]);
  await page.unroute("**/repository/list*");
  await page.getByRole("button", { name: "Try again" }).click();
  await rows(page).getByRole("link", { name: made.name, exact: true }).waitFor();
  await page.route(`**/repository/${made.id}`, (route) =>
    route.fulfill({ status: 429, json: { error: "too many requests" } }),
  );
  await page.goto(`/repositories/${made.id}`);
  await page.getByRole("alert").getByText("too many requests").waitFor();
  expect(await accessibilityProblems(page)).toEqual([]);
  await page.unroute(`**/repository/${made.id}`);
  await page.getByRole("button", { name: "Try again" }).click();
  await page.getByRole("heading", { level: 1, name: made.name }).waitFor();
});

test("axe finds nothing and nothing sticks out on a small screen, light and dark, in German", async () => {
  const name = `A repository with a rather long name ${"x".repeat(80)}`;
  const made = await connected({}, { name, description: `A note ${"y".repeat(120)}` });
  await site.call(`/repository/${made.id}/environment`, {
    setupScript: `echo ${"z".repeat(300)}`,
    variables: { [`LONG_${"X".repeat(100)}`]: "v".repeat(300) },
  });
  await site.call("/secret/create", { name: `S_${"X".repeat(100)}`, value: "a value", repositoryId: made.id });
  await site.call(`/repository/${made.id}/allow-finding`, { path: `${"p".repeat(200)}/**` });
  const { id } = await site.client.repository.trySetup(made.id);
  await untilOver(site.client, id);
  const page = await site.signedIn({ viewport: { width: 360, height: 800 }, locale: "de-DE" });
  const check = async (): Promise<void> => {
    for (const colorScheme of ["light", "dark"] as const) {
      await page.emulateMedia({ colorScheme });
      expect(await accessibilityProblems(page)).toEqual([]);
    }
    expect(await scrollsSideways(page)).toBe(false);
  };
  await page.goto("/repositories");
  await rows(page).filter({ hasText: name }).waitFor();
  await check();
  await page.goto(`/repositories/${made.id}?trial=${id}`);
  await page.getByRole("region", { name: "Ergebnis des Versuchs" }).getByText("Fertig", { exact: true }).waitFor();
  await page.getByRole("region", { name: "Ergebnis des Versuchs" }).locator("pre").waitFor();
  await page
    .getByRole("code")
    .getByText(`S_${"X".repeat(100)}`)
    .waitFor();
  await check();
});
