import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { createOverlayWorld, gitIn, overlaysMissing, type OverlayWorld } from "./overlay-world.ts";

/**
 * Files that were committed against their repository's attributes: git would store them otherwise as soon as it reads
 * them again, and so change unchanged files.
 */
const missing = await overlaysMissing();

const ways = ["overlay", "checkout"] as const;

describe.each(ways)("in a clone by the way %s", (way) => {
  let source = "";
  let world: OverlayWorld;

  beforeEach(async () => {
    source = await mkdtemp(join(tmpdir(), "offstage-source-"));
    gitIn(source, "init", "--quiet", "--initial-branch", "main");
    await writeFile(join(source, ".gitattributes"), "*.txt text eol=lf\n*.bin filter=lfs\n");
    world = await createOverlayWorld(way);
  });

  afterEach(async () => {
    await world.close();
    await rm(source, { recursive: true, force: true });
  });

  /** Commits a text with the other line ends, and a file that belongs in LFS. */
  async function commitAgainst(name: string): Promise<void> {
    await writeFile(join(source, `${name}.txt`), "a\r\nb\r\n");
    await writeFile(join(source, `${name}.bin`), "content");
    const noFilter = ["-c", "filter.lfs.process=", "-c", "filter.lfs.required=false"];
    gitIn(source, ...noFilter, "add", ".gitattributes", `${name}.bin`);
    const blob = gitIn(source, "hash-object", "-w", "--no-filters", `${name}.txt`);
    gitIn(source, "update-index", "--add", "--cacheinfo", `100644,${blob},${name}.txt`);
    gitIn(source, "commit", "--quiet", "-m", name);
  }

  /** What differs from the commit before and after git looks at everything. */
  const look =
    "git diff --cached --name-only; echo then >> mine; git add --all; git diff --cached --name-only; git diff --name-only";

  test.skipIf(way === "overlay" && missing !== "")(
    "they stay as they are, and so do those that came later",
    async () => {
      await commitAgainst("first");
      expect(await (await world.session(source)).run(look)).toBe("mine");
      await commitAgainst("second");
      expect(await (await world.session(source)).run(look)).toBe("mine");
    },
  );
});
