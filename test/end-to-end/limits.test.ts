import { execFileSync } from "node:child_process";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Client } from "../../src/client.ts";
import { canLimit } from "../../src/sandboxes/process/cgroup.ts";
import type { Offstage } from "../../src/server/offstage.ts";
import { imageProblem } from "../../src/worker/disk/session-disk.ts";
import { callApi } from "../call.ts";
import { waitFor } from "../wait-for.ts";
import { createWorld, noticesOf, startInProcess, untilOver, type World } from "../world.ts";
import { script } from "./script.ts";

let world: World;
let offstage: Offstage;
let client: Client;
const noImages = await imageProblem();

// Control groups are root's to make; `offstage doctor` says if they are not kept.
describe.skipIf(!canLimit())("a session that takes too much", () => {
  beforeAll(async () => {
    world = await createWorld(script);
    const limits = {
      OFFSTAGE_SANDBOX_MEMORY_MB: "512",
      OFFSTAGE_SANDBOX_PROCESSES: "128",
      OFFSTAGE_SANDBOX_DISK_MB: "64",
      // On a shared checkout clones take nothing.
      OFFSTAGE_WORKSPACES: "checkout",
      // A turn that took too much memory would be resumed, and take it again.
      OFFSTAGE_RETRY_HOURS: "0",
    };
    ({ offstage, client } = await startInProcess(world, { OFFSTAGE_DEFAULT_AGENT: "basic:scripted", ...limits }));
  });

  afterAll(async () => {
    await offstage?.stop();
    await world?.close();
  });

  const hogs = [
    ["memory", `node -e "const all=[];for(;;)all.push(Buffer.alloc(1e7,1))"; echo survived`],
    [
      "memory, from many processes",
      "for i in 1 2 3 4 5 6 7 8; do perl -e 'my $a = qq(x) x 1e8; sleep 9' & done; wait; echo survived",
    ],
    ["disk", "i=0; while :; do i=$((i+1)); head -c 4000000 /dev/zero > many$i; done"],
    ["processes", "perl -e 'fork while 1'; echo survived"],
  ] as const;

  test.each(hogs)("of %s ends with a clear reason, and no other session does", async (_, command) => {
    const quiet = await client.session.create({ prompt: "shell sleep 2, then shell echo still here" });
    const { id } = await client.session.create({ prompt: `shell ${command}` });
    expect(await untilOver(client, id)).toMatchObject({
      status: "failed",
      failure: { code: "resources_exhausted", remedy: expect.stringContaining("OFFSTAGE_SANDBOX_") as string },
    });
    expect(await untilOver(client, quiet.id)).toMatchObject({ status: "completed", failure: null });
  });

  test("of disk leaves nothing beyond its bound, and says so", async () => {
    const fill = "for i in 1 2 3 4 5 6 7 8; do head -c 30000000 /dev/zero > many$i & done; wait; sleep 60";
    const { id } = await client.session.create({ prompt: `shell ${fill}` });
    expect(await untilOver(client, id)).toMatchObject({ status: "failed", failure: { code: "resources_exhausted" } });
    expect(existsSync(join(world.data, "sessions", id))).toBe(false);
    expect(await noticesOf(client, id)).toContainEqual(expect.stringContaining("did not keep them"));
    // What stays within it is kept, for a follow-up.
    const small = await client.session.create({ prompt: "shell echo small > file" });
    await untilOver(client, small.id);
    expect(existsSync(join(world.data, "sessions", small.id, "workspace"))).toBe(true);
  });

  test("of disk in its setup, together with the clone that waits beside it, ends with that reason", async () => {
    const { url } = await world.forge.createRepository("acme", "two-clones", { "a.txt": "a".repeat(20_000_000) });
    const connected = await callApi(offstage.url, "/repository/create", { url });
    const setUp = async (megabytes: number) => {
      const setupScript = `head -c ${megabytes}000000 /dev/urandom > ~/made; sleep 2; echo made all`;
      await callApi(offstage.url, `/repository/${connected.id}/environment`, { setupScript });
      const { id } = await client.session.create({ prompt: "shell wc -c ~/made", repositories: [url] });
      return untilOver(client, id);
    };
    // 20 MB of the session's own clone, and as much of the setup's.
    expect(await setUp(10)).toMatchObject({ status: "completed" });
    expect(await setUp(35)).toMatchObject({
      status: "failed",
      failure: { code: "setup_failed", reason: expect.stringContaining("more disk than its sandbox allows") as string },
    });
    expect(readdirSync(join(world.data, "incoming"))).toEqual([]);
  });

  test("of nothing is not bothered, and no control group is left of any", async () => {
    const { id } = await client.session.create({ prompt: "shell echo fine" });
    expect(await untilOver(client, id)).toMatchObject({ status: "completed" });
    const folders = ["/sys/fs/cgroup/offstage", "/sys/fs/cgroup/memory/offstage", "/sys/fs/cgroup/pids/offstage"];
    // Other suites make their own at the same time: each server's carry its number.
    const groups = (): string[] =>
      folders.flatMap((folder) => {
        try {
          return readdirSync(folder).filter((entry) => entry.startsWith(`${process.pid}-`));
        } catch {
          // This machine has the other version's tree.
          return [];
        }
      });
    await waitFor(() => groups().length === 0, "the control groups of this suite are gone");
  });
});

