import type { Browser, Page } from "playwright-core";
import { expect } from "vitest";
import type { Client } from "../../src/client.ts";
import type { Offstage } from "../../src/server/offstage.ts";
import { callApi } from "../call.ts";
import { script } from "../end-to-end/script.ts";
import { hangTimeoutMs } from "../hang-timeout.ts";
import { adminKey, createWorld, startInProcess, type World } from "../world.ts";
import { launchBrowser } from "./browser.ts";

/** A server of its own, and a real browser before it. */
export interface Site {
  readonly offstage: Offstage;
  readonly client: Client;
  readonly forge: World["forge"];
  /** Folder of the server's data. */
  readonly data: string;
  /** What the typed client has no word for, and what a page is checked by. */
  // oxlint-disable-next-line typescript/no-explicit-any -- what a test expects of a body is the test's to say
  call(path: string, body?: unknown): Promise<any>;
  /** A page whose browser has signed in with the admin's key, or with another. */
  signedIn(options?: Parameters<Browser["newContext"]>[0] & { readonly key?: string }): Promise<Page>;
  /** A page whose browser has not signed in. */
  stranger(options?: Parameters<Browser["newContext"]>[0]): Promise<Page>;
  /**
   * Fails if browsers complained of anything since it was last asked: errors and warnings of the console, and what pages threw. That a
   * request was refused, which the browser says by itself, is for the page to show. At the end `close` asks once more.
   */
  requireQuiet(): void;
  close(): Promise<void>;
}

function refuse(complaints: readonly string[]): void {
  if (complaints.length > 0) throw new Error(`browsers complained:\n${complaints.join("\n")}`);
}

export async function openSite(overrides: Record<string, string> = {}): Promise<Site> {
  const world = await createWorld(script);
  const { offstage, client } = await startInProcess(world, { OFFSTAGE_DEFAULT_AGENT: "basic:scripted", ...overrides });
  const browser = await launchBrowser();
  const complaints: string[] = [];
  async function openPage(options: Parameters<Browser["newContext"]>[0]): Promise<Page> {
    const context = await browser.newContext({ baseURL: offstage.url, ...options });
    context.setDefaultTimeout(hangTimeoutMs);
    const page = await context.newPage();
    page.on("console", (line) => {
      const isRefusal = line.text().startsWith("Failed to load resource");
      if (["error", "warning"].includes(line.type()) && !isRefusal) complaints.push(`${page.url()} ${line.text()}`);
    });
    page.on("pageerror", (error) => complaints.push(`${page.url()} ${error.message}`));
    return page;
  }
  return {
    offstage,
    client,
    forge: world.forge,
    data: world.data,
    call: (path, body) => callApi(offstage.url, path, body),
    async signedIn({ key = adminKey, ...options } = {}) {
      const page = await openPage(options);
      const answer = await page.request.post("/login/create", { data: { key } });
      expect(answer.status()).toBe(200);
      return page;
    },
    stranger: (options = {}) => openPage(options),
    requireQuiet() {
      refuse(complaints.splice(0));
    },
    async close() {
      const found = complaints.splice(0);
      await browser.close();
      await offstage.stop();
      await world.close();
      refuse(found);
    },
  };
}
