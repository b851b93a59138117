import { execFileSync, spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { readFile } from "node:fs/promises";
import pg from "pg";
import { afterAll, beforeAll, expect, test } from "vitest";
import { seedRepository } from "../forge/seed-repository.ts";
import { startFleet, type Fleet } from "../fleet.ts";
import { waitFor } from "../wait-for.ts";
import { createWorld, untilOver, type World } from "../world.ts";

const isInstalled = spawnSync("git", ["lfs", "version"]).status === 0;
const bytes = 2_000_000;
let world: World;
let fleet: Fleet;
let store: pg.Pool;

beforeAll(async () => {
  world = await createWorld((message) =>
    message.includes("You go on on another machine. The folder is as it was")
      ? [{ shell: "wc -c < made.bin > seen.txt" }, { say: "Went on." }]
      : [
          { shell: `head -c ${bytes} /dev/zero | tr '\\0' y > made.bin` },
          { shell: "true; sleep 617" },
          { say: "Never said." },
        ],
  );
  fleet = await startFleet(world, { apis: 1 });
  store = new pg.Pool({ connectionString: world.variables["DATABASE_URL"] });
});

afterAll(async () => {
  await store?.end();
  await fleet?.close();
  await world?.close();
});

test.runIf(isInstalled)(
  "what an agent made in Git LFS is in the pull request though its worker was killed",
  async () => {
    const { url } = await world.forge.createRepository("acme", "assets", {});
    await seedRepository(world.forge.pathOf("acme", "assets"), {
      commands: "printf '*.bin filter=lfs diff=lfs merge=lfs -text\n' > .gitattributes",
    });
    const first = await fleet.startWorker("first");
    const { id } = await fleet.api(0).session.create({ prompt: "begin", repositories: [url] });
    await waitFor(async () => {
      const { rowCount } = await store.query(
        "select from checkpoint where session_id = $1 and content #> '{repositories,0,lfs}' is not null",
        [id],
      );
      return rowCount === 1;
    }, "a checkpoint has the new content");
    await first.kill("SIGKILL");
    await fleet.startWorker("second");
    const session = await untilOver(fleet.api(0), id);
    expect(session).toMatchObject({ status: "completed", failure: null });
    expect(session.pullRequests).toHaveLength(1);
    const show = (path: string): string =>
      execFileSync("git", [
        "-C",
        world.forge.pathOf("acme", "assets"),
        "show",
        `${session.branchName}:${path}`,
      ]).toString();
    expect(show("seen.txt")).toBe(`${bytes}\n`);
    const oid = createHash("sha256").update("y".repeat(bytes)).digest("hex");
    expect(show("made.bin")).toBe(`version https://git-lfs.github.com/spec/v1\noid sha256:${oid}\nsize ${bytes}\n`);
    expect((await readFile(world.forge.lfs.pathOf("acme", "assets", oid))).length).toBe(bytes);
  },
);
