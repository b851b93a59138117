import { execFile } from "node:child_process";
import { join } from "node:path";
import pg from "pg";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { readConfig } from "../../src/config/config.ts";
import { openDatabase } from "../../src/database/database.ts";
import type { SessionEvent } from "../../src/domain/sessions/event.ts";
import { createObjectStore } from "../../src/objects/object-store.ts";
import { createLogger } from "../../src/observability.ts";
import { sweepObjects } from "../../src/store/checkpoints/objects.ts";
import { startFleet, type Fleet } from "../fleet.ts";
import type { Script } from "../model/server.ts";
import { s3Keys, startS3Server, type S3Server } from "../objects/s3-server.ts";
import type { ServerProcess } from "../server-process.ts";
import { waitFor } from "../wait-for.ts";
import { createWorld, untilOver, type World } from "../world.ts";

/** A retry's task says nothing of what was before. */
let isRetried = false;

/** Makes something that is too large for a row, and tells by the words of its task whether it was cut off. */
const script: Script = (message) => {
  if (isRetried || message.includes("You go on on another machine. The folder is as it was")) {
    return [
      { shell: "wc --bytes large; git log --format=%s" },
      { write: { path: "last.txt", content: "the end" } },
      { say: "Went on." },
    ];
  }
  const first = "env; head -c 3000000 /dev/urandom > large; echo mine > mine.txt";
  if (message.includes("and end")) return [{ shell: first }, { say: "Done." }];
  return [{ shell: first }, { shell: "true; sleep 617" }, { say: "Never said." }];
};

let world: World;
let s3: S3Server;
let fleet: Fleet;
let store: pg.Pool;
let count = 0;
const workers: ServerProcess[] = [];

beforeAll(async () => {
  world = await createWorld(script);
  s3 = await startS3Server();
  fleet = await startFleet(world, { apis: 1, variables: s3.variables });
  store = new pg.Pool({ connectionString: world.variables["DATABASE_URL"] });
});

afterEach(async () => {
  isRetried = false;
  s3.repair();
  for (const started of workers.splice(0)) {
    await started.kill("SIGKILL");
    expectNoKeys(started.output());
  }
});

function expectNoKeys(printed: string): void {
  for (const secret of Object.values(s3Keys)) expect(printed).not.toContain(secret);
}

afterAll(async () => {
  await store?.end();
  await fleet?.close();
  await s3?.close();
  await world?.close();
});

async function worker(): Promise<ServerProcess> {
  const started = await fleet.startWorker(`worker-${(count += 1)}`);
  workers.push(started);
  return started;
}

async function begin(prompt: string): Promise<{ readonly id: string; readonly name: string }> {
  const name = `work-${(count += 1)}`;
  const { url } = await world.forge.createRepository("acme", name, { "README.md": "# Before\n" });
  return { name, id: (await fleet.api(0).session.create({ prompt, repositories: [url] })).id };
}

const eventsOf = async (id: string): Promise<readonly SessionEvent[]> =>
  (await fleet.api(0).session.events(id, { limit: 1_000 })).events;
const eventsText = async (id: string) => JSON.stringify(await eventsOf(id));
const keysOf = async (text: string) => new Set((await store.query<{ key: string }>(text)).rows.map(({ key }) => key));
const knownKeys = () => keysOf("select key from stored_object");

/** Waits until the command that never ends runs, and a checkpoint was taken of what came before it. */
async function untilKept(id: string): Promise<void> {
  await waitFor(async () => {
    if (!(await eventsText(id)).includes("sleep 617")) return false;
    const { rowCount } = await store.query(
      "select from checkpoint_piece where session_id = $1 and object_key is not null",
      [id],
    );
    return (rowCount ?? 0) > 0;
  }, "a checkpoint is in the object store");
}

async function expectWholeWork(id: string, name: string): Promise<void> {
  expect(await untilOver(fleet.api(0), id)).toMatchObject({ status: "completed", failure: null });
  expect(await world.forge.pullRequests("acme", name)).toHaveLength(1);
  const patch = (await fleet.api(0).session.diff(id)).repositories[0]?.patch ?? "";
  for (const part of ["+mine", "+the end", "b/large"]) expect(patch).toContain(part);
  const events = await eventsText(id);
  expect(events).toContain("3000000 large");
  expectNoKeys(events);
  // Nor does the sandbox's environment, which the command printed, name the settings.
  expect(events).not.toContain("OFFSTAGE_S3_BUCKET");
}

