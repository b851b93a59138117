import { spawnSync } from "node:child_process";
import { closeSync, openSync, rmSync, statfsSync, writeSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { Client } from "../../src/client.ts";
import type { Offstage } from "../../src/server/offstage.ts";
import { waitFor } from "../wait-for.ts";
import { createWorld, startInProcess, untilOver, type World } from "../world.ts";
import { obey } from "./script.ts";

// A worker whose disk is full: its data is on a small one of its own, which only root can mount. Elsewhere these tests are skipped;
// `src/worker/attempt/failure.test.ts` and `test/worker/full-disk.test.ts` have the parts.

const canMount = process.platform === "linux" && process.getuid?.() === 0 && tmpfs(["--version"]);
let world: World;
let offstage: Offstage;
let client: Client;
let isToFill = false;

function tmpfs(more: readonly string[]): boolean {
  return spawnSync("mount", more).status === 0;
}

const filler = (): string => join(world.data, "filler");
const free = (): number => statfsSync(world.data).bavail;

/** Leaves no block. */
function fill(): void {
  const file = openSync(filler(), "a");
  try {
    for (const bytes of [1024 ** 2, 4_096])
      while (free() > 0) {
        try {
          writeSync(file, Buffer.alloc(bytes));
        } catch {
          break;
        }
      }
  } finally {
    closeSync(file);
  }
}

beforeAll(async () => {
  if (!canMount) return;
  world = await createWorld((message) => {
    if (isToFill) fill();
    return obey(message);
  });
  if (!tmpfs(["-t", "tmpfs", "-o", "size=64m,mode=755", "tmpfs", world.data])) throw new Error("mount failed");
  const own = { OFFSTAGE_DEFAULT_AGENT: "basic:scripted", OFFSTAGE_MIN_FREE_MB: "0", OFFSTAGE_LOG_LEVEL: "fatal" };
  ({ offstage, client } = await startInProcess(world, own));
});

afterAll(async () => {
  if (!canMount) return;
  await offstage?.stop();
  if (world !== undefined) spawnSync("umount", ["--lazy", world.data]);
  await world?.close();
});

async function story(id: string): Promise<{ readonly codes: readonly string[]; readonly turns: number }> {
  const { events } = await client.session.events(id, { limit: 1_000 });
  const codes = events.flatMap((event) =>
    event.type === "session.status" && event.data.retry !== undefined ? [event.data.retry.code] : [],
  );
  return { codes: [...new Set(codes)], turns: events.filter(({ type }) => type === "agent.turn").length };
}

test.skipIf(!canMount)(
  "a session goes through on the small disk as long as there is room: the others fail of nothing else",
  async () => {
    const { url } = await world.forge.createRepository("acme", "room", { "README.md": "# Before\n" });
    const { id } = await client.session.create({ prompt: "write a.txt: a", repositories: [url] });
    expect(await untilOver(client, id)).toMatchObject({ status: "completed", failure: null });
    expect((await story(id)).codes).toEqual([]);
  },
);

test.skipIf(!canMount).each([
  ["before it is begun", false],
  ["while the agent works", true],
])("a disk that is full %s is waited for: one pull request, and nobody asks again", async (_, isLater) => {
  const name = `full-${String(isLater)}`;
  const { url } = await world.forge.createRepository("acme", name, { "README.md": "# Before\n" });
  isToFill = isLater;
  if (!isLater) fill();
  try {
    const { id } = await client.session.create({ prompt: "shell seq 1 2000 > a.txt", repositories: [url] });
    await waitFor(async () => {
      const { retry, failure } = await client.session.get(id);
      if (failure !== null) throw new Error(`it failed: ${failure.code} ${failure.reason}`);
      return retry?.code === "disk_full";
    }, "it waits for the disk");
    isToFill = false;
    rmSync(filler());
    expect(await untilOver(client, id)).toMatchObject({ status: "completed", failure: null, retry: null });
    expect((await story(id)).codes).toEqual(["disk_full"]);
    expect(await world.forge.pullRequests("acme", name)).toHaveLength(1);
  } finally {
    isToFill = false;
    rmSync(filler(), { force: true });
  }
});
