import { readFile } from "node:fs/promises";
import { join } from "node:path";
import tls from "node:tls";
import type { CDPSession, Page, Worker } from "playwright-core";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { createAuthority } from "../../src/gateway/egress/certificates.ts";
import { findDefaultOrganization } from "../../src/store/people/organizations.ts";
import germanElements from "../../src/web/texts/de/elements.ts";
import german from "../../src/web/texts/de/notices.ts";
import germanPeople from "../../src/web/texts/de/people.ts";
import { english as elements } from "../../src/web/texts/en/elements.ts";
import { english } from "../../src/web/texts/en/notices.ts";
import { english as signIn } from "../../src/web/texts/en/sign-in.ts";
import { startMailServer, startPushReceiver, type MailServer, type PushReceiver } from "../notices/receivers.ts";
import { addPerson } from "../store/fixtures.ts";
import { accessibilityProblems, scrollsSideways } from "./browser.ts";
import { openSite, type Site } from "./site.ts";
import { foreignWords, wordsLeft } from "./words-left.ts";

const authority = createAuthority("The push service's");
let site: Site;
let mail: MailServer;
let receiver: PushReceiver;
/** Of Ada Lovelace, whose address is verified. */
let ada: string;
/** Of Grace Hopper, who has none. */
let grace: string;

beforeAll(async () => {
  tls.setDefaultCACertificates([...tls.getCACertificates(), authority.certificate]);
  mail = await startMailServer({ startTls: false });
  site = await openSite({
    OFFSTAGE_WEBHOOK_HOSTS: "127.0.0.1",
    OFFSTAGE_SMTP_URL: `smtp://127.0.0.1:${String(mail.port)}?tls=none`,
    OFFSTAGE_MAIL_FROM: "Offstage <offstage@company.example>",
  });
  const { database } = site.offstage;
  const organizationId = await findDefaultOrganization(database);
  const { userId, key } = await addPerson(database, organizationId, { name: "Ada Lovelace" });
  ada = key;
  await database.pool.query("update user_account set email = 'ada@company.example' where id = $1", [userId]);
  ({ key: grace } = await addPerson(database, organizationId, { name: "Grace Hopper", role: "viewer" }));
  const { push } = await asAda("/notice/settings");
  receiver = await startPushReceiver(() => push.publicKey, authority.serverFor("127.0.0.1"));
});
afterAll(async () => {
  await site?.close();
  await receiver?.close();
  await mail?.close();
});
afterEach(() => site.requireQuiet());

// oxlint-disable-next-line typescript/no-explicit-any -- what a test expects of a body is the test's to say
async function asAda(path: string, body?: unknown, headers: Record<string, string> = {}): Promise<any> {
  const answer = await fetch(`${site.offstage.url}${path}`, {
    headers: { authorization: `Bearer ${ada}`, "content-type": "application/json", ...headers },
    ...(body !== undefined && { method: "POST", body: JSON.stringify(body) }),
  });
  expect(answer.status).toBe(200);
  return answer.json();
}

const section = (page: Page, texts: typeof english = english) => page.getByRole("region", { name: texts.title });
const choice = (page: Page, kind: keyof typeof english.kinds, channel: "push" | "email") =>
  page.getByRole("combobox", { name: `${english.kinds[kind]} ${english.channels[channel]}` });

async function requireGood(page: Page): Promise<void> {
  expect(await accessibilityProblems(page)).toEqual([]);
  expect(await scrollsSideways(page)).toBe(false);
}

