import type { EventContext } from "../../../domain/automations/automation.ts";
import type { Trigger } from "../../../domain/automations/trigger.ts";
import type { AutomationTexts } from "../../texts/automations.ts";

/** Lines for a shell, and what they are for. */
export interface ShellExample {
  readonly about: keyof AutomationTexts["setUp"]["examples"];
  readonly code: string;
}

type Webhook = Extract<Trigger, { type: "webhook" }>;
type Source = Extract<Trigger, { type: "source" }>;

/** How to call an automation by the API. @param address of its trigger */
export function apiExamples(address: string, event: EventContext): ShellExample[] {
  const json = `-H "Content-Type: application/json" \\\n  -d ${quoted(JSON.stringify(event))}`;
  return [
    {
      about: "key",
      code: `curl -s ${quoted(address)} \\\n  -H "Authorization: Bearer $OFFSTAGE_API_KEY" \\\n  ${json}`,
    },
    {
      about: "noHeader",
      code: `curl -s "${address}?apiKey=$OFFSTAGE_API_KEY" \\\n  ${json}`,
    },
  ];
}

/** How to send a delivery to a webhook, signed as the webhook wants it. */
export function webhookExample({ url, verify }: Webhook, event: EventContext): ShellExample {
  const body = `body=${quoted(JSON.stringify(event))}`;
  const send = (headers: readonly string[]): string =>
    [`curl -s ${quoted(url)}`, ...headers, `-H "Content-Type: application/json"`, `-d "$body"`].join(" \\\n  ");
  switch (verify.type) {
    case "none":
      return { about: "notSigned", code: `${body}\n${send([])}` };
    case "hmac": {
      const hash = `openssl dgst -${verify.algorithm} -hmac "$SECRET"`;
      const written = verify.encoding === "hex" ? `${hash} | sed 's/.* //'` : `${hash} -binary | base64 -w 0`;
      const signature = `signature=$(printf %s "$body" | ${written})`;
      const header = `-H "${verify.header}: ${escaped(verify.prefix)}$signature"`;
      return { about: "secret", code: `${body}\n${signature}\n${send([header])}` };
    }
    case "standardWebhooks": {
      const lines = [
        body,
        `id=msg_$(openssl rand -hex 12) time=$(date +%s)`,
        `key=$(printf %s "\${SECRET#whsec_}" | base64 -d | od -An -v -tx1 | tr -d ' \\n')`,
        `signature=$(printf %s "$id.$time.$body" | openssl dgst -sha256 -mac HMAC -macopt "hexkey:$key" -binary | base64 -w 0)`,
        send([`-H "webhook-id: $id"`, `-H "webhook-timestamp: $time"`, `-H "webhook-signature: v1,$signature"`]),
      ];
      return { about: "secret", code: lines.join("\n") };
    }
  }
}

/** How to send an event to a source by hand; null: only its service sends. */
export function sourceExample({ url, source, events }: Source): ShellExample | null {
  if (source !== "cloudEvents") return null;
  const [type = "com.example.build.failed"] = events;
  const event = { specversion: "1.0", id: "1", source: "https://ci.example.com/project", type, data: { build: 7 } };
  const headers = `-H "Authorization: Bearer $SECRET" \\\n  -H "Content-Type: application/cloudevents+json"`;
  return {
    about: "secret",
    code: `curl -s ${quoted(url)} \\\n  ${headers} \\\n  -d ${quoted(JSON.stringify(event))}`,
  };
}

/** A text as one word of a shell. */
function quoted(text: string): string {
  return `'${text.replaceAll("'", String.raw`'\''`)}'`;
}

/** A text between double quotes of a shell. */
function escaped(text: string): string {
  return text.replaceAll(/["$\\`]/gu, String.raw`\$&`);
}
