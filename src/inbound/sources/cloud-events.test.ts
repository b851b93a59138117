import { createHmac } from "node:crypto";
import { describe, expect, it } from "vitest";
import { InvalidInputError } from "../../domain/errors/errors.ts";
import { cloudEvents, consentTo } from "./cloud-events.ts";

const { reader } = cloudEvents;
const event = { specversion: "1.0", id: "A234-1234-1234", source: "/mycontext", type: "com.example.someevent" };
const read = (headers: Record<string, string>, body: string | Buffer) =>
  reader.read({ headers, body: Buffer.from(body) });
const structured = (payload: unknown) =>
  read({ "content-type": "application/cloudevents+json" }, JSON.stringify(payload));
const batch = (payload: unknown) =>
  read({ "content-type": "application/cloudevents-batch+json" }, JSON.stringify(payload));
const dataOf = ({ events }: ReturnType<typeof read>) => events[0]?.event["cloudEvent"] as Record<string, unknown>;
const ce = {
  "ce-specversion": "1.0",
  "ce-id": "A234-1234-1234",
  "ce-source": "/mycontext",
  "ce-type": "com.example.someevent",
};

// Examples of https://github.com/cloudevents/spec/blob/main/cloudevents/formats/json-format.md, section 3.2.
const extensions = { comexampleextension1: "value", comexampleothervalue: 5 };
const time = "2018-04-05T17:31:00Z";

describe("structured mode", () => {
  it("reads data as JSON, text or bytes, and extensions as texts", () => {
    const json = {
      ...event,
      ...extensions,
      subject: null,
      time,
      datacontenttype: "application/json",
      data: { appinfoB: 123 },
    };
    expect(dataOf(structured(json))).toEqual({
      id: "A234-1234-1234",
      source: "/mycontext",
      type: "com.example.someevent",
      subject: null,
      time,
      dataContentType: "application/json",
      dataSchema: null,
      extensions: { comexampleextension1: "value", comexampleothervalue: "5" },
      data: { appinfoB: 123 },
      dataIsBase64: false,
    });
    const xml = { ...event, unsetextension: null, datacontenttype: "application/xml", data: '<much wow="xml"/>' };
    expect(dataOf(structured(xml))).toMatchObject({ data: '<much wow="xml"/>', extensions: {} });
    const binary = { ...event, datacontenttype: "application/octet-stream", data_base64: "AAEC" };
    expect(dataOf(structured(binary))).toMatchObject({ data: "AAEC", dataIsBase64: true });
    expect(dataOf(structured(event))).toMatchObject({ data: null });
  });

  it("takes the type as the event's name, and source and subject as what it is about", () => {
    const [one] = structured({ ...event, subject: "builds/1" }).events;
    expect(one?.name).toBe("com.example.someevent");
    expect(one?.subject).toBe(structured({ ...event, id: "other", subject: "builds/1" }).events[0]?.subject);
    expect(one?.subject).not.toBe(structured({ ...event, subject: "builds/2" }).events[0]?.subject);
    expect(structured(event).events[0]?.subject).toBeNull();
  });

  it.each([
    ["no id", { ...event, id: undefined }, "id must be a text"],
    ["an empty source", { ...event, source: "" }, "source must be a text"],
    ["no type", { ...event, type: null }, "type must be a text"],
    ["another version", { ...event, specversion: "0.3" }, "only 1.0"],
    ["no version", { ...event, specversion: undefined }, "specversion must be"],
    ["a type of 256 characters", { ...event, type: "x".repeat(256) }, "type is longer than 255"],
    ["an id that would be cut", { ...event, id: "x".repeat(2_001) }, "id is longer than 2000"],
    ["a list", [event], "each event must be a JSON object"],
  ])("refuses %s", (_, payload, words) => {
    expect(() => structured(payload)).toThrow(words);
    expect(() => structured(payload)).toThrow(InvalidInputError);
  });
});