test("choices are saved and shown again", async () => {
  const page = await site.signedIn({ key: ada });
  await page.goto("/settings");
  await section(page).getByText(english.mailTo("ada@company.example")).waitFor();
  expect(await choice(page, "session.completed", "push").inputValue()).toBe("mine");
  expect(await choice(page, "session.completed", "email").inputValue()).toBe("off");
  await choice(page, "session.completed", "push").selectOption("All");
  await choice(page, "pullRequest.merged", "email").selectOption("Mine");
  await page.getByRole("link", { name: "Sessions", exact: true }).click();
  await page.getByRole("alertdialog").getByRole("button", { name: "Cancel" }).click();
  await page.route("**/notice/settings/update", (route) =>
    route.fulfill({ status: 503, json: { error: { message: "the database is away" } } }),
  );
  await section(page).getByRole("button", { name: english.save }).click();
  await section(page).getByRole("alert").waitFor();
  await requireGood(page);
  await page.unroute("**/notice/settings/update");
  // What is chosen while a slow server saves the rest is still to be saved.
  const answer = Promise.withResolvers<void>();
  await page.route("**/notice/settings/update", async (route) => {
    await answer.promise;
    await route.continue();
  });
  const asked = page.waitForRequest("**/notice/settings/update");
  await section(page).getByRole("button", { name: english.save }).click();
  await asked;
  await choice(page, "session.failed", "push").selectOption("All");
  const answered = page.waitForResponse("**/notice/settings/update");
  answer.resolve();
  await answered;
  // What the answer changes is drawn.
  await page.evaluate("new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn)))");
  expect(await choice(page, "session.failed", "push").inputValue()).toBe("all");
  await section(page).getByRole("button", { name: english.save }).click();
  await section(page).getByText(english.saved, { exact: true }).waitFor();
  await page.reload();
  await choice(page, "session.completed", "push").waitFor();
  expect(await choice(page, "session.completed", "push").inputValue()).toBe("all");
  expect(await choice(page, "session.failed", "push").inputValue()).toBe("all");
  expect(await choice(page, "pullRequest.merged", "email").inputValue()).toBe("mine");
  const { settings } = await asAda("/notice/settings");
  expect(settings).toContainEqual({ kind: "session.completed", push: "all", email: "off" });
  expect(settings).toContainEqual({ kind: "pullRequest.merged", push: "off", email: "mine" });
});

test("it says what is missing for mail, and to a key without an owner that it has no notices", async () => {
  const page = await site.signedIn({ key: grace });
  await page.goto("/settings");
  await section(page).getByText(english.noAddress).waitFor();
  await section(page).getByText(english.noBrowsers).waitFor();
  expect(await choice(page, "session.failed", "email").isDisabled()).toBe(true);
  expect(await choice(page, "session.failed", "push").isEnabled()).toBe(true);
  await section(page).getByRole("button", { name: english.test }).click();
  await section(page).getByRole("alert").getByText("there is nothing to send to").waitFor();
  await page.route("**/notice/settings", async (route) => {
    const answer = await (await route.fetch()).json();
    await route.fulfill({ json: { ...answer, email: { address: null, available: false } } });
  });
  await page.reload();
  await section(page).getByText(english.noMailServer).waitFor();

  await page.unroute("**/notice/settings");
  await page.route("**/notice/settings", (route) => route.fulfill({ status: 400, json: {} }));
  await page.reload();
  await section(page).getByRole("alert").waitFor();
  await requireGood(page);
  await page.unroute("**/notice/settings");
  await section(page).getByRole("button", { name: "Try again" }).click();
  await section(page).getByText(english.noAddress).waitFor();

  const nobody = await site.signedIn();
  await nobody.goto("/settings");
  await section(nobody).getByText(english.nobody).waitFor();
  expect(await section(nobody).getByRole("button").count()).toBe(0);
  expect(await accessibilityProblems(nobody)).toEqual([]);
});

test("a browser that can't be pushed to shows why, and what to do", async () => {
  const page = await site.signedIn({ key: grace });
  await page.addInitScript(`
    if (window.name === "insecure") Object.defineProperty(window, "isSecureContext", { value: false });
    if (["unsupported", "homeScreen"].includes(window.name)) delete window.PushManager;
    if (window.name === "homeScreen") navigator.standalone = false;
  `);
  await page.goto("/settings");
  // The last is what this browser says of itself, which has no place for notices.
  for (const why of ["insecure", "unsupported", "homeScreen", "refused"] as const) {
    await page.evaluate(`window.name = "${why}"`);
    await page.reload();
    await section(page).getByText(english.unable[why]).waitFor();
    expect(await section(page).getByRole("button", { name: english.subscribe }).count()).toBe(0);
  }
  await requireGood(page);
});

