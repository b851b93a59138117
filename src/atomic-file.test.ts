import { mkdtemp, readdir, readFile, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { createFile, replaceFile } from "./atomic-file.ts";

let folder: string;
let path: string;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "offstage-atomic-"));
  path = join(folder, "file");
});
afterEach(() => rm(folder, { recursive: true, force: true }));

it("replaces a file such that a reader always finds the whole old or the whole new content", async () => {
  const contents = ["a", "b"].map((letter) => letter.repeat(1_000_000));
  await replaceFile(path, contents[0] ?? "");
  let isWriting = true;
  const writing = (async () => {
    for (let count = 1; count <= 40; count += 1) await replaceFile(path, contents[count % 2] ?? "");
    isWriting = false;
  })();
  let reads = 0;
  while (isWriting) {
    const found = await readFile(path, "utf8");
    if (!contents.includes(found)) throw new Error(`found ${found.length} characters`);
    reads += 1;
  }
  await writing;
  expect(reads).toBeGreaterThan(1);
  expect(await readdir(folder)).toEqual(["file"]);
});

it("replaces with the permissions asked for, whatever a killed process left", async () => {
  await writeFile(`${path}.new`, "a longer one that was left", { mode: 0o644 });
  await replaceFile(path, "new", { mode: 0o600, durable: true });
  expect(await readFile(path, "utf8")).toBe("new");
  expect((await stat(path)).mode & 0o777).toBe(0o600);
});

it("creates a file once, though many do so at the same time, and leaves nothing else", async () => {
  const created = await Promise.all(
    Array.from({ length: 20 }, (_, index) =>
      createFile(path, String(index), { mode: 0o600, durable: index % 2 === 0 }),
    ),
  );
  expect(created.filter((isCreated) => isCreated)).toHaveLength(1);
  expect(await readFile(path, "utf8")).toBe(String(created.indexOf(true)));
  expect(await createFile(path, "later")).toBe(false);
  expect(await readdir(folder)).toEqual(["file"]);
});

it("says what keeps a file from being created", async () => {
  await expect(createFile(join(folder, "none", "file"), "content")).rejects.toMatchObject({ code: "ENOENT" });
});
