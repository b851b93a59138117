import { afterAll, beforeAll, expect, test } from "vitest";
import { createTestApp, type TestApp } from "./app.ts";
import { waitFor } from "../wait-for.ts";

let api: TestApp;
beforeAll(async () => {
  api = await createTestApp();
});
afterAll(() => api?.close());

test("a webhook with an event of a newer Offstage, which shares the database, is shown, and can't be chosen", async () => {
  const { body: made } = await api.post("/webhook/create", { url: "https://example.com/told", events: ["job.failed"] });
  await api.database.pool.query("update webhook set events = events || '{session.newer}' where id = $1", [made.id]);
  const events = ["job.failed", "session.newer"];
  const shown = await api.get(`/webhook/${made.id}`);
  expect([shown.status, shown.body.events]).toEqual([200, events]);
  expect((await api.get("/webhook/list")).body.webhooks).toMatchObject([{ id: made.id, events }]);
  const refused = await api.post(`/webhook/${made.id}/update`, { events });
  expect([refused.status, refused.body.error]).toEqual([400, expect.stringContaining("events")]);
  // What does not name its events keeps them.
  expect((await api.post(`/webhook/${made.id}/update`, { enabled: false })).body).toMatchObject({ events });
});

test.each(["/webhook/create", "/webhook/{id}/update"])(
  "%s refuses a host too long for any name, by its field",
  async (path) => {
    const { body: made } = await api.post("/webhook/create", { url: "https://example.com/told" });
    // `URL.canParse` says that this is a URL, and `new URL` throws.
    const url = `https://${"A".repeat(100_000)}.example.com/`;
    const refused = await api.post(path.replace("{id}", String(made.id)), { url });
    expect([refused.status, refused.body.error]).toEqual([400, expect.stringMatching(/^url .*2,?000 characters/u)]);
  },
);

test.each(["https://example.com/\0", "https://example.com/\ud800"])(
  "an address with %j is refused by its field",
  async (url) => {
    const refused = await api.post("/webhook/create", { url });
    expect([refused.status, refused.body.error]).toEqual([400, expect.stringMatching(/^url must/u)]);
  },
);

test("a test of a webhook that is being deleted finds none", async () => {
  const { id } = (await api.post("/webhook/create", { url: "https://hooks.example.com/going" })).body as { id: string };
  const client = await api.database.pool.connect();
  try {
    await client.query("begin");
    await client.query("delete from webhook where id = $1", [id]);
    const tested = api.post(`/webhook/${id}/test`, {});
    await waitFor(async () => {
      const { rowCount } = await api.database.pool.query(
        "select from pg_stat_activity where wait_event_type = 'Lock' and query like '%into webhook_delivery%'",
      );
      return rowCount === 1;
    }, "the test waits for the deletion");
    await client.query("commit");
    expect((await tested).status).toBe(404);
  } finally {
    client.release();
  }
});