/** As browsers that show notices have it. This one has neither a place for them nor Google's push service. */
const allowing = `
  let permission = localStorage.getItem("test.permission") ?? "default";
  Object.defineProperty(Notification, "permission", { get: () => permission });
  Notification.requestPermission = async () => {
    permission = window.answer;
    localStorage.setItem("test.permission", permission);
    return permission;
  };
`;
/** Its push service is the test's. @param to what a push service needs to know */
const pushing = (to: PushReceiver["subscription"]): string => `
  const made = () => ({
    endpoint: ${JSON.stringify(to.endpoint)},
    toJSON: () => (${JSON.stringify(to)}),
    unsubscribe: async () => { localStorage.removeItem("test.push"); return true; },
  });
  PushManager.prototype.getSubscription = async () => localStorage.getItem("test.push") === null ? null : made();
  PushManager.prototype.subscribe = async ({ userVisibleOnly, applicationServerKey }) => {
    if (!userVisibleOnly) throw new Error("silent pushes are not allowed");
    localStorage.setItem("test.push", applicationServerKey);
    return made();
  };
`;

/** In the service worker: notices as a system shows them, of which one takes the place of that with the same tag; and its windows. */
const shownByTest = `
  self.shown = [];
  self.opened = [];
  const byTag = new Map();
  self.registration.getNotifications = async ({ tag } = {}) =>
    [...byTag.values()].filter((one) => tag === undefined || one.tag === tag);
  self.registration.showNotification = async (title, options) => {
    const close = () => void byTag.delete(options.tag);
    byTag.set(options.tag, { title, ...options, close });
    self.shown.push({ title, ...options });
  };
  self.clients.openWindow = async (path) => void self.opened.push(["opened", path]);
  WindowClient.prototype.focus = async function () { self.opened.push(["focused", new URL(this.url).pathname]); };
  self.clickOn = async (tag) => {
    const waited = [];
    const event = Object.assign(new Event("notificationclick"), {
      notification: byTag.get(tag),
      waitUntil: (promise) => waited.push(promise),
    });
    self.dispatchEvent(event);
    await Promise.all(waited);
    return [self.opened.splice(0), byTag.has(tag)];
  };
`;

interface Shown {
  readonly title: string;
  readonly body: string;
  readonly tag: string;
  readonly renotify: boolean;
}

/** The page's service worker, to which the browser brings what the push service took. */
async function openWorker(page: Page) {
  const [worker] = page.context().serviceWorkers() as [Worker];
  await worker.evaluate(shownByTest);
  const debug: CDPSession = await page.context().newCDPSession(page);
  const known = new Promise<string>((resolve) => {
    debug.on("ServiceWorker.workerRegistrationUpdated", ({ registrations }) => {
      if (registrations[0] !== undefined) resolve(registrations[0].registrationId);
    });
  });
  await debug.send("ServiceWorker.enable");
  const registrationId = await known;
  const shown = (): Promise<Shown[]> => worker.evaluate("self.shown");
  return {
    /** @returns what was shown for it */
    async deliver(data: string): Promise<Shown> {
      const before = (await shown()).length;
      await debug.send("ServiceWorker.deliverPushMessage", { origin: site.offstage.url, registrationId, data });
      await expect.poll(async () => (await shown()).length).toBe(before + 1);
      return (await shown())[before] as Shown;
    },
    /** @returns which windows were opened or focused, and whether the notice is still there */
    clickOn: (tag: string): Promise<unknown> => worker.evaluate(`self.clickOn(${JSON.stringify(tag)})`),
  };
}