describe("binary mode", () => {
  it("is the same event as in structured mode", () => {
    const headers = {
      ...ce,
      "ce-comexampleextension1": "value",
      "ce-time": time,
      "content-type": "application/json; charset=utf-8",
    };
    const { events, deliveryId } = read(headers, '{"appinfoB":123}');
    expect(dataOf({ events, deliveryId })).toMatchObject({
      time,
      extensions: { comexampleextension1: "value" },
      data: { appinfoB: 123 },
    });
    expect(events[0]?.contentKey).toBe(structured({ ...event, data: 1 }).events[0]?.contentKey);
    expect(deliveryId).toBe(events[0]?.contentKey);
  });
  it("reads text as text, and what is none as base64", () => {
    expect(dataOf(read({ ...ce, "content-type": "text/plain" }, "héllo"))).toMatchObject({
      data: "héllo",
      dataIsBase64: false,
    });
    expect(dataOf(read({ ...ce, "content-type": "text/plain" }, Buffer.from([0xff])))).toMatchObject({
      data: "/w==",
      dataIsBase64: true,
    });
    expect(dataOf(read({ ...ce, "content-type": "image/png" }, Buffer.from([1, 2])))).toMatchObject({
      data: "AQI=",
      dataIsBase64: true,
    });
    expect(dataOf(read({ ...ce, "content-type": "application/vnd.acme+json" }, "[1]"))).toMatchObject({ data: [1] });
    expect(dataOf(read(ce, ""))).toMatchObject({ data: null });
  });
  it("decodes headers as the binding's example, and quoted ones of older senders", () => {
    const encoded = { ...ce, "ce-subject": "Euro%20%E2%82%AC%20%F0%9F%98%80" };
    expect(dataOf(read(encoded, ""))).toMatchObject({ subject: "Euro € 😀" });
    expect(dataOf(read({ ...ce, "ce-subject": String.raw`"a \"b\" %25"` }, ""))).toMatchObject({ subject: 'a "b" %' });
    expect(dataOf(read({ ...ce, "ce-subject": "100% of %7a" }, ""))).toMatchObject({ subject: "100% of z" });
  });
  it("reads what the SDK for JavaScript (10.0.0) sends, which encodes no attribute", () => {
    const sent = { ...ce, "ce-subject": 'a "q" 100%', "ce-time": "2026-08-19T15:16:27.000Z", "ce-ext1": "v w" };
    expect(dataOf(read({ ...sent, "content-type": "application/json; charset=utf-8" }, '{"a":1}'))).toMatchObject({
      subject: 'a "q" 100%',
      extensions: { ext1: "v w" },
      data: { a: 1 },
    });
  });
  it.each(["%C0%A0", "%ff", "a%00b", "%ED%A0%80"])("refuses %s, which is no UTF-8 that can be stored", (value) => {
    expect(() => read({ ...ce, "ce-subject": value }, "")).toThrow("the header ce-subject");
  });
  it("refuses what is no CloudEvent at all", () => {
    expect(() => read({ "content-type": "application/json" }, "{}")).toThrow("no CloudEvent");
    expect(() => read({ "content-type": "application/cloudevents+avro" }, "x")).toThrow("only JSON is read");
  });
});

describe("batched mode", () => {
  it("delivers each event separately", () => {
    const { events, deliveryId } = batch([event, { ...event, id: "2" }]);
    expect(events.map(({ contentKey }) => contentKey)).toEqual([
      structured(event).events[0]?.contentKey,
      structured({ ...event, id: "2" }).events[0]?.contentKey,
    ]);
    expect(deliveryId).toBeNull();
    expect(events[1]?.event["payload"]).toEqual({ ...event, id: "2" });
  });
  it("takes an empty batch, and refuses one of more than 100 events or with one that is none", () => {
    expect(batch([]).events).toEqual([]);
    expect(batch(Array.from({ length: 100 }, (_, index) => ({ ...event, id: String(index) }))).events).toHaveLength(
      100,
    );
    expect(() => batch(Array.from({ length: 101 }, () => event))).toThrow("more than 100 events");
    expect(() => batch([event, 3])).toThrow("each event must be a JSON object");
    expect(() => batch({})).toThrow("must be a list");
  });
});

describe("who sends it", () => {
  const delivery = (headers: Record<string, string>) => ({ headers, body: Buffer.from("{}") });
  const verify = (headers: Record<string, string>, now = 0) => reader.verify(delivery(headers), ["c2VjcmV0"], now);

  it("shows the secret as a bearer token", () => {
    expect(verify({ authorization: "Bearer c2VjcmV0" })).toBe(true);
    expect(verify({ authorization: "bearer  c2VjcmV0" })).toBe(true);
    expect(verify({ authorization: "Bearer c2VjcmV" })).toBe(false);
    expect(verify({ authorization: "Bearer " })).toBe(false);
    expect(verify({ authorization: "Basic c2VjcmV0" })).toBe(false);
    expect(verify({})).toBe(false);
  });
  it("or signs as Standard Webhooks says", () => {
    const at = 1_614_265_330;
    const signed = createHmac("sha256", Buffer.from("c2VjcmV0", "base64")).update(`msg.${at}.{}`).digest("base64");
    const headers = { "webhook-id": "msg", "webhook-timestamp": String(at), "webhook-signature": `v1,${signed}` };
    expect(verify(headers, at * 1_000)).toBe(true);
    expect(verify({ ...headers, authorization: "Bearer wrong" }, at * 1_000)).toBe(false);
    expect(verify(headers, (at + 301) * 1_000)).toBe(false);
  });
});

describe("consent to deliveries", () => {
  it("names the origin that asks, and at most our rate", () => {
    expect(consentTo({ "webhook-request-origin": "eventgrid.azure.net", "webhook-request-rate": "120" }, 600)).toEqual({
      allow: "POST",
      "webhook-allowed-origin": "eventgrid.azure.net",
      "webhook-allowed-rate": "120",
    });
    expect(consentTo({ "webhook-request-origin": "a.example", "webhook-request-rate": "9999" }, 600)).toMatchObject({
      "webhook-allowed-rate": "600",
    });
    expect(consentTo({ "webhook-request-origin": "a.example" }, 600)).toMatchObject({ "webhook-allowed-rate": "600" });
  });
  it("is sent only to a sender that asks for it in this way", () => {
    expect(consentTo({}, 600)).toBeNull();
    expect(consentTo({ "webhook-request-origin": "a.example\r\nx: y" }, 600)).toBeNull();
    expect(consentTo({ "webhook-request-origin": "a".repeat(254) }, 600)).toBeNull();
  });
});
