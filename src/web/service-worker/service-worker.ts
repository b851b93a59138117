/**
 * The service worker, which the browser runs while no page of the app is open: it shows the notices that are pushed to
 * it, opens what they are about, and notifies the server if its address for them changes. It answers no requests and
 * keeps no pages, so it can never show an old one. The build makes it `/service-worker.js`.
 */
declare const self: ServiceWorkerGlobalScope;

/** A pushed notice: docs/notices.md. */
interface PushedNotice {
  readonly id: string;
  readonly title: string;
  readonly text: string;
  readonly url: string;
  readonly tag: string;
}

// Nothing depends on the version before, for which others wait until each page is closed.
self.addEventListener("install", () => void self.skipWaiting());
self.addEventListener("push", (event) => event.waitUntil(show(event.data)));
self.addEventListener("notificationclick", (event) => {
  event.notification.close();
  event.waitUntil(open(pathOf(event.notification.data)));
});

self.addEventListener("pushsubscriptionchange", (event) => event.waitUntil(renew(event.newSubscription)));

async function show(data: PushMessageData | null): Promise<void> {
  const { id, title, text, url, tag } = noticeIn(data);
  const shown = await self.registration.getNotifications({ tag });
  const options = {
    body: text,
    tag,
    data: { id, path: pathIn(url) },
    icon: "/icon-192.png",
    // A newer notice about the same thing alerts again; the same one that was sent twice does not.
    renotify: !shown.some((notification) => (notification.data as { id?: unknown } | null)?.id === id),
  };
  await self.registration.showNotification(title, options);
}

/** A browser that shows nothing for a push may end the subscription: what can't be read is shown, too. */
function noticeIn(data: PushMessageData | null): PushedNotice {
  const unknown = { id: "", title: "Offstage", text: "", url: "/", tag: "unknown" };
  try {
    return { ...unknown, ...(data?.json() as Partial<PushedNotice> | undefined) };
  } catch {
    return unknown;
  }
}

/** Always at the address where the app was opened when the browser subscribed, by whatever address the server calls itself. */
function pathIn(url: string): string {
  return URL.parse(url, self.location.origin)?.pathname ?? "/";
}

function pathOf(data: unknown): string {
  const { path } = (data ?? {}) as { readonly path?: unknown };
  return typeof path === "string" ? path : "/";
}

/** Shows the window that has the page; other pages are left as they are, with unsaved texts. */
async function open(path: string): Promise<void> {
  const windows = await self.clients.matchAll({ type: "window", includeUncontrolled: true });
  const found = windows.find(({ url }) => new URL(url).pathname === path);
  await (found === undefined ? self.clients.openWindow(path) : found.focus());
}

/** The cache entry in which the page that subscribed left what this needs: `../push.ts`. */
const [renewalCache, renewalPath] = ["push", "/subscription/renew"];

/**
 * The browser's subscription was changed or has ended. Only a subscription that the user made here, and has not ended
 * since, is carried over.
 */
async function renew(given: PushSubscription | null): Promise<void> {
  const kept = await caches.match(renewalPath, { cacheName: renewalCache });
  if (kept === undefined) return;
  const { renewalSecret, publicKey } = (await kept.json()) as { renewalSecret: string; publicKey: string };
  const { pushManager } = self.registration;
  const made = given ?? (await pushManager.subscribe({ userVisibleOnly: true, applicationServerKey: publicKey }));
  const { p256dh, auth } = made.toJSON().keys ?? {};
  const answer = await fetch(renewalPath, {
    method: "POST",
    credentials: "omit",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify({ endpoint: made.endpoint, keys: { p256dh, auth }, renewalSecret }),
  });
  // It was ended from elsewhere meanwhile, so nothing would ever be pushed to it.
  if (answer.status === 404) await Promise.all([made.unsubscribe(), caches.delete(renewalCache)]);
}
