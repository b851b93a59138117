import { expect, it } from "vitest";
import { sentry } from "./sentry.ts";
import { sampleDelivery } from "./source.ts";

const [created, regressed, alerted] = sentry.samples.map(
  (sample) => sample.payload as { data: Record<string, object> },
);

function read(payload: object | undefined, resource = "issue", requestId = "a") {
  const headers = { "sentry-hook-resource": resource, "request-id": requestId };
  return sentry.reader.read({ headers, body: Buffer.from(JSON.stringify(payload)) });
}
const withIssue = (payload: { data: Record<string, object> } | undefined, changes: object) => ({
  ...payload,
  data: { issue: { ...payload?.data["issue"], ...changes } },
});

it("gives an issue's fields", () => {
  const [event] = sentry.samples.slice(0, 1).flatMap((sample) => sentry.reader.read(sampleDelivery(sample)).events);
  expect(event?.event).toMatchObject({
    name: "issue.created",
    actor: { id: "sentry", name: "Sentry", isBot: true },
    issue: {
      id: "1170820242",
      key: "FRONT-END-9",
      title: "ReferenceError: blooopy is not defined",
      description: "blooopy is not defined\nin ?(runner)",
      url: "https://acme.sentry.io/issues/1170820242/",
      status: "new",
      labels: ["error"],
      project: { key: "front-end" },
    },
  });
  expect(event?.subject).toBe("sentry:1170820242");
});

it("takes only a regression for one: not what a person reopened, and not what escalates", () => {
  const named = (changes: object) => read(withIssue(regressed, changes)).events.map(({ name }) => name);
  expect(named({})).toEqual(["issue.regressed"]);
  expect(named({ substatus: "escalating" })).toEqual([]);
  expect(named({ substatus: "ongoing" })).toEqual([]);
  expect(named({ substatus: null })).toEqual([]);
});

it("tells regressions of one issue apart by the event that was seen last, and not by who else saw it", () => {
  const keyOf = (changes: object, id?: string) =>
    read(withIssue(regressed, changes), "issue", id).events[0]?.contentKey;
  expect(keyOf({}, "b")).toBe(keyOf({}));
  expect(keyOf({ hasSeen: true, count: "13" })).toBe(keyOf({}));
  expect(keyOf({ lastSeen: "2026-08-25T00:00:00.000000Z" })).not.toBe(keyOf({}));
  expect(keyOf({ lastSeen: null })).toBeNull();
  expect(keyOf({})).not.toBe(read(created).events[0]?.contentKey);
});

it("tells alerts apart by event and rule, and knows their issue", () => {
  const { events } = read(alerted, "event_alert");
  expect(events[0]).toMatchObject({
    name: "alert.triggered",
    subject: "sentry:1170820242",
    event: {
      issue: {
        url: "https://acme.sentry.io/organizations/acme/issues/1170820242/",
        labels: ["browser: Chrome 75.0.3770", "level: error"],
      },
      alert: { rule: "Errors in production", eventId: "e4874d664c3540c1a32eab185f12c5ab" },
    },
  });
  const other = read({ ...alerted, data: { ...alerted?.data, triggered_rule: "Another rule" } }, "event_alert");
  expect(other.events[0]?.contentKey).not.toBe(events[0]?.contentKey);
});

it.each(["installation", "comment", "metric_alert", "error", ""])("has no event for %s", (resource) => {
  expect(read(created, resource).events).toEqual([]);
});

it("has no event for people's actions on an issue", () => {
  for (const action of ["resolved", "assigned", "archived", "ignored"])
    expect(read({ ...created, action }).events).toEqual([]);
});

it("shows no address that would run as a script", () => {
  const [event] = read(withIssue(created, { web_url: "javascript:alert(1)", permalink: null })).events;
  expect(event?.event["issue"]).toMatchObject({ url: null });
});
