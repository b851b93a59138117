import { chmod, mkdir, mkdtemp, rm, stat, symlink } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { compiledFolder } from "./compile-cache.ts";

const uid = process.getuid?.() ?? 0;
let homedir: string;

beforeEach(async () => {
  homedir = await mkdtemp(join(tmpdir(), "offstage-home-"));
});

afterEach(() => rm(homedir, { recursive: true, force: true }));

test("compiled code is kept below the user's home, for the user alone", async () => {
  const folder = compiledFolder({ homedir, uid });
  expect(folder).toBe(join(homedir, ".cache/offstage/compiled"));
  expect((await stat(folder ?? "")).mode & 0o777).toBe(0o700);
});

test.each([".", ".cache", ".cache/offstage", ".cache/offstage/compiled"])(
  "nothing is kept if others can write to %s",
  async (path) => {
    await mkdir(join(homedir, path), { recursive: true });
    await chmod(join(homedir, path), 0o775);
    expect(compiledFolder({ homedir, uid })).toBeNull();
  },
);

test("nothing is kept where a link leads", async () => {
  await mkdir(join(homedir, "elsewhere"));
  await symlink(join(homedir, "elsewhere"), join(homedir, ".cache"));
  expect(compiledFolder({ homedir, uid })).toBeNull();
});

test("a home that does not exist is not made", async () => {
  const none = join(homedir, "none");
  expect(compiledFolder({ homedir: none, uid })).toBeNull();
  await expect(stat(none)).rejects.toThrow("ENOENT");
});
