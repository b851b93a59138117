import { chmodSync, mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { chooseDataFolder } from "./data-folder.ts";

let home = "";
let clone = "";

beforeAll(() => {
  home = mkdtempSync(join(tmpdir(), "offstage-home-"));
  clone = join(home, "src", "clone");
  mkdirSync(clone, { recursive: true, mode: 0o755 });
});

afterAll(() => rmSync(home, { recursive: true, force: true }));

const root = { isRoot: true, isEmbedded: true };

it("is in the working directory if the database's user can enter that", () => {
  chmodSync(home, 0o755);
  expect(chooseDataFolder(clone, root)).toEqual({ path: join(clone, ".offstage"), reason: null });
});

it("is elsewhere for root below a folder that only its owner may enter, and says which folder that is", () => {
  chmodSync(home, 0o700);
  const { path, reason } = chooseDataFolder(clone, root);
  expect(path).toBe("/var/lib/offstage");
  expect(reason).toContain(`can't enter ${home};`);
});

it("stays there if the database has no user of its own, or is not ours, or is there already", () => {
  chmodSync(home, 0o700);
  const there = { path: join(clone, ".offstage"), reason: null };
  expect(chooseDataFolder(clone, { ...root, isRoot: false })).toEqual(there);
  expect(chooseDataFolder(clone, { ...root, isEmbedded: false })).toEqual(there);
  mkdirSync(join(clone, ".offstage", "postgres"), { recursive: true });
  expect(chooseDataFolder(clone, root)).toEqual(there);
});

it("stays root's after the database was moved elsewhere, because the master key is there", () => {
  chmodSync(home, 0o700);
  const other = join(home, "src", "another-clone");
  mkdirSync(other, { mode: 0o755 });
  const ofRoot = join(home, "of-root");
  const moved = { isRoot: true, isEmbedded: false };
  expect(chooseDataFolder(other, moved, ofRoot).path).toBe(join(other, ".offstage"));
  mkdirSync(join(ofRoot, "postgres"), { recursive: true });
  expect(chooseDataFolder(other, moved, ofRoot).path).toBe(ofRoot);
  // A server that began with a database elsewhere keeps its folder.
  mkdirSync(join(other, ".offstage"));
  expect(chooseDataFolder(other, moved, ofRoot).path).toBe(join(other, ".offstage"));
});
