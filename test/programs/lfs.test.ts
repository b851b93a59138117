import { createHash } from "node:crypto";
import { mkdir, readdir, readFile, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { beforeEach, describe, expect, test } from "vitest";
import { lfsPath } from "../../src/worker/git/lfs/store.ts";
import { awkwardNames, createRepository, type Repository } from "./repository.ts";
import { runProgram, textOf, useFolder } from "./run.ts";

const folder = useFolder();
let repository: Repository;
let store: string;

beforeEach(async () => {
  repository = await createRepository(folder.path);
  store = join(repository.mirror, "lfs");
  const program = textOf("worker/git/lfs/until-ready.cjs", "worker/git/lfs/filter.cjs").replaceAll("'", "'\\''");
  const filter = `echo started >> '${join(folder.path, "starts")}'; '${process.execPath}' --no-warnings -e '${program}' -- '${store}'`;
  await repository.git("config", "filter.lfs.process", filter);
  await repository.git("config", "filter.lfs.required", "true");
  await writeFile(join(repository.path, ".gitattributes"), "*.bin filter=lfs -text\n");
});

const oidOf = (content: Buffer): string => createHash("sha256").update(content).digest("hex");
const pointerOf = (content: Buffer): string =>
  `version https://git-lfs.github.com/spec/v1\noid sha256:${oidOf(content)}\nsize ${content.length}\n`;
const write = (path: string, content: Buffer | string) => writeFile(join(repository.path, path), content);
const read = (path: string) => readFile(join(repository.path, path));
/** What git has of a file after it was added, and what it checks out of that. */
async function addAndCheckOut(path: string): Promise<{ inGit: string; inFolder: Buffer }> {
  await repository.run("git add --all");
  const inGit = await repository.run(`git cat-file blob ':${path}' && echo .`);
  await repository.run(`rm '${path}' && git checkout -q -- '${path}'`);
  return { inGit: inGit.slice(0, -1), inFolder: await read(path) };
}

describe("worker/git/lfs/filter.cjs", () => {
  test.each([
    ["a byte", Buffer.from("x")],
    ["zero bytes and line ends", Buffer.from("\0\r\n\n\0")],
    ["a megabyte and one", Buffer.alloc(1024 * 1024 + 1, "ab")],
    ["as much as one packet of git's holds", Buffer.alloc(65_516, "p")],
    ["a text that begins like a pointer", Buffer.from("version https://git-lfs.github.com/spec/v1\nand is none\n")],
    ["a pointer with a long end", Buffer.from(pointerOf(Buffer.from("y")) + "z".repeat(2_000))],
  ])("makes a pointer of %s, keeps the content, and gives it back", async (_, content) => {
    await write("file.bin", content);
    const { inGit, inFolder } = await addAndCheckOut("file.bin");
    expect(inGit).toBe(pointerOf(content));
    expect(inFolder.equals(content)).toBe(true);
    expect(await readdir(join(repository.path, ".git/lfs/tmp"))).toEqual([]);
  });

  test("leaves a pointer and an empty file as they are, and a pointer whose content is nowhere", async () => {
    const pointer = pointerOf(Buffer.from("nowhere"));
    await write("pointer.bin", pointer);
    await write("empty.bin", "");
    expect(await addAndCheckOut("pointer.bin")).toEqual({ inGit: pointer, inFolder: Buffer.from(pointer) });
    expect(await addAndCheckOut("empty.bin")).toEqual({ inGit: "", inFolder: Buffer.alloc(0) });
  });

  test("takes a content of the mirror's store, and keeps none twice", async () => {
    const content = Buffer.from("in the mirror");
    const path = lfsPath(store, oidOf(content));
    await mkdir(dirname(path), { recursive: true });
    await writeFile(path, content);
    await write("file.bin", content);
    expect(await addAndCheckOut("file.bin")).toEqual({ inGit: pointerOf(content), inFolder: content });
    expect(await readdir(join(repository.path, ".git/lfs"))).toEqual(["tmp"]);
  });

  test("filters many files of any name in one process, and follows no link", async () => {
    const names = awkwardNames.map((name) => `${name.toString()}.bin`);
    for (const name of names) await write(name, `content of ${name}`);
    for (let number = 0; number < 1_000; number += 1) await write(`${number}.bin`, `number ${number}`);
    await repository.run("ln -s 1.bin link.bin");
    await repository.run("git add --all && git ls-files -z | xargs -0 rm -f -- && git checkout -q -- .");
    expect(await readFile(join(folder.path, "starts"), "utf8")).toBe("started\nstarted\n");
    for (const name of names) expect((await read(name)).toString()).toBe(`content of ${name}`);
    expect((await read("999.bin")).toString()).toBe("number 999");
    expect(await repository.run("readlink link.bin && git cat-file blob :link.bin")).toBe("1.bin\n1.bin");
    expect(await repository.run("git status --porcelain | grep -v '^A ' || true")).toBe("");
  });
});

describe("take-contents.cjs and keep-contents.cjs", () => {
  const inClone = (program: string, input: string | Buffer, path = repository.path) =>
    runProgram(["worker/git/lfs/until-ready.cjs", `worker/lfs/${program}`], {
      cwd: path,
      environment: repository.environment,
      input,
    });

  test("take what is there out of one clone and put it into another", async () => {
    const contents = [Buffer.from("one"), Buffer.alloc(3_000_000, "two\n"), Buffer.from("\n")];
    for (const [index, content] of contents.entries()) await write(`${index}.bin`, content);
    await repository.run("git add --all");
    const asked = contents.map((content) => `${oidOf(content)} ${content.length}\n`);
    const missing = `${"0".repeat(64)} 5\n`;
    const wrongSize = `${oidOf(contents[0] as Buffer)} 4\n`;
    const taken = await inClone("take-contents.cjs", [wrongSize, missing, ...asked].join(""));
    expect(taken).toMatchObject({ code: 0, stderr: "" });
    const expected = contents.flatMap((content, index) => [Buffer.from(asked[index] ?? ""), content]);
    expect(taken.stdout.equals(Buffer.concat(expected))).toBe(true);

    const other = join(folder.path, "other");
    await repository.run(`git init -q '${other}'`);
    const kept = await inClone("keep-contents.cjs", taken.stdout, other);
    expect(kept).toMatchObject({ code: 0, stderr: "" });
    expect(kept.stdout.toString().trim().split("\n")).toEqual(contents.map(oidOf));
    for (const content of contents)
      expect((await readFile(lfsPath(join(other, ".git/lfs"), oidOf(content)))).equals(content)).toBe(true);
    const half = taken.stdout.subarray(0, 1_000);
    expect((await inClone("keep-contents.cjs", half, other)).code).toBe(1);
  });
});