test("another worker goes on from the object store, and neither the sandbox nor a log sees its keys", async () => {
  const first = await worker();
  const { id, name } = await begin("begin and wait");
  await untilKept(id);
  await first.kill("SIGKILL");
  expect(s3.objects.size).toBeGreaterThan(0);
  await worker();
  await expectWholeWork(id, name);
  const starts = (await eventsOf(id)).filter((event) => event.type === "agent.started");
  expect(starts.map(({ data }) => data.resumed)).toEqual([false, true]);
});

test("a worker that is killed between an upload and the checkpoint leaves no object that is not known", async () => {
  s3.fail("PUT", "no answer after all");
  const first = await worker();
  const before = new Set(s3.objects.keys());
  const { id } = await begin("begin and wait");
  const fresh = await waitFor(
    () => [...s3.objects.keys()].find((key) => !before.has(key)),
    "an object is there, of which the worker did not hear",
  );
  await first.kill("SIGKILL");
  s3.repair();
  expect(await knownKeys()).toContain(fresh);
  const { rowCount } = await store.query("select from checkpoint where session_id = $1", [id]);
  expect(rowCount).toBe(0);
  await worker();
  await untilKept(id);
  await fleet.api(0).session.cancel(id);
  await untilOver(fleet.api(0), id);

  const config = readConfig({ ...world.variables, ...s3.variables });
  if (config.objects === null) throw new Error("nothing is configured");
  const database = await openDatabase({ url: config.databaseUrl, directory: "", logger: createLogger("error") });
  try {
    await store.query("update stored_object set used_at = now() - interval '2 hours'");
    await sweepObjects(database, createObjectStore(config.objects), new AbortController().signal);
  } finally {
    await database.close();
  }
  expect(s3.objects.has(fresh)).toBe(false);
  const used = await keysOf("select object_key as key from checkpoint_piece where object_key is not null");
  expect(new Set(s3.objects.keys())).toEqual(used);
  expect(await knownKeys()).toEqual(used);
});

test("a store that is down costs the checkpoint, which the session says, and not the session", async () => {
  s3.fail("PUT", 503);
  await worker();
  const { id, name } = await begin("begin and end");
  expect(await untilOver(fleet.api(0), id)).toMatchObject({ status: "completed", failure: null });
  expect(await world.forge.pullRequests("acme", name)).toHaveLength(1);
  const notices = (await eventsOf(id)).filter((event) => event.type === "notice");
  expect(notices.map(({ data }) => data.text)).toEqual([
    expect.stringMatching(/could not be stored outside this worker \(the object store at \S+ answered 503/u),
  ]);
});

test("a store that is down when another worker takes over costs no work: the session is handed back until it is up", async () => {
  const first = await worker();
  const { id, name } = await begin("begin and wait");
  await untilKept(id);
  await first.kill("SIGKILL");
  s3.fail("GET", 503);
  await worker();
  await waitFor(
    async () => (await eventsText(id)).includes("The work so far could not be fetched"),
    "the session is handed back",
  );
  s3.repair();
  await expectWholeWork(id, name);
});

test("a worker that may not read the store fails the session with the remedy, and a retry goes on from the work", async () => {
  const first = await worker();
  const { id, name } = await begin("begin and wait");
  await untilKept(id);
  await first.kill("SIGKILL");
  const other = await startFleet(world, {
    apis: 0,
    variables: { ...fleet.shared, OFFSTAGE_S3_SECRET_ACCESS_KEY: "rotated" },
  });
  const wrong = await other.startWorker("wrong");
  workers.push(wrong);
  expect(await untilOver(fleet.api(0), id)).toMatchObject({
    status: "failed",
    failure: {
      code: "object_store_unavailable",
      retryable: true,
      reason: expect.stringMatching(/403 \(SignatureDoesNotMatch\): correct OFFSTAGE_S3_SECRET_ACCESS_KEY/u) as unknown,
    },
  });
  await wrong.kill("SIGTERM");
  await worker();
  isRetried = true;
  await fleet.api(0).session.queue(id);
  await expectWholeWork(id, name);
});

test.each([
  ["works", {}, /^ok +object store +bucket offstage-test$/mu],
  [
    "says what is wrong",
    { OFFSTAGE_S3_BUCKET: "absent" },
    /^missing +object store .*\n +→ .*NoSuchBucket\): create the/mu,
  ],
])("offstage doctor tries the object store: %s", async (_, variables, line) => {
  const env = { ...world.variables, ...s3.variables, ...variables };
  const main = join(import.meta.dirname, "../../src/main.ts");
  const printed = await new Promise<string>((resolve) => {
    execFile(process.execPath, [main, "doctor"], { env }, (__, stdout, stderr) => resolve(stdout + stderr));
  });
  expect(printed).toMatch(line);
  expectNoKeys(printed);
  expect([...s3.objects.keys()].filter((key) => key.includes("doctor"))).toEqual([]);
});
