import { createHash } from "node:crypto";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Page } from "playwright-core";
import { adminKey } from "../world.ts";
import { accessibilityProblems, scrollsSideways } from "./browser.ts";
import { openSite, type Site } from "./site.ts";

let site: Site;
/** The program that asks, which waits for its answer on this machine. */
let program: Server;
let redirectUri: string;
const answers: URLSearchParams[] = [];

beforeAll(async () => {
  site = await openSite();
  program = createServer((request, response) => {
    const url = new URL(request.url ?? "", "http://127.0.0.1");
    if (url.pathname === "/callback") answers.push(url.searchParams);
    response.writeHead(200, { "content-type": "text/html" }).end("<title>back</title>Back at the program.");
  });
  await new Promise<void>((resolve) => program.listen(0, "127.0.0.1", resolve));
  redirectUri = `http://127.0.0.1:${(program.address() as AddressInfo).port}/callback`;
});
afterAll(async () => {
  program?.close();
  await site?.close();
});

const verifier = "v".repeat(43);

function asks(changes: Record<string, string> = {}): string {
  const query = new URLSearchParams({
    response_type: "code",
    client_id: "offstage-cli",
    redirect_uri: redirectUri,
    scope: "read write",
    state: "s",
    code_challenge: createHash("sha256").update(verifier).digest("base64url"),
    code_challenge_method: "S256",
    ...changes,
  });
  return `/oauth/authorize?${query.toString()}`;
}

async function tokenOf(code: string): Promise<string> {
  const body = new URLSearchParams({
    grant_type: "authorization_code",
    client_id: "offstage-cli",
    code,
    redirect_uri: redirectUri,
    code_verifier: verifier,
  });
  const answer = (await (await fetch(`${site.offstage.url}/oauth/token`, { method: "POST", body })).json()) as {
    access_token: string;
  };
  return answer.access_token;
}

const reads = async (token: string): Promise<number> =>
  (await fetch(`${site.offstage.url}/session/list`, { headers: { authorization: `Bearer ${token}` } })).status;

describe.each(["light", "dark"] as const)("in %s", (colorScheme) => {
  test.each([360, 1280])("a person sees at %i px who asks for what, and lets it act", async (width) => {
    const page = await site.signedIn({ colorScheme, viewport: { width, height: 800 } });
    await page.goto(asks());
    await page.getByRole("heading", { name: "Let Offstage command line act for you?" }).waitFor();
    await page.getByText(new URL(redirectUri).host).waitFor();
    await page.getByText("Start, steer and cancel sessions").waitFor();
    expect(await accessibilityProblems(page)).toEqual([]);
    expect(await scrollsSideways(page)).toBe(false);
    await page.getByRole("button", { name: "Allow" }).click();
    await page.getByText("Back at the program.").waitFor();
    const answer = answers.at(-1);
    expect(answer?.get("state")).toBe("s");
    expect(await reads(await tokenOf(answer?.get("code") ?? ""))).toBe(200);
    await page.context().close();
  });
});

test("a person who is not signed in does so first, and comes back to the question", async () => {
  const page = await site.signedIn();
  await page.context().clearCookies();
  await page.goto(asks());
  await page.getByLabel("API key").fill(adminKey);
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.getByRole("heading", { name: /act for you/u }).waitFor();
  await page.getByRole("button", { name: "Refuse" }).click();
  await page.getByText("Back at the program.").waitFor();
  expect(answers.at(-1)?.get("error")).toBe("access_denied");
  await page.context().close();
});

test("a mistake of the program is shown here, and the browser is not redirected to it", async () => {
  const page: Page = await site.signedIn();
  await page.goto(asks({ redirect_uri: "https://evil.example/callback" }));
  await page.getByText("Nothing was allowed. Have it register again").waitFor();
  expect(new URL(page.url()).pathname).toBe("/authorize");
  expect(await accessibilityProblems(page)).toEqual([]);
  await page.context().close();
});

test("what was allowed is in the settings, and is ended there", async () => {
  const page = await site.signedIn();
  await page.goto(asks({ scope: "read" }));
  await page.getByRole("button", { name: "Allow" }).click();
  await page.getByText("Back at the program.").waitFor();
  const token = await tokenOf(answers.at(-1)?.get("code") ?? "");
  expect(await reads(token)).toBe(200);
  await page.goto("/settings");
  const row = page.getByRole("region", { name: "Programs" }).getByRole("listitem").first();
  await row.locator("bdi", { hasText: "Offstage command line" }).waitFor();
  expect(await accessibilityProblems(page)).toEqual([]);
  await row.getByRole("button", { name: /^End/u }).click();
  await page.getByRole("alertdialog").getByRole("button", { name: /^End/u }).click();
  await expect.poll(() => reads(token)).toBe(401);
  await page.context().close();
});
