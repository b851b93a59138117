import { expect, it } from "vitest";
import { jira } from "./jira.ts";
import { objectAt } from "./payload.ts";

const [created, changed, labeled] = jira.samples.map(({ payload }) => payload);
const read = (payload: object | undefined, id?: string) =>
  jira.reader.read({ headers: { "x-atlassian-webhook-identifier": id }, body: Buffer.from(JSON.stringify(payload)) });
const withItems = (...items: object[]) => ({ ...changed, changelog: { id: "1", items } });
const namesOf = (payload: object | undefined) => read(payload).events.map(({ name }) => name);

it("accepts the signature that Atlassian publishes", () => {
  // https://developer.atlassian.com/cloud/jira/platform/webhooks/#secure-admin-webhooks
  const signature = "sha256=a4771c39fbe90f317c7824e83ddef3caae9cb3d976c214ace1f2937e133263c9";
  const delivery = { headers: { "x-hub-signature": signature }, body: Buffer.from("Hello World!") };
  expect(jira.reader.verify(delivery, ["It's a Secret to Everybody"], 0)).toBe(true);
  expect(
    jira.reader.verify({ ...delivery, body: Buffer.from("Hello World?") }, ["It's a Secret to Everybody"], 0),
  ).toBe(false);
});

it("gives an issue's fields, with the address that people open", () => {
  expect(read(created, "a")).toMatchObject({
    deliveryId: "a",
    events: [
      {
        name: "issue.created",
        subject: "jira:https://acme.atlassian.net:10042",
        event: {
          actor: { id: "5b10a2844c20165700ede21g", name: "Sam Ito", isBot: false },
          issue: {
            key: "SHOP-42",
            title: "The basket forgets its items after sign-in",
            url: "https://acme.atlassian.net/browse/SHOP-42",
            status: "To Do",
            labels: ["basket"],
            project: { key: "SHOP" },
          },
        },
      },
    ],
  });
});

it("delivers an assignment and a move at once as two happenings", () => {
  const { events } = read(changed);
  expect(events.map(({ name }) => name)).toEqual(["issue.assigned", "issue.statusChanged"]);
  expect(new Set(events.map(({ contentKey }) => contentKey)).size).toBe(2);
  expect(events.map(({ event }) => event["changes"])).toEqual([
    [{ field: "assignee", from: null, to: "Sam Ito" }],
    [{ field: "status", from: "To Do", to: "In Progress" }],
  ]);
});

it("reads Data Center: people without accounts, and a Jira below a path", () => {
  const [event] = read(labeled).events;
  expect(event?.event).toMatchObject({
    name: "issue.labeled",
    actor: { id: "JIRAUSER10100", name: "Sam Ito" },
    issue: { url: "https://jira.acme.example/jira/browse/SHOP-42", labels: ["basket", "agent"] },
    changes: [{ field: "labels", from: "basket", to: "basket agent" }],
  });
  expect(read(labeled).deliveryId).toBeNull();
});

it("has no event for removals and for other fields", () => {
  expect(namesOf(withItems({ field: "assignee", from: "a", fromString: "A", to: null, toString: null }))).toEqual([]);
  // Without its own name, a change has the one that every object inherits.
  expect(namesOf(withItems({ field: "assignee", from: "a", fromString: "A", to: null }))).toEqual([]);
  expect(namesOf(withItems({ field: "labels", fromString: "a b", toString: "a" }))).toEqual([]);
  expect(namesOf(withItems({ field: "labels", fromString: "a", toString: "a b" }))).toEqual(["issue.labeled"]);
  expect(namesOf(withItems({ field: "constructor" }, { field: "summary" }))).toEqual([]);
  expect(namesOf({ ...created, webhookEvent: "comment_created" })).toEqual([]);
  expect(namesOf({ ...created, webhookEvent: "jira:issue_deleted" })).toEqual([]);
});

it("delivers an issue that went to another project as moved", () => {
  const project = { field: "project", from: "1", fromString: "Shop", to: "2", toString: "Accounts" };
  const key = { field: "Key", from: null, fromString: "SHOP-42", to: null, toString: "ACC-1" };
  expect(namesOf(withItems(project, key))).toEqual(["issue.moved"]);
});

it("keeps its keys when sent again, has others for the same change at another time, and the same subject all along", () => {
  const keysOf = (payload: object | undefined, id?: string) =>
    read(payload, id).events.map(({ contentKey }) => contentKey);
  expect(keysOf(changed, "b")).toEqual(keysOf(changed, "a"));
  const again = { ...changed, changelog: { ...objectAt(changed, "changelog"), id: "10999" } };
  expect(keysOf(again)).not.toEqual(keysOf(changed));
  expect(read(changed).events[0]?.subject).toBe(read(created).events[0]?.subject);
});

it("reads a description in the Atlassian Document Format as its texts", () => {
  const description = {
    version: 1,
    type: "doc",
    content: [
      {
        type: "paragraph",
        content: [
          { type: "text", text: "Ask " },
          { type: "mention", attrs: { id: "1", text: "@Sam" } },
        ],
      },
      {
        type: "bulletList",
        content: [{ type: "listItem", content: [{ type: "paragraph", content: [{ type: "text", text: "one" }] }] }],
      },
      { type: "codeBlock", content: [{ type: "text", text: "a < b" }] },
    ],
  };
  const issue = { ...objectAt(created, "issue"), fields: { ...objectAt(created, "issue", "fields"), description } };
  const [event] = read({ ...created, issue }).events;
  expect(event?.event["issue"]).toMatchObject({ description: "Ask @Sam\none\n\na < b" });
});

it("gives no address if only a program could open it", () => {
  const issue = {
    ...objectAt(created, "issue"),
    self: "https://api.atlassian.com/ex/jira/11111/rest/api/2/issue/10042",
  };
  expect(read({ ...created, issue }).events[0]?.event["issue"]).toMatchObject({ url: null });
});
