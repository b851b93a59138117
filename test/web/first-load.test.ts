import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { expect, it } from "vitest";

const built = join(import.meta.dirname, "../../dist/web");
/** Bytes of script, packed by gzip, that a page may need before it can show anything. */
const mostBytes = 120_000;

/** A page's scripts before its first picture: what it names, what it preloads, and what these import. */
async function firstScripts(): Promise<string[]> {
  const page = await readFile(join(built, "index.html"), "utf8");
  const found = [...page.matchAll(/(?:src|href)="\/(assets\/[^"]+\.js)"/gu)].map(([, file = ""]) => file);
  for (const file of found) {
    const text = await readFile(join(built, file), "utf8");
    // Static imports alone: `import{a as b}from"./x.js"` and `import"./x.js"`, not `import("./x.js")`.
    for (const [, imported = ""] of text.matchAll(
      /(?:^|[;\n}])import\s*(?:[\w$*{}\s,]+from\s*)?["'`]\.\/([^"'`]+\.js)/gu,
    )) {
      if (!found.includes(`assets/${imported}`)) found.push(`assets/${imported}`);
    }
  }
  return found;
}

it("a page needs at most 120 kB of packed script before it shows anything", async () => {
  const scripts = await firstScripts();
  const sizes = await Promise.all(
    scripts.map(async (file) => ({ file, bytes: gzipSync(await readFile(join(built, file)), { level: 9 }).length })),
  );
  expect(scripts.length).toBeGreaterThan(1);
  const all = sizes.reduce((sum, { bytes }) => sum + bytes, 0);
  // The sizes stand in the failure.
  expect({ sizes, isSmall: all <= mostBytes }).toMatchObject({ isSmall: true });
});
