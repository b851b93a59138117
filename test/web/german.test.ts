import { once } from "node:events";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import type { Locator, Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { findDefaultOrganization } from "../../src/store/people/organizations.ts";
import germanAudit from "../../src/web/texts/de/audit.ts";
import germanConsent from "../../src/web/texts/de/consent.ts";
import germanElements from "../../src/web/texts/de/elements.ts";
import germanHome from "../../src/web/texts/de/home.ts";
import germanMoreOptions from "../../src/web/texts/de/more-options.ts";
import germanPullRequests from "../../src/web/texts/de/pull-requests.ts";
import germanSecrets from "../../src/web/texts/de/secrets.ts";
import germanSettings from "../../src/web/texts/de/settings.ts";
import germanShares from "../../src/web/texts/de/shares.ts";
import germanShell from "../../src/web/texts/de/shell.ts";
import germanSignIn from "../../src/web/texts/de/sign-in.ts";
import germanWebhooks from "../../src/web/texts/de/webhooks.ts";
import { english as audit } from "../../src/web/texts/en/audit.ts";
import { english as consent } from "../../src/web/texts/en/consent.ts";
import { english as elements } from "../../src/web/texts/en/elements.ts";
import { english as home } from "../../src/web/texts/en/home.ts";
import { english as moreOptions } from "../../src/web/texts/en/more-options.ts";
import { english as pullRequests } from "../../src/web/texts/en/pull-requests.ts";
import { english as secrets } from "../../src/web/texts/en/secrets.ts";
import { english as settings } from "../../src/web/texts/en/settings.ts";
import { english as shares } from "../../src/web/texts/en/shares.ts";
import { english as shell } from "../../src/web/texts/en/shell.ts";
import { english as signIn } from "../../src/web/texts/en/sign-in.ts";
import { english as webhooks } from "../../src/web/texts/en/webhooks.ts";
import { startForge, type TestForge } from "../forge/server.ts";
import { addGrant, addPerson } from "../store/fixtures.ts";
import { accessibilityProblems, scrollsSideways } from "./browser.ts";
import { openSite, type Site } from "./site.ts";
import { foreignWords, wordsLeft } from "./words-left.ts";

let site: Site;
let forge: TestForge;
let receiver: Server;
/** Of a person who may have accounts at forges. */
let key: string;

beforeAll(async () => {
  forge = await startForge();
  receiver = createServer((_request, response) => void response.writeHead(410).end()).listen(0, "127.0.0.1");
  await once(receiver, "listening");
  const forges = [{ kind: "github", webUrl: forge.url, apiUrl: forge.apiUrl, token: forge.token }];
  site = await openSite({
    OFFSTAGE_FORGES: JSON.stringify(forges),
    OFFSTAGE_FORGE_HOSTS: "127.0.0.1",
    OFFSTAGE_WEBHOOK_HOSTS: "127.0.0.1",
  });
  const { database } = site.offstage;
  const organizationId = await findDefaultOrganization(database);
  ({ key } = await addPerson(database, organizationId, { name: "Ada Lovelace", role: "admin", scopes: ["admin"] }));
  await addGrant(database, organizationId);
});
afterAll(async () => {
  await site?.close();
  receiver?.close();
  await forge?.close();
});
afterEach(() => site.requireQuiet());

/** Names that tests gave. */
const names = /first admin key|A program/u;

/** Fails if a text of the part, or of what every page shows, is there in English. @param pair the part in English and German */
async function requireGerman(page: Page, [english, german]: readonly [object, object]): Promise<void> {
  const words = foreignWords(
    { elements, shell, english },
    { elements: germanElements, shell: germanShell, english: german },
  );
  expect((await wordsLeft(page, words)).filter((line) => !names.test(line))).toEqual([]);
}

/** And if axe finds something, or something sticks out. */
async function requireGood(page: Page, pair: readonly [object, object]): Promise<void> {
  await requireGerman(page, pair);
  expect(await accessibilityProblems(page)).toEqual([]);
  expect(await scrollsSideways(page)).toBe(false);
}

/** Opens each dialog of the page, looks into it, and closes it. @param look at one that is open */
async function eachDialog(page: Page, look: (dialog: Locator) => Promise<void>): Promise<void> {
  const openers = page.getByRole("main").locator("[aria-haspopup=dialog]:enabled");
  const dialog = page.locator("dialog[open]");
  for (const opener of await openers.all()) {
    await opener.click();
    await dialog.waitFor();
    await look(dialog);
    await page.keyboard.press("Escape");
    await dialog.waitFor({ state: "detached" });
  }
}

test("sign-in", async () => {
  const page = await site.stranger({ locale: "de-DE", viewport: { width: 390, height: 800 } });
  const pair = [signIn, germanSignIn] as const;
  const methods = { methods: [{ id: "oidc", name: "Acme" }] };
  await page.route("**/login/methods", (route) => route.fulfill({ json: methods }));
  await page.goto("/sign-in");
  await page.getByRole("link", { name: "Anmelden mit Acme" }).waitFor();
  await requireGood(page, pair);
  await page.goto("/sign-in?problem=expired");
  await page.getByRole("alert").getByText(germanSignIn.problems.expired).waitFor();
});

test("whether a program may act", async () => {
  const page = await site.signedIn({ key, locale: "de-DE", viewport: { width: 390, height: 800 } });
  const pair = [consent, germanConsent] as const;
  const ask = async (options: Record<string, string>): Promise<void> => {
    const query = new URLSearchParams({
      response_type: "code",
      client_id: "offstage-cli",
      redirect_uri: "http://127.0.0.1:9/callback",
      scope: "read write trigger admin",
      code_challenge: "x".repeat(43),
      code_challenge_method: "S256",
      ...options,
    });
    await page.goto(`/oauth/authorize?${query.toString()}`);
  };
  await ask({});
  await page.getByText(germanConsent.scopes.admin).waitFor();
  await requireGood(page, pair);
  await ask({ scope: "read", resource: `${site.offstage.url}/mcp` });
  await page.getByText(germanConsent.couldByTools).waitFor();
  await requireGerman(page, pair);
  for (const [code, sentence] of Object.entries({
    ...germanConsent.problem.sentences,
    "": germanConsent.problem.none,
  })) {
    await page.goto(`/authorize?problem=${code}`);
    await page.getByText(sentence).waitFor();
    await requireGerman(page, pair);
  }
});

test("the audit log", async () => {
  const pair = [audit, germanAudit] as const;
  await site.offstage.database.pool.query(
    `insert into audit_entry (id, organization_id, actor, action, status)
     select gen_random_uuid(), organization.id, actor, 'updateOrganization', 403
     from organization, unnest(array['key', 'user', 'browser', 'command', 'nobody']) as actor`,
  );
  const page = await site.signedIn({ key, locale: "de-DE", viewport: { width: 390, height: 800 } });
  await page.goto("/audit");
  await page.getByText(`${germanAudit.outcomes.allowed} (200)`).first().waitFor();
  await page.getByText(germanAudit.actors.nobody).waitFor();
  await requireGood(page, pair);
  await page.getByLabel(germanAudit.outcome).selectOption(germanAudit.choices.failed);
  await page.getByText(germanAudit.nothing).waitFor();
  await requireGerman(page, pair);
});

test("webhooks", async () => {
  const pair = [webhooks, germanWebhooks] as const;
  const texts = germanWebhooks;
  const page = await site.signedIn({ key, locale: "de-DE", viewport: { width: 390, height: 800 } });
  await page.goto("/webhooks");
  await page.getByText(texts.none).waitFor();
  await requireGood(page, pair);
  await page.getByRole("button", { name: texts.new }).click();
  await page.getByLabel(texts.form.chosen).check();
  await page.getByRole("button", { name: texts.create }).click();
  await page.getByRole("alert").getByText(texts.form.nothingChosen).waitFor();
  await requireGood(page, pair);
  await page.getByLabel(texts.form.everything).check();
  const url = `http://127.0.0.1:${String((receiver.address() as AddressInfo).port)}/`;
  await page.getByLabel(texts.form.url).fill(url);
  await page.getByRole("button", { name: texts.create }).click();
  await page.getByLabel(texts.secretOf(url)).waitFor();
  await requireGerman(page, pair);

  await page.getByRole("link", { name: url }).click();
  await page.getByText(texts.deliveries.none).waitFor();
  await requireGerman(page, pair);
  await page.getByRole("button", { name: texts.test }).click();
  const row = page.getByRole("list", { name: texts.deliveries.title }).getByRole("listitem").first();
  await row.locator("summary").click();
  await row.getByText(texts.log.answered(410)).first().waitFor();
  await row.getByText(texts.log.enableFirst).waitFor();
  await page.getByRole("note").waitFor();
  await requireGood(page, pair);
  await eachDialog(page, () => requireGerman(page, pair));
  await page.getByRole("link", { name: texts.title, exact: true }).first().click();
  await page.getByText(texts.disabledBy("")).waitFor();
  await requireGerman(page, pair);
  await page.goto("/webhooks/00000000-0000-4000-8000-000000000000");
  await page.getByText(texts.missing).waitFor();
  await requireGerman(page, pair);
});

test("the field that starts a session, with what else can be said of one", async () => {
  const pair = [
    { home, moreOptions, pullRequests },
    { home: germanHome, moreOptions: germanMoreOptions, pullRequests: germanPullRequests },
  ] as const;
  const page = await site.signedIn({ key, locale: "de-DE", viewport: { width: 390, height: 800 } });
  await page.goto("/");
  await page.getByRole("button", { name: germanHome.composer.more(0) }).click();
  await page.getByLabel(germanMoreOptions.repositories).fill("x");
  await page.getByText(germanMoreOptions.together).waitFor();
  await page.getByRole("button", { name: germanMoreOptions.labels }).click();
  await page.getByRole("combobox", { name: germanMoreOptions.labels }).fill("neu");
  await page.getByRole("option", { name: germanMoreOptions.addLabel("neu") }).waitFor();
  await requireGood(page, pair);
});

/** One of everything that the settings list. */
async function fillSettings(): Promise<void> {
  const ada = forge.addPerson("ada");
  forge.setScopes("repo");
  const answer = await fetch(`${site.offstage.url}/account/create`, {
    method: "POST",
    headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
    body: JSON.stringify({ webUrl: forge.url, token: ada.token }),
  });
  expect(answer.ok).toBe(true);
  forge.setGiteaScopes(["write:repository"]);
  const credential = { type: "token", token: forge.token };
  const connection = { kind: "gitea", webUrl: forge.url, name: "Gitea", credential };
  const { id } = await site.call("/connection/create", connection);
  await site.call(`/connection/${id}/update`, { mention: "robo", allowedBots: [] });
  const { session } = site.client;
  await session.share((await session.create({ prompt: "Etwas", queueRightAway: false })).id);
  await site.call("/secret/create", { name: "NPM_TOKEN", value: "x", phases: ["setup", "agent"] });
  const expiresAt = new Date(Date.now() + 86_400_000).toISOString();
  await site.call("/key/create", { name: "CI", scopes: ["read", "write", "trigger"], expiresAt });
  const revoked = await site.call("/key/create", { name: "CI 2", role: "viewer" });
  await site.call(`/key/${revoked.id}/revoke`, {});
}

test("settings", async () => {
  const pair = [
    { settings, secrets, shares },
    { settings: germanSettings, secrets: germanSecrets, shares: germanShares },
  ] as const;
  const page = await site.signedIn({ key, locale: "de-DE", viewport: { width: 390, height: 800 } });
  await page.goto("/settings");
  for (const { none } of [germanSettings.accounts, germanSettings.connections]) await page.getByText(none).waitFor();
  await requireGood(page, pair);
  await fillSettings();
  await page.reload();
  for (const name of ["ada", "Gitea", "NPM_TOKEN", "CI 2", "A program"])
    await page.getByText(name, { exact: true }).first().waitFor();
  await requireGood(page, pair);
  await eachDialog(page, async (dialog) => {
    await requireGerman(page, pair);
    const role = dialog.getByLabel(germanSettings.keys.role, { exact: true });
    if ((await role.count()) > 0) {
      await role.selectOption(germanSettings.keys.roles.trigger);
      await dialog.getByLabel(germanSettings.keys.automations).selectOption("some");
      await dialog.getByText(germanSettings.keys.noAutomations).waitFor();
      await requireGerman(page, pair);
    }
    const kinds = dialog.getByLabel(germanSettings.connection.forge, { exact: true });
    if ((await kinds.count()) === 0) return;
    for (const kind of ["azure", "gitlab", "bitbucket", "bitbucketDataCenter", "git", "github"]) {
      await kinds.selectOption(kind);
      await requireGerman(page, pair);
    }
    for (const type of ["register", "app", "configured"]) {
      await dialog.getByLabel(germanSettings.connection.credential).selectOption(type);
      await requireGerman(page, pair);
    }
    expect(await accessibilityProblems(page)).toEqual([]);
  });
  await page.getByRole("button", { name: germanSettings.save, exact: true }).click();
  await page.getByText(germanSettings.saved, { exact: true }).waitFor();
  await page.goto("/settings?connection=expired");
  await page.getByText(germanSettings.connections.problems.expired).waitFor();
});
