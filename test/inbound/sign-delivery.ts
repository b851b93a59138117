import { createHmac } from "node:crypto";
import type { SourceName } from "../../src/domain/automations/source-event.ts";
import type { InboundDelivery } from "../../src/inbound/delivery.ts";

/** Signs as each source documents it. */
const signers: Readonly<
  Record<SourceName, (delivery: InboundDelivery, secret: string, now: number) => Record<string, string>>
> = {
  sentry: ({ body }, secret) => ({ "sentry-hook-signature": hex(secret, body) }),
  linear: ({ body }, secret) => ({ "linear-signature": hex(secret, body) }),
  jira: ({ body }, secret) => ({ "x-hub-signature": `sha256=${hex(secret, body)}` }),
  slack: ({ body }, secret, now) => {
    const time = String(Math.floor(now / 1_000));
    const signature = hex(secret, Buffer.concat([Buffer.from(`v0:${time}:`), body]));
    return { "x-slack-request-timestamp": time, "x-slack-signature": `v0=${signature}` };
  },
  pagerduty: ({ body }, secret) => ({
    "x-pagerduty-signature": `v1=${hex(`not ${secret}`, body)},v1=${hex(secret, body)}`,
  }),
  cloudEvents: (_, secret) => ({ authorization: `Bearer ${secret}` }),
};

/** The delivery with the headers by which its source shows that it sent it. @param now ms since the epoch */
export function signDelivery(
  source: SourceName,
  delivery: InboundDelivery,
  secret: string,
  now: number,
): InboundDelivery {
  return { ...delivery, headers: { ...delivery.headers, ...signers[source](delivery, secret, now) } };
}

function hex(secret: string, body: Buffer): string {
  return createHmac("sha256", secret).update(body).digest("hex");
}
