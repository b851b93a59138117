import { execFileSync } from "node:child_process";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { Client } from "../../src/client.ts";
import type { Offstage } from "../../src/server/offstage.ts";
import { seedRepository } from "../forge/seed-repository.ts";
import { createWorld, startInProcess, untilOver, type World } from "../world.ts";
import { script } from "./script.ts";

/** Repositories that are large by their files or their objects, from the API's request to the pull request on the forge. */
let world: World;
let offstage: Offstage;
let client: Client;

beforeAll(async () => {
  world = await createWorld(script);
  ({ offstage, client } = await startInProcess(world, { OFFSTAGE_DEFAULT_AGENT: "basic:scripted" }));
});

afterAll(async () => {
  await offstage?.stop();
  await world?.close();
});

/** A repository of so many files, a thousand in a folder; each has a line, or so many random bytes. */
async function repositoryOf(name: string, files: number, randomBytes = 0): Promise<{ url: string; path: string }> {
  const { url } = await world.forge.createRepository("acme", name, {});
  const path = world.forge.pathOf("acme", name);
  const names = `BEGIN { for (i = 0; i < ${files}; i++) printf "%d/%d.txt\\n", i / 1000, i }`;
  const lines = String.raw`{ text = "line " NR "\n"; printf "M 100644 inline %s\ndata %d\n%s\n", $0, length(text), text }`;
  const head = String.raw`BEGIN { print "commit refs/heads/main\ncommitter A <a@b.c> 1700000000 +0000\ndata 4\nSeed" }`;
  const make =
    randomBytes === 0
      ? `awk '${names}' | awk '${head} ${lines}' | git fast-import --quiet`
      : `awk '${names}' | while read -r file; do mkdir -p "$(dirname "$file")"; head -c ${randomBytes} /dev/urandom > "$file"; done`;
  await seedRepository(path, randomBytes === 0 ? { commands: "true", bare: make } : { commands: make });
  return { url, path };
}

const git = (path: string, ...parameters: string[]): string =>
  execFileSync("git", ["-C", path, ...parameters], { encoding: "utf8", maxBuffer: 2 ** 27 }).trim();

async function progressOf(id: string): Promise<{ readonly text: string; readonly fraction?: number | undefined }[]> {
  const { events } = await client.session.events(id, { limit: 1_000 });
  return events.flatMap(({ type, data }) => (type === "step.progress" ? [data] : []));
}

test("a repository of 100,000 files gets its pull request, with the change alone", async () => {
  const files = 100_000;
  const { url, path } = await repositoryOf("many-files", files);
  const prompt = "write 99/new.txt: new, then shell sed -i s/line/changed/ 50/50123.txt";
  const { id } = await client.session.create({ prompt, repositories: [url], branchName: "work" });
  expect(await untilOver(client, id)).toMatchObject({ status: "completed", failure: null });
  expect(await world.forge.pullRequests("acme", "many-files")).toMatchObject([{ head: "work", base: "main" }]);
  expect(git(path, "diff", "--name-status", "main", "work").split("\n")).toEqual(["M\t50/50123.txt", "A\t99/new.txt"]);
  expect(git(path, "ls-tree", "-r", "--name-only", "work").split("\n")).toHaveLength(files + 1);
  const { patch } = (await client.session.diff(id)).repositories[0] ?? { patch: "" };
  expect(patch.match(/^diff --git/gmu)).toHaveLength(2);
});

test("a fetch that takes long tells how far it is, and one that does not tells nothing of it", async () => {
  const { url } = await repositoryOf("slow", 2_000, 3_000);
  world.forge.slowGit(100);
  const { id } = await client.session.create({ prompt: "say hello", repositories: [url] });
  expect(await untilOver(client, id)).toMatchObject({ status: "completed", failure: null });
  world.forge.slowGit(0);
  const received = (await progressOf(id)).filter(({ text }) => text.includes("Receiving objects"));
  expect(received.length).toBeGreaterThanOrEqual(2);
  const fractions = received.map(({ fraction }) => fraction ?? -1);
  expect(fractions).toEqual(fractions.toSorted((a, b) => a - b));
  expect(fractions[0]).toBeGreaterThanOrEqual(0);
  expect(fractions.at(-1)).toBeLessThanOrEqual(1);
  // It is one mirror for all of its sessions: there is nothing more to fetch.
  const { id: next } = await client.session.create({ prompt: "say hello", repositories: [url] });
  expect(await untilOver(client, next)).toMatchObject({ status: "completed", failure: null });
  expect((await progressOf(next)).filter(({ text }) => text.includes("Receiving objects"))).toEqual([]);
});
