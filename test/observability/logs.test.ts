import { Writable } from "node:stream";
import { pino } from "pino";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { createClient, type Client } from "../../src/client.ts";
import { readConfig } from "../../src/config/config.ts";
import { startOffstage, type Offstage } from "../../src/server/offstage.ts";
import { createTestApp, type TestApp } from "../api/app.ts";
import { callApi } from "../call.ts";
import { script } from "../end-to-end/script.ts";
import { waitFor } from "../wait-for.ts";
import { adminKey, createWorld, untilOver, type World } from "../world.ts";

let world: World;
let offstage: Offstage;
let client: Client;
let testApp: TestApp;
let lines: Record<string, unknown>[] = [];
const logger = pino(
  { level: "debug" },
  new Writable({
    write(chunk: Buffer, _encoding, done) {
      lines.push(JSON.parse(chunk.toString()) as Record<string, unknown>);
      done();
    },
  }),
);

beforeAll(async () => {
  world = await createWorld(script);
  const config = readConfig({ ...world.variables, OFFSTAGE_DEFAULT_AGENT: "basic:scripted" });
  offstage = await startOffstage(config, logger);
  client = createClient({ baseUrl: offstage.url, key: adminKey });
  testApp = await createTestApp({ logger, agents: () => Promise.reject(new Error("a fault of ours")) });
});

afterAll(async () => {
  await testApp?.close();
  await offstage?.stop();
  await world?.close();
});

beforeEach(() => {
  lines = [];
});

const untilLogged = (message: string): Promise<Record<string, unknown>> =>
  waitFor(() => lines.find(({ msg }) => msg === message), `"${message}" is logged`);

test("every line of a request carries its id", async () => {
  const { headers } = await testApp.get("/agent/list");
  const line = await untilLogged("request");
  expect(line).toMatchObject({ requestId: headers["x-request-id"], status: 500, url: "/agent/list" });
  const fault = lines.find(({ err }) => (err as Error | undefined)?.message === "a fault of ours");
  expect(fault).toMatchObject({ requestId: headers["x-request-id"] });
});

test("every line of an attempt carries its session, organization and attempt", async () => {
  const { id, organizationId } = await client.session.create({ prompt: "say hello" });
  await untilOver(client, id);
  await untilLogged("an attempt ended");
  const ofRun = lines.filter(({ requestId }) => requestId === undefined);
  expect(ofRun.map(({ msg }) => msg)).toEqual(expect.arrayContaining(["an attempt begins", "an attempt ended"]));
  for (const line of ofRun) expect(line).toMatchObject({ sessionId: id, organizationId, attempt: 1 });
  expect(ofRun.at(-1)).toMatchObject({ outcome: "completed" });
});

test("an attempt whose lease was lost says whose it was", async () => {
  const { id } = await client.session.create({ prompt: "shell sleep 300" });
  await waitFor(async () => (await client.session.get(id)).status === "running", "it runs");
  await offstage.database.pool.query("update session set attempt = attempt + 1 where id = $1", [id]);
  expect(await untilLogged("the lease was lost; another worker continues")).toMatchObject({
    sessionId: id,
    attempt: 1,
  });
  await client.session.cancel(id);
});

test("every line of a job carries its id", async () => {
  const automation = await callApi(offstage.url, "/automation/create", {
    name: "Logged",
    macro: "logged",
    instructions: "say {{ event.missing.field }}",
  });
  const broken = await callApi(offstage.url, `/automation/${automation.id}/trigger`, {});
  expect(await untilLogged("job failed")).toMatchObject({ jobId: broken.id, attempt: 1 });
  await callApi(offstage.url, `/automation/${automation.id}/update`, { instructions: "say well" });
  const well = await callApi(offstage.url, `/automation/${automation.id}/trigger`, {});
  expect(await untilLogged("job created its session")).toMatchObject({
    jobId: well.id,
    sessionId: expect.any(String) as string,
  });
});
