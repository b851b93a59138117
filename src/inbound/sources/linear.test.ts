import { createHmac } from "node:crypto";
import { expect, it } from "vitest";
import { linear } from "./linear.ts";

const [created, moved, assigned] = linear.samples.map(({ payload }) => payload);
const read = (payload: object | undefined, id = "a") =>
  linear.reader.read({ headers: { "linear-delivery": id }, body: Buffer.from(JSON.stringify(payload)) });
const keysOf = (payload: object | undefined, id?: string) =>
  read(payload, id).events.map(({ contentKey }) => contentKey);

it("gives an issue's fields", () => {
  expect(read(created)).toMatchObject({
    deliveryId: "a",
    events: [
      {
        name: "issue.created",
        subject: "linear:2174add1-f7c8-44e3-bbf3-2d60b5ea8bc9",
        event: {
          actor: { name: "Sam Ito", isBot: false },
          issue: {
            key: "ENG-42",
            url: "https://linear.app/acme/issue/ENG-42/sign-in-fails-for-names-with-an-apostrophe",
            status: "Todo",
            priority: "High",
            labels: ["Bug"],
            assignee: null,
            author: { name: "Sam Ito" },
            project: { key: "ENG", name: "Accounts" },
          },
        },
      },
    ],
  });
});

it("delivers a changed status under both names, with one key, so that a trigger of both starts once", () => {
  const { events } = read(moved);
  expect(events.map(({ name }) => name)).toEqual(["issue.statusChanged", "issue.updated"]);
  expect(new Set(keysOf(moved)).size).toBe(1);
  expect(events[0]?.event["changes"]).toEqual([
    { field: "stateId", from: "d1f9e1a6-0a0b-4a53-a8f1-0f6f9f6d9d51", to: "5b7c6f52-8c9f-4a0b-9c0e-6f3f7c1d2e33" },
  ]);
});

it("delivers any other change as an update, with the values before", () => {
  const { events } = read(assigned);
  expect(events.map(({ name }) => name)).toEqual(["issue.updated"]);
  expect(events[0]?.event["changes"]).toEqual([
    { field: "assigneeId", from: null, to: "b5ea5f1f-8adc-4f52-b4bd-ab4e84cf51ba" },
  ]);
  expect(events[0]?.event["issue"]).toMatchObject({ assignee: { name: "Sam Ito", isBot: false } });
});

it("knows a delivery that is sent again, and each change by itself", () => {
  expect(keysOf({ ...assigned, webhookTimestamp: 1, webhookId: "another webhook" }, "b")).toEqual(keysOf(assigned));
  const later = { ...assigned, data: { ...(assigned?.["data"] as object), updatedAt: "2026-08-19T13:05:45.018Z" } };
  expect(keysOf(later)).not.toEqual(keysOf(assigned));
  expect(keysOf(created)).not.toEqual(keysOf(assigned));
});

it("has no event for an issue that was only dragged to another place, for its removal, and for other things", () => {
  expect(read({ ...assigned, updatedFrom: { sortOrder: 3, updatedAt: "2026-08-19T12:00:00.000Z" } }).events).toEqual(
    [],
  );
  expect(read({ ...created, action: "remove" }).events).toEqual([]);
  for (const type of ["Comment", "Project", "IssueLabel", "AppUserNotification"]) {
    expect(read({ ...created, type }).events).toEqual([]);
  }
});

it("has no event for subscribers of an issue: a comment alone subscribes its author", () => {
  expect(
    read({ ...assigned, updatedFrom: { subscriberIds: [], updatedAt: "2026-08-19T12:00:00.000Z" } }).events,
  ).toEqual([]);
  expect(read({ ...assigned, updatedFrom: { reactionData: [] } }).events).toEqual([]);
});

it("knows an app or an integration from a person", () => {
  const actorOf = (actor: object) => read({ ...created, actor }).events[0]?.event["actor"];
  expect(actorOf({ id: "1", type: "oauthClient", name: "Agent" })).toEqual({ id: "1", name: "Agent", isBot: true });
  expect(actorOf({ id: "2", type: "integration", service: "github" })).toEqual({
    id: "2",
    name: "github",
    isBot: true,
  });
});

it("takes a signature for a minute, by the time in the signed body", () => {
  const sent = Date.parse("2026-08-19T12:00:01.000Z");
  const verify = (body: Buffer, now: number) => {
    const signature = createHmac("sha256", "secret").update(body).digest("hex");
    return linear.reader.verify({ headers: { "linear-signature": signature }, body }, ["secret"], now);
  };
  const body = Buffer.from(JSON.stringify(created));
  expect(verify(body, sent + 60_000)).toBe(true);
  expect(verify(body, sent + 60_001)).toBe(false);
  expect(verify(body, sent - 60_001)).toBe(false);
  expect(verify(Buffer.from(JSON.stringify({ ...created, webhookTimestamp: undefined })), sent)).toBe(false);
  expect(verify(Buffer.from("no JSON"), sent)).toBe(false);
});