test("a browser is subscribed, shows what is pushed, opens what it is about, and is taken away again", async () => {
  await asAda(
    "/subscription/create",
    { ...receiver.subscription, endpoint: `${receiver.subscription.endpoint}/other` },
    { "user-agent": "Mozilla/5.0 (Windows NT 10.0; Win64; x64; rv:151.0) Gecko/20100101 Firefox/151.0" },
  );
  const page = await site.signedIn({ key: ada });
  await page.addInitScript(`window.answer = "default"; ${allowing} ${pushing(receiver.subscription)}`);
  await page.goto("/settings");
  const browsers = section(page).getByRole("list", { name: english.browsers }).getByRole("listitem");
  await browsers.getByText("Firefox · Windows").first().waitFor();
  await browsers.getByRole("button", { name: english.remove }).click();
  await page.getByRole("alertdialog").getByRole("button", { name: english.remove }).click();
  await section(page).getByText(english.noBrowsers).waitFor();

  const subscribe = section(page).getByRole("button", { name: english.subscribe });
  await subscribe.click();
  await section(page).getByRole("alert").getByText(english.unanswered).waitFor();
  await page.evaluate("window.answer = 'granted'");
  await subscribe.click();
  await browsers.getByText(english.here).waitFor();
  await browsers.getByText("Chrome · Linux").waitFor();
  const { push } = await asAda("/notice/settings");
  expect(await page.evaluate("localStorage.getItem('test.push')")).toBe(push.publicKey);
  await page.reload();
  await browsers.getByText(english.here).waitFor();
  await requireGood(page);

  await section(page).getByRole("button", { name: english.test }).click();
  await section(page).getByText(english.tested(2)).waitFor();
  await expect.poll(() => receiver.pushes.length).toBe(1);
  await expect.poll(() => mail.mails.length).toBe(1);
  const worker = await openWorker(page);
  const data = JSON.stringify(receiver.pushes[0]?.payload);
  expect(await worker.deliver(data)).toMatchObject({ title: "Offstage can reach you", tag: "test", renotify: true });
  // What was sent twice is shown once, and not heard again.
  expect(await worker.deliver(data)).toMatchObject({ tag: "test", renotify: false });
  expect(await worker.clickOn("test")).toEqual([[["focused", "/settings"]], false]);
  expect(await worker.deliver("no notice")).toMatchObject({ title: "Offstage" });
  expect(await worker.clickOn("unknown")).toEqual([[["opened", "/"]], false]);

  const { url } = await site.forge.createRepository("acme", "told", { "README.md": "# Before\n" });
  const { id } = await asAda("/session/create", { prompt: "say Done", repositories: [url] });
  const tag = `session-${id}`;
  await expect.poll(() => receiver.pushes.length).toBe(2);
  expect(await worker.deliver(JSON.stringify(receiver.pushes[1]?.payload))).toMatchObject({
    title: "Completed: say Done",
    body: "The session is completed.",
    tag,
    renotify: true,
  });
  const opened = `/sessions/${id}`;
  expect(await worker.clickOn(tag)).toEqual([[["opened", opened]], false]);
  await worker.deliver(JSON.stringify(receiver.pushes[1]?.payload));
  const other = await page.context().newPage();
  await other.goto(opened);
  await other.getByRole("heading", { name: "say Done" }).waitFor();
  expect(await worker.clickOn(tag)).toEqual([[["focused", opened]], false]);
  await other.close();

  await section(page).getByRole("button", { name: english.unsubscribe }).click();
  await section(page).getByText(english.noBrowsers).waitFor();
  await subscribe.waitFor();
  expect(await page.evaluate("localStorage.getItem('test.push')")).toBe(null);
  expect((await asAda("/subscription/list")).subscriptions).toEqual([]);
});

/** Has the service worker hear that its subscription was changed, as a browser tells it. */
const changed = (page: Page, target: PushReceiver["subscription"]): Promise<unknown> =>
  workerOf(page).evaluate(`(async () => {
    const waited = [];
    self.ended = 0;
    const newSubscription = {
      endpoint: ${JSON.stringify(target.endpoint)},
      toJSON: () => (${JSON.stringify(target)}),
      unsubscribe: async () => { self.ended += 1; return true; },
    };
    const event = Object.assign(new Event("pushsubscriptionchange"), {
      newSubscription,
      waitUntil: (promise) => waited.push(promise),
    });
    self.dispatchEvent(event);
    await Promise.all(waited);
    return self.ended;
  })()`);

function workerOf(page: Page): Worker {
  const [worker] = page.context().serviceWorkers();
  if (worker === undefined) throw new Error("there is no service worker");
  return worker;
}

/** A page of Ada's in whose browser notices are pushed. */
async function subscribed(): Promise<Page> {
  const page = await site.signedIn({ key: ada });
  await page.addInitScript(`window.answer = "granted"; ${allowing} ${pushing(receiver.subscription)}`);
  await page.goto("/settings");
  await section(page).getByRole("button", { name: english.subscribe }).click();
  await section(page).getByText(english.here, { exact: true }).waitFor();
  return page;
}

const listed = async (): Promise<unknown[]> => (await asAda("/subscription/list")).subscriptions;

