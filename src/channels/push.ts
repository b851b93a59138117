import { buildPushPayload } from "@block65/webcrypto-web-push";

/** The pair of keys by which push services know this installation (VAPID, RFC 8292). */
export interface PushKeys {
  /** For browsers, which subscribe with it: the point, uncompressed, in base64url. */
  readonly publicKey: string;
  /** The number, in base64url. */
  readonly privateKey: string;
}

/** A browser's subscription, as it gave it. */
export interface PushTarget {
  readonly endpoint: string;
  readonly keys: { readonly p256dh: string; readonly auth: string };
}

/** A message to push. */
export interface PushMessage {
  readonly payload: {
    readonly id: string;
    readonly title: string;
    readonly text: string;
    readonly url: string;
    readonly tag: string;
  };
  /** Address of this installation's operator, `mailto:` or `https:`, for the push service. */
  readonly contact: string;
  /** How long the push service keeps it for a browser that is off, in seconds. */
  readonly ttlSeconds: number;
  /** Two messages with the same one are about the same thing: only the newer waits for a browser that is off. */
  readonly topic: string;
}

/** A request to a push service. */
export interface PushRequest {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Buffer;
}

/** Makes a pair of keys. */
export async function createPushKeys(): Promise<PushKeys> {
  const algorithm = { name: "ECDSA", namedCurve: "P-256" };
  const { publicKey, privateKey } = await crypto.subtle.generateKey(algorithm, true, ["sign", "verify"]);
  const { d = "" } = await crypto.subtle.exportKey("jwk", privateKey);
  return {
    publicKey: Buffer.from(await crypto.subtle.exportKey("raw", publicKey)).toString("base64url"),
    privateKey: d,
  };
}

/**
 * Encrypts a message for one browser (RFC 8291) and signs the request to its push service.
 * @throws Error if the browser's keys are none
 */
export async function createPushRequest(
  target: PushTarget,
  { publicKey, privateKey }: PushKeys,
  { payload, contact, ttlSeconds, topic }: PushMessage,
): Promise<PushRequest> {
  const message = { data: { ...payload }, options: { ttl: ttlSeconds, urgency: "normal", topic } } as const;
  const subscription = { ...target, keys: { ...target.keys }, expirationTime: null };
  const { headers, body } = await buildPushPayload(message, subscription, { subject: contact, publicKey, privateKey });
  // Its length is counted when it is sent.
  const { "content-length": _length, ...rest } = headers;
  return { url: target.endpoint, headers: rest, body: Buffer.from(body) };
}
