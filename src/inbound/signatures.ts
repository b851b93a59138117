import { createHmac, timingSafeEqual } from "node:crypto";

/** Hash functions of HMAC signatures. */
export type HmacAlgorithm = "sha1" | "sha256" | "sha512";
/** How a signature is written in its header. */
export type HmacEncoding = "hex" | "base64";

/** How far a signed time may be from ours, in ms (https://www.standardwebhooks.com: five minutes). */
const toleranceMs = 5 * 60_000;

/**
 * Whether a header holds the HMAC (RFC 2104) of a body by one of the secrets. Each secret is tried, and each comparison takes the
 * same time whatever the bytes.
 * @param given the header's value; undefined: there is none
 * @param options.prefix the text before the signature, such as `sha256=`
 */
export function hasHmac(
  given: string | undefined,
  body: Buffer | string,
  secrets: readonly string[],
  { algorithm, encoding, prefix = "" }: { algorithm: HmacAlgorithm; encoding: HmacEncoding; prefix?: string },
): boolean {
  if (given === undefined || !given.startsWith(prefix)) return false;
  const signature = Buffer.from(given.slice(prefix.length).trim(), encoding);
  const keys = secrets.filter((secret) => secret !== "");
  return matchesOne(keys, (secret) => isSame(createHmac(algorithm, secret).update(body).digest(), signature));
}

/**
 * Whether `X-Hub-Signature`, or its like, holds the HMAC-SHA256 of a body as `sha256=` and hexadecimal digits
 * (https://www.w3.org/TR/websub/#signing-content).
 */
export function hasHubSignature(given: string | undefined, body: Buffer, secrets: readonly string[]): boolean {
  return hasHmac(given, body, secrets, { algorithm: "sha256", encoding: "hex", prefix: "sha256=" });
}

/** Whether a header holds one of the secrets itself. The comparison takes the same time whatever the bytes. */
export function hasToken(given: string | undefined, secrets: readonly string[]): boolean {
  if (given === undefined) return false;
  // The digests are equally long, so the length of the secret shows in nothing.
  const digest = (text: string): Buffer => createHmac("sha256", "token").update(text).digest();
  const sent = digest(given);
  return given !== "" && matchesOne(secrets, (secret) => isSame(digest(secret), sent));
}

/**
 * Whether a delivery is signed as https://www.standardwebhooks.com says: HMAC-SHA256 over id, time and body, in base64, of which
 * the header may hold several. Svix, where this comes from, and those who send by it call the headers `svix-…`
 * (https://docs.svix.com/receiving/verifying-payloads/how-manual).
 * @param secrets with or without `whsec_`, in base64
 * @param now ms since the epoch
 */
export function hasStandardSignature(
  delivery: { readonly headers: Readonly<Record<string, string | undefined>>; readonly body: Buffer },
  secrets: readonly string[],
  now: number,
): boolean {
  const { headers } = delivery;
  const from = headers["webhook-id"] === undefined ? "svix" : "webhook";
  const [id, timestamp, header] = ["id", "timestamp", "signature"].map((part) => headers[`${from}-${part}`]);
  if (id === undefined || timestamp === undefined || header === undefined) return false;
  if (!/^\d{1,12}$/u.test(timestamp) || Math.abs(now - Number(timestamp) * 1_000) > toleranceMs) return false;
  const signatures = header
    .split(" ")
    .filter((each) => each.startsWith("v1,"))
    .map((each) => Buffer.from(each.slice(3), "base64"));
  return matchesOne(secrets, (secret) => {
    const key = keyOf(secret);
    if (key === null) return false;
    const signed = createHmac("sha256", key).update(`${id}.${timestamp}.`).update(delivery.body).digest();
    return matchesOne(signatures, (signature) => isSame(signed, signature));
  });
}

/**
 * The key that a secret is in base64; null if it is none. Decoding skips characters that are not base64, so a secret of
 * other letters would become a guessable key.
 */
function keyOf(secret: string): Buffer | null {
  const encoded = secret.replace(/^whsec_/u, "");
  const key = /^[\w+/-]+={0,2}$/u.test(encoded) ? Buffer.from(encoded, "base64") : Buffer.alloc(0);
  return key.length === 0 ? null : key;
}

/** Whether a time that a sender signed is at most `withinMs` from now, in ms since the epoch; signatures must not be kept for later. */
export function isRecent(timeMs: number, now: number, withinMs = toleranceMs): boolean {
  return Number.isFinite(timeMs) && Math.abs(now - timeMs) <= withinMs;
}

/** Tries all, so that the time does not say which one matched. */
function matchesOne<Item>(items: readonly Item[], matches: (item: Item) => boolean): boolean {
  return items.map(matches).includes(true);
}

function isSame(one: Buffer, other: Buffer): boolean {
  return one.length === other.length && timingSafeEqual(one, other);
}