test("a browser whose subscription was changed is pushed to at its new address, until it was removed elsewhere", async () => {
  const page = await subscribed();
  const { push } = await asAda("/notice/settings");
  const moved = await startPushReceiver(() => push.publicKey, authority.serverFor("127.0.0.1"));
  receiver.pushes.length = 0;
  mail.mails.length = 0;
  await page.context().clearCookies();
  expect(await changed(page, moved.subscription)).toBe(0);
  await asAda("/notice/test", {});
  await expect.poll(() => moved.pushes.length).toBe(1);
  await expect.poll(() => mail.mails.length).toBe(1);
  expect(receiver.pushes).toEqual([]);
  const [{ id }] = (await listed()) as [{ id: string }];
  await asAda(`/subscription/${id}/delete`, {});
  expect(await changed(page, receiver.subscription)).toBe(1);
  expect(await listed()).toEqual([]);
  // The subscription is deleted: the user is not asked again.
  expect(await changed(page, receiver.subscription)).toBe(0);
  await moved.close();
});

test.each([
  ["nothing", { server: 0, browser: true }],
  ["the server", { server: 1, browser: true }],
  ["the browser", { server: 0, browser: false }],
] as const)(
  "signing out ends what is pushed to the browser, and signs out all the same if %s fails",
  async (fails, left) => {
    const page = await subscribed();
    if (fails === "the server") await page.route("**/subscription/*/delete", (route) => route.abort());
    if (fails === "the browser") {
      await page.evaluate("PushManager.prototype.getSubscription = () => new Promise(() => undefined)");
    }
    await page.getByRole("navigation", { name: "Main" }).getByRole("button", { name: "Sign out" }).click();
    await page.waitForURL((url) => url.pathname === "/sign-in");
    expect((await page.request.get("/me")).status()).toBe(401);
    const still = (await listed()) as { id: string }[];
    expect(still.length).toBe(left.server);
    expect(await page.evaluate("localStorage.getItem('test.push') === null")).toBe(left.browser);
    for (const { id } of still) await asAda(`/subscription/${id}/delete`, {});
  },
);

test("ending this browser's sign-in in the settings ends what is pushed to it, too", async () => {
  const page = await subscribed();
  const row = page
    .getByRole("region", { name: "Signed-in browsers" })
    .getByRole("listitem")
    .filter({ hasText: "this browser" });
  await row.getByRole("button", { name: /^Sign out/u }).click();
  await page.getByRole("alertdialog").getByRole("button", { name: "Sign out" }).click();
  await expect.poll(async () => (await page.request.get("/me")).status()).toBe(401);
  expect(await listed()).toEqual([]);
});

test("a browser that can't reach its push service says so", async () => {
  const page = await site.signedIn({ key: ada });
  await page.addInitScript(`window.answer = "granted"; ${allowing}
    PushManager.prototype.subscribe = async () => { throw new DOMException("Registration failed", "AbortError"); };`);
  await page.goto("/settings");
  await section(page).getByRole("button", { name: english.subscribe }).click();
  await section(page).getByRole("alert").getByText(english.failed("Registration failed")).waitFor();
  await requireGood(page);
});

test("a link of an invitation is mailed, and asks before it signs the person in", async () => {
  const page = await site.signedIn({ locale: "de-DE" });
  mail.mails.length = 0;
  mail.refusals.push({ code: 451, words: "Try again later" });
  await page.goto("/people");
  await page.getByRole("button", { name: germanPeople.invite }).click();
  const form = page.getByRole("dialog", { name: germanPeople.inviteTitle });
  await form.getByLabel(germanPeople.name).fill("Edsger");
  await form.getByLabel(germanPeople.email).fill("edsger@company.example");
  await form.getByRole("button", { name: germanPeople.makeLink }).click();
  await page.getByText(germanPeople.mailed("edsger@company.example")).waitFor();
  const row = page.getByRole("listitem").filter({ hasText: "Edsger" });
  await row.getByText("Try again later").waitFor();
  await row.getByText(germanPeople.mail.pending).waitFor();
  await requireGood(page);
  await site.offstage.database.pool.query("update invitation_mail set next_attempt_at = now()");
  await row.getByText(germanPeople.mail.sent).waitFor();
  const text = (mail.mails[0]?.raw ?? "").replaceAll("=\r\n", "").replaceAll("=3D", "=");
  const [link = ""] = /http:\S+\/sign-in\?invited=true#[\w-]{43}/u.exec(text) ?? [];
  for (const viewport of [
    { width: 390, height: 800 },
    { width: 1440, height: 900 },
  ]) {
    // A program that looks into mails runs the page, and leaves the link as it is.
    const looking = await site.stranger({ viewport, colorScheme: viewport.width === 390 ? "dark" : "light" });
    await looking.goto(link);
    await looking.getByRole("heading", { name: signIn.invited.title }).waitFor();
    await requireGood(looking);
    await looking.context().close();
  }
  const theirs = await site.stranger();
  await theirs.goto(link);
  await theirs.getByRole("button", { name: signIn.title }).press("Enter");
  await theirs.getByRole("heading", { name: "Sessions", level: 1 }).waitFor();
  expect(theirs.url()).toBe(`${site.offstage.url}/`);
  const late = await site.stranger();
  await late.goto(link);
  await late.getByRole("button", { name: signIn.title }).click();
  await late.getByRole("alert").getByText(/link/u).waitFor();
  expect(new URL(late.url()).hash).toBe("");
});

