import { createHash } from "node:crypto";
import { mkdir, readdir, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { beforeEach, describe, expect, test } from "vitest";
import { lfsPath } from "../../src/worker/git/lfs.ts";
import { createRepository, type Repository } from "./repository.ts";
import { runProgram, shells, useFolder } from "./run.ts";

const folder = useFolder();
let repository: Repository;
let store: string;

beforeEach(async () => {
  repository = await createRepository(folder.path);
  store = join(repository.mirror, "lfs");
});

const oidOf = (content: Buffer): string => createHash("sha256").update(content).digest("hex");
const pointerOf = (content: Buffer): string =>
  `version https://git-lfs.github.com/spec/v1\noid sha256:${oidOf(content)}\nsize ${content.length}\n`;

describe.each(shells)("lfs-filter.sh in %s", (shell) => {
  const filter = (direction: "clean" | "smudge", input: Buffer | string) =>
    runProgram("worker/git/lfs-filter.sh", {
      shell,
      cwd: repository.path,
      environment: repository.environment,
      arguments: [direction, store],
      input,
    });

  test.each([
    ["a byte", Buffer.from("x")],
    ["zero bytes and line ends", Buffer.from("\0\r\n\n\0")],
    ["a megabyte", Buffer.alloc(1024 * 1024, "ab")],
    ["a text that begins like a pointer", Buffer.from("version https://git-lfs.github.com/spec/v1\nand is none\n")],
  ])("makes a pointer of %s, keeps the content, and gives it back", async (_, content) => {
    const cleaned = await filter("clean", content);
    expect(cleaned).toMatchObject({ code: 0, stderr: "" });
    expect(cleaned.stdout.toString()).toBe(pointerOf(content));
    expect((await filter("smudge", cleaned.stdout)).stdout.equals(content)).toBe(true);
    expect(await readdir(join(repository.path, ".git/lfs/tmp"))).toEqual([]);
  });

  test("leaves a pointer and an empty file as they are, and a pointer whose content is nowhere", async () => {
    const pointer = pointerOf(Buffer.from("nowhere"));
    for (const direction of ["clean", "smudge"] as const) {
      expect((await filter(direction, pointer)).stdout.toString()).toBe(pointer);
      expect((await filter(direction, "")).stdout.toString()).toBe("");
    }
  });

  test("takes a content of the mirror's store, and keeps none twice", async () => {
    const content = Buffer.from("in the mirror");
    const path = lfsPath(store, oidOf(content));
    await mkdir(dirname(path), { recursive: true });
    await writeFile(path, content);
    expect((await filter("smudge", pointerOf(content))).stdout.equals(content)).toBe(true);
    expect((await filter("clean", content)).stdout.toString()).toBe(pointerOf(content));
    expect(await readdir(join(repository.path, ".git/lfs"))).toEqual(["tmp"]);
  });
});
