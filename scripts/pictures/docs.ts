import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Browser, Page } from "playwright-core";
import { demoPrompt } from "../../demo/script.ts";
import type { Client } from "../../src/client.ts";
import { isFinal } from "../../src/domain/sessions/status.ts";
import type { Filled } from "../../test/web/content/fill.ts";
import { createFilm } from "./film.ts";
import { readPng, writePng } from "./png.ts";
import { untilGuide } from "./scenes.ts";

const mostPictureBytes = 150_000;
const mostFilmBytes = 1_500_000;
const folder = join(import.meta.dirname, "../../docs/pictures");

/** A page whose browser is signed in. */
export type Open = (options: Parameters<Browser["newContext"]>[0]) => Promise<Page>;

/** Films a session of the demo from the prompt to the pull request, and takes a picture of its page. */
export async function filmSession(open: Open, client: Client, repository: string): Promise<void> {
  const page = await open({ viewport: { width: 960, height: 720 }, colorScheme: "light", reducedMotion: "reduce" });
  await page.goto("/");
  await untilGuide(page);
  await keepPicture("first-run.png", page);
  const film = createFilm(page);
  await film.take(1_800);
  await write(page, film);
  await page.getByRole("button", { name: "Repository: No repository" }).click();
  await page.getByRole("dialog", { name: "Repository" }).getByRole("combobox").fill(repository.replace(/^.*\//u, ""));
  const option = page.getByRole("option", { name: repository }).first();
  await option.waitFor();
  await film.take(900);
  await option.click();
  await page.getByRole("button", { name: `Repository: ${repository}` }).waitFor();
  await film.take(900);
  await page.getByRole("button", { name: "Start", exact: true }).click();
  await page.waitForURL(/\/sessions\//u);
  const id = new URL(page.url()).pathname.split("/").at(-1) ?? "";
  await film.follow(async () => isFinal((await client.session.get(id)).status));
  const { failure } = await client.session.get(id);
  if (failure !== null) throw new Error(`the session failed: ${failure.reason}`);
  await page.getByText("Pull request #1 opened").waitFor();
  // Markdown and diffs are drawn a moment after the words.
  await page.locator("code", { hasText: "node --test" }).last().waitFor();
  await film.take(2_500);
  await page.getByRole("tab", { name: "Changes" }).click();
  await page.getByText("toUpperCase").first().waitFor();
  await film.take(2_500);
  await page.goto("/");
  await page.getByText("Its pull request Done").waitFor();
  await film.take(3_500);
  await keep("session.gif", film.gif(), mostFilmBytes);
  await page.setViewportSize({ width: 1_360, height: 850 });
  await page.goto(`/sessions/${id}`);
  await page.locator("code", { hasText: "node --test" }).last().waitFor();
  await page.getByRole("region", { name: "src/greet.js" }).getByText("toUpperCase").first().waitFor();
  await keepPicture("session.png", page);
  await page.context().close();
}

async function write(page: Page, film: ReturnType<typeof createFilm>): Promise<void> {
  const field = page.getByLabel("What should be done?");
  const [title = ""] = demoPrompt.split("\n");
  for (const piece of title.match(/.{1,5}/gsu) ?? []) {
    await field.pressSequentially(piece);
    await film.take(110);
  }
  await field.fill(demoPrompt);
  await film.take(1_200);
}

/** Takes the pictures of README and docs that are not of the film, of what an organization has after a while. */
export async function takeDocsPictures(open: Open, filled: Filled): Promise<void> {
  const desktop = { width: 1_360, height: 850 };
  const light = await open({ viewport: desktop, colorScheme: "light" });
  await light.goto("/");
  await light.getByRole("list", { name: "Sessions" }).getByRole("listitem").first().waitFor();
  await light.getByLabel("What should be done?").waitFor();
  await keepPicture("sessions.png", light);
  const dark = await open({ viewport: desktop, colorScheme: "dark" });
  await dark.goto(`/sessions/${filled.completed}?tab=changes`);
  await dark.getByRole("region", { name: "src/cart/total.ts" }).getByText("const exact").first().waitFor();
  await keepPicture("changes.png", dark);
  await dark.goto(`/sessions/${filled.running}?tab=progress`);
  await dark.getByText("Memory").first().waitFor();
  await keepPicture("progress.png", dark);
  const phone = await open({ viewport: { width: 390, height: 844 }, colorScheme: "dark" });
  await phone.goto(`/sessions/${filled.completed}`);
  await phone.getByText("Pull request #482 opened").waitFor();
  await keepPicture("phone.png", phone);
  for (const page of [light, dark, phone]) await page.context().close();
}

async function keepPicture(name: string, page: Page): Promise<void> {
  const png = await page.screenshot({ animations: "disabled" });
  await keep(name, writePng(readPng(png)), mostPictureBytes);
}

/** @throws Error if it is larger than what a page that shows it should load */
async function keep(name: string, bytes: Buffer, most: number): Promise<void> {
  if (bytes.length > most) throw new Error(`${name} has ${bytes.length} bytes; it may have ${most}`);
  await mkdir(folder, { recursive: true });
  await writeFile(join(folder, name), bytes);
  console.log(`docs/pictures/${name}: ${bytes.length} bytes`);
}
