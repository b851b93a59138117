import { createHmac } from "node:crypto";
import { expect, it } from "vitest";
import { sourceEventNames } from "../../domain/automations/source-event.ts";
import { pagerduty } from "./pagerduty.ts";
import { objectAt } from "./payload.ts";

const [triggered, , annotated] = pagerduty.samples.map(({ payload }) => payload);
const read = (payload: object | undefined) =>
  pagerduty.reader.read({ headers: {}, body: Buffer.from(JSON.stringify(payload)) });
const withEvent = (changes: object) => ({ event: { ...objectAt(triggered, "event"), ...changes } });

it("takes any one of several signatures, and only of version 1", () => {
  const body = Buffer.from(JSON.stringify(triggered));
  const hex = (secret: string) => createHmac("sha256", secret).update(body).digest("hex");
  const verify = (header: string | undefined) =>
    pagerduty.reader.verify({ headers: { "x-pagerduty-signature": header }, body }, ["ours"], 0);
  expect(verify(`v1=${hex("ours")}`)).toBe(true);
  expect(verify(`v1=${hex("old")}, v1=${hex("ours")}`)).toBe(true);
  expect(verify(`v1=${hex("old")},v1=${hex("older")}`)).toBe(false);
  expect(verify(`v2=${hex("ours")}`)).toBe(false);
  expect(verify(hex("ours"))).toBe(false);
  expect(verify("")).toBe(false);
  expect(verify(undefined)).toBe(false);
});

it("gives an incident's fields", () => {
  expect(read(triggered)).toMatchObject({
    deliveryId: "5ac64822-4adc-4fda-ade0-410becf0de4f",
    events: [
      {
        name: "incident.triggered",
        subject: "pagerduty:PGR0VU2",
        event: {
          actor: { id: "PLH1HKV", name: "Sam Ito", isBot: false },
          incident: {
            number: 2,
            title: "Checkout answers 500",
            url: "https://acme.pagerduty.com/incidents/PGR0VU2",
            status: "triggered",
            urgency: "high",
            priority: "P1",
            service: { name: "Checkout" },
            assignees: [{ name: "Sam Ito" }],
            note: null,
          },
        },
      },
    ],
  });
});

it("gives a note with its incident", () => {
  const [event] = read(annotated).events;
  expect(event).toMatchObject({
    name: "incident.annotated",
    subject: "pagerduty:PGR0VU2",
    event: { incident: { title: "Checkout answers 500", note: "It began with release 7.4.1." } },
  });
});

it("knows every name under PagerDuty's own", () => {
  for (const name of sourceEventNames.pagerduty) {
    const type = name.replaceAll(/[A-Z]/gu, (letter) => `_${letter.toLowerCase()}`);
    expect(read(withEvent({ event_type: type })).events.map((event) => event.name)).toEqual([name]);
  }
});

it("has no event for a test of the address, for services, and for unknown types", () => {
  const data = { message: "Hello from your friend Pagey!", type: "ping" };
  expect(read(withEvent({ event_type: "pagey.ping", resource_type: "pagey", data })).events).toEqual([]);
  expect(read(withEvent({ event_type: "service.updated" })).events).toEqual([]);
  expect(read(withEvent({ event_type: "incident.custom_field_values.updated" })).events).toEqual([]);
});

it("knows by the event's id what was sent again", () => {
  const keyOf = (changes: object) => read(withEvent(changes)).events[0]?.contentKey;
  expect(keyOf({ occurred_at: "another time" })).toBe(keyOf({}));
  expect(keyOf({ id: "another" })).not.toBe(keyOf({}));
});

it("knows an integration from a person, and does without either", () => {
  const actorOf = (agent: unknown) => read(withEvent({ agent })).events[0]?.event["actor"];
  expect(actorOf({ id: "P1", summary: "Events API", type: "inbound_integration_reference" })).toMatchObject({
    isBot: true,
  });
  expect(actorOf(null)).toBeNull();
});
