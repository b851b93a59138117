import type { Page } from "playwright-core";
import type { Client } from "../../src/client.ts";
import type { Filled } from "../../test/web/content/fill.ts";

/** A state of a page: its address, and what is done there before the picture. */
export interface Scene {
  readonly name: string;
  readonly path: string;
  readonly prepare?: (page: Page) => Promise<void>;
  /** Whether no user is signed in. */
  readonly isStranger?: boolean;
}

/** What a server shows on which nothing has been done yet. */
export const firstScenes: readonly Scene[] = [
  { name: "first-run", path: "/", prepare: untilGuide },
  {
    name: "first-run-german",
    path: "/",
    prepare: async (page) => {
      await german(page);
      await page.getByText("Eine Forge, die Pull-Requests annimmt Erledigt").waitFor();
    },
  },
  { name: "automations-none", path: "/automations" },
  { name: "ledger-none", path: "/ledger" },
  { name: "insight-none", path: "/insight" },
];

/** Waits until the guide to the first pull request knows what is there. */
export async function untilGuide(page: Page): Promise<void> {
  await page.getByText("A forge that takes pull requests Done").waitFor();
}

/** Each page of the router, and what is special to it. */
export async function scenesOf(filled: Filled, client: Client): Promise<Scene[]> {
  const { id: webhook } = await client.webhook.create({
    url: "https://hooks.example.com/offstage",
    events: ["session.completed", "pullRequest.opened"],
  });
  await client.secret.create({ name: "NPM_TOKEN", value: "not-a-real-token" });
  const { url: shared } = await client.session.share(filled.completed);
  const [automation] = (await client.automation.list({})).automations;
  const [repository] = (await client.repository.list({})).codeRepositories;
  const session = (name: string, id: string, rest: Partial<Scene> = {}): Scene => ({
    name,
    path: `/sessions/${id}`,
    ...rest,
  });
  return [
    { name: "sessions", path: "/" },
    { name: "sessions-filtered", path: "/?status=failed" },
    { name: "sessions-nothing", path: "/?q=walrus" },
    { name: "palette", path: "/", prepare: (page) => page.keyboard.press("Control+k") },
    { name: "help", path: "/", prepare: (page) => page.keyboard.press("?") },
    session("session-running", filled.running),
    session("session-completed", filled.completed),
    session("session-failed", filled.failed),
    session("session-waiting", filled.waiting),
    session("session-long", filled.long),
    session("session-progress", filled.running, { path: `/sessions/${filled.running}?tab=progress` }),
    session("session-answers", filled.completed, { path: `/sessions/${filled.completed}?tab=answers` }),
    session("session-files", filled.completed, { path: `/sessions/${filled.completed}?tab=files` }),
    session("session-file", filled.completed, {
      path: `/sessions/${filled.completed}?tab=files&file=shop/src/cart/total.ts`,
    }),
    session("session-german", filled.running, { prepare: german }),
    session("session-changes", filled.completed, { path: `/sessions/${filled.completed}?tab=changes` }),
    session("session-500-files", filled.large, { path: `/sessions/${filled.large}?tab=changes` }),
    { name: "shared", path: shared, isStranger: true },
    { name: "automations", path: "/automations" },
    { name: "automation", path: `/automations/${automation?.id ?? ""}` },
    { name: "automation-editor", path: `/automations/${automation?.id ?? ""}/edit` },
    { name: "repositories", path: "/repositories" },
    { name: "repository", path: `/repositories/${repository?.id ?? ""}` },
    { name: "ledger", path: "/ledger" },
    { name: "insight", path: "/insight?group=agent" },
    { name: "webhooks", path: "/webhooks" },
    { name: "webhook", path: `/webhooks/${webhook}` },
    { name: "people", path: "/people" },
    { name: "settings", path: "/settings" },
    { name: "system", path: "/system" },
    { name: "audit", path: "/audit" },
    { name: "sign-in", path: "/sign-in", isStranger: true },
    { name: "consent-problem", path: "/authorize?problem=expired" },
    { name: "reference", path: "/reference" },
    { name: "missing", path: "/sessions/00000000-0000-4000-8000-000000000000" },
  ];
}

async function german(page: Page): Promise<void> {
  await page.evaluate("localStorage.setItem('offstage.language', 'de')");
  await page.reload();
  await page.locator("html[lang=de]").waitFor();
  await page.evaluate("localStorage.removeItem('offstage.language')");
}