test("the section is there in German, on a phone", async () => {
  const page = await site.signedIn({ key: grace, locale: "de-DE", viewport: { width: 390, height: 800 } });
  const words = foreignWords({ elements, english }, { elements: germanElements, english: german });
  await page.goto("/settings");
  await section(page, german).getByText(german.unable.refused).waitFor();
  expect(await wordsLeft(page, words)).toEqual([]);
  await requireGood(page);
});

test("the app can be installed: its manifest is valid, and its icons are those of the app", async () => {
  const page = await site.signedIn({ key: ada, colorScheme: "dark" });
  await page.goto("/settings");
  const debug = await page.context().newCDPSession(page);
  const { errors, url, data } = await debug.send("Page.getAppManifest");
  expect(errors).toEqual([]);
  expect(url).toBe(`${site.offstage.url}/manifest.webmanifest`);
  const manifest = JSON.parse(data ?? "");
  expect(manifest).toMatchObject({ name: "Offstage", start_url: "/", scope: "/", display: "standalone" });
  const served = await fetch(url);
  expect(served.headers.get("content-type")).toMatch(/^application\/manifest\+json/u);
  const svg = await readFile(join(import.meta.dirname, "../../src/web/icon.svg"), "utf8");
  for (const { src, sizes, type, purpose } of manifest.icons) {
    const icon = await fetch(`${site.offstage.url}${src}`);
    expect(icon.headers.get("content-type")).toBe(type);
    const { size, difference } = await compare(page, src, svg);
    expect(size).toBe(sizes);
    // The maskable one has wider edges.
    expect(difference < 1).toBe(purpose !== "maskable");
  }
  for (const scheme of ["dark", "light"] as const) {
    await page.emulateMedia({ colorScheme: scheme });
    const themed = await page.evaluate(
      `[...document.querySelectorAll("meta[name=theme-color]")].filter(({ media }) => matchMedia(media).matches)
        .map(({ content }) => content.match(/[0-9a-f]{2}/gu).map((two) => parseInt(two, 16)).join(", "))`,
    );
    const ground = await page.evaluate("getComputedStyle(document.body).backgroundColor");
    expect(ground).toBe(`rgb(${String(themed)})`);
  }
});

/** A picture's size, and how far its colours are from those of a drawing, on average of 255. */
function compare(page: Page, src: string, svg: string): Promise<{ size: string; difference: number }> {
  return page.evaluate(`(async () => {
    const load = async (url) => { const image = new Image(); image.src = url; await image.decode(); return image; };
    const images = [await load(${JSON.stringify(src)}), await load("data:image/svg+xml," + encodeURIComponent(${JSON.stringify(svg)}))];
    const { naturalWidth: width, naturalHeight: height } = images[0];
    const [one, other] = images.map((image) => {
      const context = new OffscreenCanvas(width, height).getContext("2d");
      context.drawImage(image, 0, 0, width, height);
      return context.getImageData(0, 0, width, height).data;
    });
    const difference = one.reduce((sum, byte, at) => sum + Math.abs(byte - other[at]), 0) / one.length;
    return { size: width + "x" + height, difference };
  })()`);
}

test("the service worker is not kept by caches, and may load nothing", async () => {
  const answer = await fetch(`${site.offstage.url}/service-worker.js`);
  expect(answer.headers.get("content-type")).toMatch(/^(?:text|application)\/javascript/u);
  expect(answer.headers.get("cache-control")).toBe("no-cache");
  expect(answer.headers.get("content-security-policy")).toBe("default-src 'none'; connect-src 'self'");
  // Pages come from the server, whatever a browser has.
  expect(await answer.text()).not.toMatch(/["'`]fetch["'`]|respondWith|addAll/u);
});
