import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import type { Client } from "../../src/client.ts";
import type { Offstage } from "../../src/server/offstage.ts";
import { script } from "../end-to-end/script.ts";
import { createWorld, startInProcess, untilOver, type World } from "../world.ts";
import { readScrape, type Scrape } from "./scrape.ts";

/** Metrics of the workers' checkpoints, after real sessions. */
let world: World;
let offstage: Offstage | null = null;
let client: Client;
let count = 0;

beforeAll(async () => {
  world = await createWorld(script);
});

afterEach(async () => {
  await offstage?.stop();
  offstage = null;
});

afterAll(() => world?.close());

/** A worker with a disk of its own in the place of the one before. */
async function anotherWorker(): Promise<void> {
  await offstage?.stop();
  const data = join(world.data, `worker-${(count += 1)}`);
  await mkdir(data, { recursive: true });
  ({ offstage, client } = await startInProcess(world, {
    OFFSTAGE_DATA: data,
    OFFSTAGE_DEFAULT_AGENT: "basic:scripted",
    OFFSTAGE_MASTER_KEY: Buffer.alloc(32, 7).toString("base64"),
    OFFSTAGE_CHECKPOINT_MB: "1",
  }));
}

const scrape = async (): Promise<Scrape> => readScrape(await (await fetch(`${offstage?.url}/metrics`)).text());
const ended = (found: Scrape, outcome: string) =>
  found.value("offstage_checkpoint_duration_seconds_count", { outcome }) ?? 0;
const restores = (found: Scrape): Record<string, number> =>
  Object.fromEntries(
    found.samples
      .filter(({ name, value }) => name === "offstage_checkpoint_restores_total" && value > 0)
      .map(({ labels, value }) => [labels["outcome"] ?? "", value]),
  );

async function sessionWith(prompt: string): Promise<string> {
  const { url } = await world.forge.createRepository("acme", `kept-${(count += 1)}`, { "README.md": "# Before\n" });
  const { id } = await client.session.create({ prompt, repositories: [url] });
  expect((await untilOver(client, id)).status).toBe("completed");
  return id;
}

test("what is kept is counted with its time and its size, and what another worker goes on with", async () => {
  await anotherWorker();
  const id = await sessionWith("shell head -c 50000 /dev/urandom > some");
  const found = await scrape();
  expect(ended(found, "taken")).toBeGreaterThan(0);
  expect(ended(found, "failed") + ended(found, "tooLarge") + ended(found, "timedOut")).toBe(0);
  expect(found.value("offstage_checkpoint_stored_bytes_count")).toBe(ended(found, "taken"));
  expect(found.value("offstage_checkpoint_stored_bytes_sum")).toBeGreaterThan(50_000);
  expect(restores(found)).toEqual({});

  await anotherWorker();
  await client.session.message(id, { message: "write more.txt: more" });
  expect((await untilOver(client, id)).status).toBe("completed");
  expect(restores(await scrape())).toEqual({ restored: 1 });

  await anotherWorker();
  await offstage?.database.pool.query("update checkpoint_piece set sealed = sealed || '\\x00' where session_id = $1", [
    id,
  ]);
  await client.session.message(id, { message: "write last.txt: last" });
  expect((await untilOver(client, id)).status).toBe("completed");
  expect(restores(await scrape())).toEqual({ unusable: 1 });
});

test("what is too large to keep is counted as that, and not as stored", async () => {
  await anotherWorker();
  await sessionWith("shell head -c 3000000 /dev/urandom > large");
  const found = await scrape();
  expect(ended(found, "tooLarge")).toBeGreaterThan(0);
  expect(ended(found, "failed")).toBe(0);
  expect(found.value("offstage_checkpoint_stored_bytes_count")).toBe(ended(found, "taken"));
});
