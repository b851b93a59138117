import { client } from "./query.ts";
import { readStored, writeStored } from "./stored.ts";

/** Why nothing can be pushed to this browser. */
export type Unable = "insecure" | "unsupported" | "homeScreen" | "refused";

/** This browser's subscription, or why it can't have one. */
export interface PushHere {
  /** null: it can. */
  readonly unable: Unable | null;
  readonly isSubscribed: boolean;
}

/** Thrown if the user did not allow notices. */
export class NotAllowedError extends Error {}

const worker = "/service-worker.js";
/** The browser's own subscription does not say which of the API's it is. */
const storedAs = "subscription";
/** The cache entry with which the service worker renews the subscription: `service-worker/service-worker.ts`. */
const [renewalCache, renewalPath] = ["push", "/subscription/renew"];

/** Id of the subscription that was made in this browser; null: none was, or it is forgotten. */
export function subscriptionIdHere(): string | null {
  return readStored(storedAs);
}

/** Remembers which subscription is this browser's. */
export function rememberSubscription(id: string | null): void {
  writeStored(storedAs, id);
}

/** The state of push in this browser. */
export async function readPushHere(): Promise<PushHere> {
  const unable = whyUnable();
  // A browser that was refused afterwards has lost its subscription.
  if (unable !== null) return { unable, isSubscribed: false };
  const registration = await navigator.serviceWorker.getRegistration("/");
  return { unable, isSubscribed: (await registration?.pushManager.getSubscription()) != null };
}

function whyUnable(): Unable | null {
  if (!isSecureContext) return "insecure";
  const isAble = "serviceWorker" in navigator && "PushManager" in globalThis && "Notification" in globalThis;
  // Only browsers of iPhones and iPads have this, which take push for apps on the home screen alone.
  if (!isAble) return "standalone" in navigator ? "homeScreen" : "unsupported";
  return Notification.permission === "denied" ? "refused" : null;
}

/** The API's fields of a browser that subscribes. */
type SubscribedHere = Required<Parameters<typeof client.notices.subscribe>[0]>;

/**
 * Subscribes this browser, which asks whether notices may be shown: call it by a click.
 * @param publicKey the server's
 * @throws NotAllowedError if that was not allowed
 */
export async function subscribeHere(publicKey: string): Promise<SubscribedHere> {
  if ((await Notification.requestPermission()) !== "granted") throw new NotAllowedError();
  await navigator.serviceWorker.register(worker);
  const { pushManager } = await navigator.serviceWorker.ready;
  // One that was made with a key which the server has no more takes nothing.
  await (await pushManager.getSubscription())?.unsubscribe();
  const made = await pushManager.subscribe({ userVisibleOnly: true, applicationServerKey: publicKey });
  const { p256dh = "", auth = "" } = made.toJSON().keys ?? {};
  const renewalSecret = randomSecret();
  // For the service worker, which has no other storage that a page can write to in a line.
  await (await caches.open(renewalCache)).put(renewalPath, Response.json({ renewalSecret, publicKey }));
  return { endpoint: made.endpoint, keys: { p256dh, auth }, renewalSecret };
}

/** 32 random bytes in base64url. */
function randomSecret(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(32));
  return btoa(String.fromCodePoint(...bytes))
    .replaceAll("+", "-")
    .replaceAll("/", "_")
    .replaceAll("=", "");
}

/** Ends this browser's subscription, if it has one. */
export async function unsubscribeHere(): Promise<void> {
  const registration = await navigator.serviceWorker.getRegistration("/");
  await (await registration?.pushManager.getSubscription())?.unsubscribe();
  await caches.delete(renewalCache);
  rememberSubscription(null);
}

/** Milliseconds that a sign-out waits for the end of a subscription. */
const patienceMs = 3_000;

/**
 * Ends pushes to this browser before the user signs out, so that none of their notices are shown here afterwards. Both
 * the server and the browser delete the subscription; if one fails, the other is enough. Settles in seconds in any
 * case.
 */
export async function leavePush(): Promise<void> {
  const id = subscriptionIdHere();
  const ends = Promise.allSettled([
    id === null ? null : client.notices.unsubscribe(id),
    "serviceWorker" in navigator ? unsubscribeHere() : null,
  ]);
  await Promise.race([ends, new Promise((resolve) => setTimeout(resolve, patienceMs))]);
}
