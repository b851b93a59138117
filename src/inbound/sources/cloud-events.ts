import { longestEventName, type SourceEvent } from "../../domain/automations/source-event.ts";
import { InvalidInputError } from "../../domain/errors/errors.ts";
import type { InboundDelivery, ReadDelivery } from "../delivery.ts";
import { hasStandardSignature, hasToken } from "../signatures.ts";
import {
  contentKey,
  decodeUtf8,
  deliveryIdOf,
  isPayload,
  type Payload,
  readJson,
  requiredText,
  textAt,
} from "./payload.ts";
import { deliveryOf, type SourceHappening, type Source, type SourceSample } from "./source.ts";

/** Most events of one batch: each may start a session. */
const largestBatch = 100;
/** Longest source, id or subject: what is cut would no longer identify an event. In UTF-16 units. */
const longestIdentity = 2_000;

const samples: readonly SourceSample[] = [
  {
    event: "com.example.build.failed",
    title: "A build failed (structured mode)",
    headers: { "content-type": "application/cloudevents+json; charset=utf-8" },
    payload: {
      specversion: "1.0",
      id: "A234-1234-1234",
      source: "https://ci.example.com/pipelines/shop",
      type: "com.example.build.failed",
      subject: "builds/812",
      time: "2026-08-19T15:16:27Z",
      datacontenttype: "application/json",
      branch: "main",
      data: { build: 812, commit: "5b6f7c1", step: "test", log: "1 of 312 tests failed" },
    },
  },
];

/**
 * Any sender of CloudEvents 1.0 by HTTP (https://github.com/cloudevents/spec/blob/main/cloudevents/bindings/http-protocol-binding.md),
 * in binary, structured and batched mode. By the specification of their web hooks, a sender shows a token in `Authorization`; one
 * that signs as Standard Webhooks says is read too.
 */
export const cloudEvents: Source = { name: "cloudEvents", reader: { verify, read }, samples };

function verify(delivery: InboundDelivery, secrets: readonly string[], now: number): boolean {
  const [, token] = /^bearer +(.+)$/isu.exec(delivery.headers["authorization"]?.trim() ?? "") ?? [];
  // One or the other, so that who has seen a token can't send a signature that is not checked.
  return token === undefined ? hasStandardSignature(delivery, secrets, now) : hasToken(token, secrets);
}

/** Answer to the request by which a sender asks whether it may deliver to an address. */
export interface DeliveryConsent {
  readonly allow: "POST";
  readonly "webhook-allowed-origin": string;
  readonly "webhook-allowed-rate": string;
}

/** Longest name of a host (RFC 1035, section 2.3.4). */
const longestHost = 253;

/**
 * Consents to deliveries from an origin: https://github.com/cloudevents/spec/blob/main/cloudevents/http-webhook.md, section 4. It
 * says nothing of who may deliver, only that the address expects events.
 * @param headers of an OPTIONS request, names in lower case
 * @param ratePerMinute the deliveries that the address takes
 * @returns headers of the answer; null if the request is none of these
 */
export function consentTo(
  headers: Readonly<Record<string, string | undefined>>,
  ratePerMinute: number,
): DeliveryConsent | null {
  const origin = headers["webhook-request-origin"];
  if (origin === undefined || origin.length > longestHost || !/^[\w.*:-]+$/u.test(origin)) return null;
  const asked = Number(headers["webhook-request-rate"] ?? NaN);
  const rate = Number.isInteger(asked) && asked > 0 ? Math.min(asked, ratePerMinute) : ratePerMinute;
  return { allow: "POST", "webhook-allowed-origin": origin, "webhook-allowed-rate": String(rate) };
}

function read(delivery: InboundDelivery): ReadDelivery {
  const events = eventsOf(delivery).map(happeningOf);
  const webhookId = deliveryIdOf(delivery.headers["webhook-id"]);
  const [first] = events;
  // An event has no delivery id, so a single one is its delivery.
  return deliveryOf(webhookId ?? (events.length === 1 ? (first?.contentKey ?? null) : null), events);
}

/** The attributes of an event, with its data as `data` or `data_base64`: what the JSON format has. */
function eventsOf(delivery: InboundDelivery): readonly Payload[] {
  const type = mediaTypeOf(delivery.headers["content-type"]);
  if (type === "application/cloudevents-batch+json") return batchOf(readJson(delivery.body));
  if (type === "application/cloudevents+json") return batchOf([readJson(delivery.body)]);
  if (type.startsWith("application/cloudevents")) {
    throw new InvalidInputError(`content-type is ${type}: of CloudEvents' formats, only JSON is read`);
  }
  return [binaryEventOf(delivery)];
}

