import { createHmac } from "node:crypto";
import type { DeliveringForge } from "../../src/inbound/forges/readers.ts";
import type { InboundDelivery } from "../../src/inbound/delivery.ts";

/** A delivery of a forge, and what is to come out. */
export interface Sample {
  /** What happened, for the test's name. */
  readonly title: string;
  readonly forge: DeliveringForge;
  /** With the name of the event, in lower case. */
  readonly headers: Readonly<Record<string, string>>;
  readonly payload: Readonly<Record<string, unknown>>;
  /** Names of the events, in order. */
  readonly names: readonly string[];
}

/** A secret of each kind that GitLab has, and of the others; 32 bytes in base64 after `whsec_`. */
export const signingToken = `whsec_${Buffer.alloc(32, 7).toString("base64")}`;
export const secret = "It's a Secret to Everybody";
/** When deliveries are signed, in ms since the epoch. */
export const signedAt = 1_700_000_000_000;

/** The delivery as its forge sends it, signed with a secret. */
export function delivered(
  sample: Pick<Sample, "forge" | "headers" | "payload">,
  key = secret,
  id = "d-1",
): InboundDelivery {
  return signed(sample.forge, sample.headers, Buffer.from(JSON.stringify(sample.payload)), key, id);
}

/** A body as its forge sends it, signed with a secret. */
export function signed(
  forge: DeliveringForge,
  headers: Readonly<Record<string, string | undefined>>,
  body: Buffer,
  key = secret,
  id = "d-1",
): InboundDelivery {
  return { headers: { ...headers, ...signatureOf[forge](body, key, id) }, body };
}

function hex(body: Buffer, key: string): string {
  return createHmac("sha256", key).update(body).digest("hex");
}

const signatureOf: Readonly<
  Record<DeliveringForge, (body: Buffer, key: string, id: string) => Record<string, string>>
> = {
  github: (body, key, id) => ({ "x-github-delivery": id, "x-hub-signature-256": `sha256=${hex(body, key)}` }),
  gitlab: (body, key, id) => {
    if (!key.startsWith("whsec_")) return { "idempotency-key": id, "x-gitlab-token": key };
    const at = String(signedAt / 1_000);
    const bytes = Buffer.from(key.slice("whsec_".length), "base64");
    const signature = createHmac("sha256", bytes).update(`${id}.${at}.`).update(body).digest("base64");
    return {
      "idempotency-key": id,
      "webhook-id": id,
      "webhook-timestamp": at,
      "webhook-signature": `v1,${signature}`,
    };
  },
  gitea: (body, key, id) => ({ "x-gitea-delivery": id, "x-gitea-signature": hex(body, key) }),
  bitbucket: (body, key, id) => ({ "x-request-uuid": id, "x-hub-signature": `sha256=${hex(body, key)}` }),
  bitbucketDataCenter: (body, key, id) => ({ "x-request-id": id, "x-hub-signature": `sha256=${hex(body, key)}` }),
  azure: (_body, key) => ({ authorization: `Basic ${Buffer.from(`offstage:${key}`).toString("base64")}` }),
};