describe.skipIf(!canLimit())("a turn that takes too much memory", () => {
  beforeAll(async () => {
    world = await createWorld(script);
    ({ offstage, client } = await startInProcess(world, {
      OFFSTAGE_DEFAULT_AGENT: "basic:scripted",
      OFFSTAGE_SANDBOX_MEMORY_MB: "512",
    }));
  });

  afterAll(async () => {
    await offstage?.stop();
    await world?.close();
  });

  const hog = `node -e "const all=[];for(;;)all.push(Buffer.alloc(1e7,1))"`;

  async function retriesOf(id: string): Promise<string[]> {
    const { events } = await client.session.events(id, { limit: 1_000 });
    return events.flatMap(({ type, data }) =>
      type === "session.status" && data.retry !== undefined ? [data.retry.code] : [],
    );
  }

  test("is resumed three times, and then fails for good", async () => {
    const { id } = await client.session.create({ prompt: `shell ${hog}` });
    expect(await untilOver(client, id)).toMatchObject({
      status: "failed",
      failure: { code: "resources_exhausted", passing: true },
    });
    expect(await retriesOf(id)).toEqual(Array.from({ length: 3 }, () => "resources_exhausted"));
  });

  test("once goes on with what it had made", async () => {
    const { url } = await world.forge.createRepository("acme", "hungry-once", { "a.txt": "a\n" });
    const prompt = `write made.txt: before it, then shell test -e $HOME/again || { touch $HOME/again; ${hog}; }, then write more.txt: after it`;
    const { id } = await client.session.create({ prompt, repositories: [url] });
    expect(await untilOver(client, id)).toMatchObject({ status: "completed", failure: null });
    expect(await retriesOf(id)).toEqual(["resources_exhausted"]);
    expect((await client.session.diff(id)).repositories[0]?.patch).toMatch(/made\.txt[^]*more\.txt/u);
  });
});

/** With a disk of each session's own, which needs root and loop devices. */
describe.skipIf(!canLimit() || noImages !== null)("a session with a disk of its own", () => {
  beforeAll(async () => {
    world = await createWorld(script);
    ({ offstage, client } = await startInProcess(world, {
      OFFSTAGE_DEFAULT_AGENT: "basic:scripted",
      OFFSTAGE_SANDBOX_DISK: "image",
      OFFSTAGE_SANDBOX_DISK_MB: "64",
    }));
  });

  afterAll(async () => {
    await offstage?.stop();
    for (const folder of mounts()) execFileSync("umount", [folder]);
    await world?.close();
  });

  const mounts = (): string[] =>
    readFileSync("/proc/self/mounts", "utf8")
      .split("\n")
      .map((line) => line.split(" ")[1] ?? "")
      .filter((folder) => folder.startsWith(world.data));

  test("works, finds its files again in a follow-up, and has nothing mounted meanwhile", async () => {
    const { url } = await world.forge.createRepository("acme", "own-disk", { "a.txt": "a\n" });
    const prompt = "shell echo kept > $HOME/kept; echo b > b.txt; df -Pm . | tail -1";
    const { id } = await client.session.create({ prompt, repositories: [url] });
    expect(await untilOver(client, id)).toMatchObject({ status: "completed" });
    await waitFor(() => mounts().length === 0, "its disk is closed");
    await client.session.message(id, { message: "shell cp $HOME/kept c.txt" });
    await waitFor(async () => (await client.session.get(id)).pullRequests.length > 0, "there is a pull request");
    expect(await untilOver(client, id)).toMatchObject({ status: "completed" });
    expect((await client.session.diff(id)).repositories[0]?.patch).toContain("+kept");
    await waitFor(() => mounts().length === 0, "its disk is closed again");
  });

  test("holds what a setup made of most of it", async () => {
    const { url } = await world.forge.createRepository("acme", "large-setup", { "a.txt": "a\n" });
    const { id: repositoryId } = await callApi(offstage.url, "/repository/create", { url });
    const setupScript = "head -c 45000000 /dev/urandom > ~/made";
    await callApi(offstage.url, `/repository/${repositoryId}/environment`, { setupScript });
    const order = "shell [ $(wc -c < ~/made) = 45000000 ] && echo it is whole > a.txt";
    // Made now, and then as it was kept.
    for (const times of [1, 2]) {
      const { id } = await client.session.create({ prompt: order, repositories: [url], branchName: `made-${times}` });
      expect(await untilOver(client, id)).toMatchObject({ status: "completed", failure: null });
      expect((await client.session.diff(id)).repositories[0]?.patch).toContain("+it is whole");
    }
  });

  test("that fills it ends with that reason, and its disk is not kept", async () => {
    const { id } = await client.session.create({
      prompt: "shell i=0; while :; do i=$((i+1)); head -c 4000000 /dev/urandom > many$i; done",
    });
    expect(await untilOver(client, id)).toMatchObject({
      status: "failed",
      failure: { code: "resources_exhausted", remedy: expect.stringContaining("OFFSTAGE_SANDBOX_DISK_MB") as string },
    });
    expect((await readdir(join(world.data, "disks"))).filter((name) => name.startsWith(id))).toEqual([]);
    expect(mounts()).toEqual([]);
  });
});