function batchOf(batch: unknown): readonly Payload[] {
  if (!Array.isArray(batch)) throw new InvalidInputError("the body must be a list of events");
  if (batch.length > largestBatch) throw new InvalidInputError(`the batch has more than ${largestBatch} events`);
  return batch.map((event: unknown) => {
    if (!isPayload(event)) throw new InvalidInputError("each event must be a JSON object");
    return event;
  });
}

/** Binary mode: attributes are headers, the data is the body. */
function binaryEventOf({ headers, body }: InboundDelivery): Payload {
  const names = Object.keys(headers).filter((name) => name.startsWith("ce-"));
  if (names.length === 0) {
    throw new InvalidInputError(
      "the delivery is no CloudEvent: it has neither the headers ce-* nor their content-type",
    );
  }
  const attributes = names.map((name) => [name.slice("ce-".length), attributeOf(name, headers[name] ?? "")]);
  const type = headers["content-type"];
  const event: Payload = { ...Object.fromEntries(attributes), ...(type !== undefined && { datacontenttype: type }) };
  if (body.length === 0) return event;
  if (isJson(mediaTypeOf(type))) return { ...event, data: readJson(body) };
  const text = mediaTypeOf(type).startsWith("text/") || mediaTypeOf(type).endsWith("xml") ? decodeUtf8(body) : null;
  return text === null || text.includes("\0")
    ? { ...event, data_base64: body.toString("base64") }
    : { ...event, data: text };
}

/**
 * The value of an attribute in a header (section 3.1.3.2 of the binding): a quoted string as it is meant, then percent-decoded.
 * @throws InvalidInputError if that is not UTF-8
 */
function attributeOf(name: string, value: string): string {
  const quoted = /^"((?:[^"\\]|\\.)*)"$/su.exec(value.trim());
  const text = quoted === null ? value : (quoted[1] ?? "").replaceAll(/\\(.)/gsu, "$1");
  try {
    const decoded = text.replaceAll(/(?:%[0-9a-f]{2})+/giu, decodeURIComponent);
    if (!decoded.includes("\0")) return decoded.toWellFormed();
  } catch {
    // Below: what is no UTF-8 must be refused.
  }
  throw new InvalidInputError(`the header ${name} is not percent-encoded UTF-8`);
}

function mediaTypeOf(contentType: string | undefined): string {
  return (contentType?.split(";")[0] ?? "").trim().toLowerCase();
}

function isJson(mediaType: string): boolean {
  return /^[^/]+\/(?:[^/]+\+)?json$/u.test(mediaType);
}

/** Attributes of the specification, and its names for data; all others are extensions. */
const known = new Set([
  "specversion",
  "id",
  "source",
  "type",
  "subject",
  "time",
  "datacontenttype",
  "dataschema",
  "data",
  "data_base64",
]);

/** Most extensions that an event has; the whole is in its `payload`. */
const mostExtensions = 100;

function happeningOf(payload: Payload): SourceHappening {
  const version = requiredText(payload, "specversion");
  if (version !== "1.0") throw new InvalidInputError(`specversion is ${version.slice(0, 20)}: only 1.0 is read`);
  const [id, source, type] = ["id", "source", "type"].map((name) => identityOf(payload, name)) as [
    string,
    string,
    string,
  ];
  if (type.length > longestEventName) throw new InvalidInputError(`type is longer than ${longestEventName} characters`);
  const subject = textAt(payload, "subject") === null ? null : identityOf(payload, "subject");
  const base64 = textAt(payload, "data_base64");
  const event: SourceEvent = {
    name: type,
    source: "cloudEvents",
    actor: null,
    cloudEvent: {
      id,
      source,
      type,
      subject,
      time: textAt(payload, "time"),
      dataContentType: textAt(payload, "datacontenttype"),
      dataSchema: textAt(payload, "dataschema"),
      extensions: extensionsOf(payload),
      data: (base64 === null ? payload["data"] : payload["data_base64"]) ?? null,
      dataIsBase64: base64 !== null,
    },
    payload,
  };
  return {
    event,
    contentKey: contentKey("cloudEvents", source, id),
    subject: subject === null ? null : `cloudEvents:${contentKey(source, subject)}`,
  };
}

function extensionsOf(payload: Payload): Record<string, string> {
  const names = Object.keys(payload).filter((name) => !known.has(name) && /^[a-z0-9]{1,100}$/u.test(name));
  return Object.fromEntries(
    names.slice(0, mostExtensions).flatMap((name) => {
      const value = payload[name];
      const text = typeof value === "boolean" ? String(value) : textAt(payload, name);
      return text === null ? [] : [[name, text]];
    }),
  );
}

function identityOf(payload: Payload, name: string): string {
  const value = payload[name];
  if (typeof value === "string" && value.length > longestIdentity) {
    throw new InvalidInputError(`${name} is longer than ${longestIdentity} characters`);
  }
  return requiredText(payload, name);
}
