import { mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pino } from "pino";
import { afterEach, beforeEach, expect, test } from "vitest";
import { createEnvironmentCache, type EnvironmentCache } from "../../src/worker/disk/environment-cache.ts";

const logger = pino({ level: "silent" });
let folder: string;
let cache: EnvironmentCache;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "offstage-environments-"));
  // One of these fits, and no second.
  cache = createEnvironmentCache({ directory: join(folder, "kept"), maximumBytes: 3_000 });
});

afterEach(() => rm(folder, { recursive: true, force: true }));

const held = (): Promise<string> => mkdtemp(join(folder, "held-"));

async function keep(key: string): Promise<void> {
  const made = await held();
  const archives = { work: join(made, "work.tar"), home: join(made, "home.tar") };
  for (const file of Object.values(archives)) await writeFile(file, key.repeat(1_000));
  const originalPaths = { workspace: `/of/${key}`, home: "/home" };
  await cache.keep(key, { ...archives, originalPaths, leftOut: [] }, logger);
  await rm(made, { recursive: true });
}

test("a result that was found stays whole until it is let go, whatever is kept meanwhile", async () => {
  await keep("a");
  const into = await held();
  const found = await cache.find("a", () => Promise.resolve(into));
  await keep("b");
  // It is really forgotten.
  expect(await readdir(join(folder, "kept"))).toEqual(["b"]);
  expect(await cache.find("a", held)).toBe(null);
  for (const file of [found?.work, found?.home]) expect(await readFile(file ?? "", "utf8")).toBe("a".repeat(1_000));
  expect(found?.originalPaths.workspace).toBe("/of/a");
  await rm(into, { recursive: true });
  expect((await cache.find("b", held))?.originalPaths.workspace).toBe("/of/b");
});

test("a result that is forgotten while it is looked for is not found, and is no error", async () => {
  await keep("a");
  const found = await cache.find("a", async () => {
    await keep("b");
    return held();
  });
  expect(found).toBe(null);
});

test("a result that is replaced while it is looked for is not mixed with the other", async () => {
  await keep("a");
  const found = await cache.find("a", async () => {
    await rm(join(folder, "kept/a"), { recursive: true });
    await keep("a");
    return held();
  });
  expect(found).toBe(null);
});
