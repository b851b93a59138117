import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { launchBrowser } from "../test/web/browser.ts";

/**
 * Draws the pictures by which systems show the installed web app, from `icon.svg`: `node scripts/build-icons.ts`. They are in git, so
 * that a build needs no browser; test/web/notices.test.ts tells if they are not those of the file any more.
 */
const web = join(import.meta.dirname, "../src/web");
const svg = await readFile(join(web, "icon.svg"), "utf8");
/** Fills its square, of which systems cut the edges off: what is drawn is within the circle that each of them leaves. */
const maskable = svg
  .replace(' rx="7"', "")
  .replace(/(<path.*)<\/svg>/u, '<g transform="translate(16 16) scale(0.8) translate(-16 -16)">$1</g></svg>');

const browser = await launchBrowser();
const page = await browser.newPage();
for (const [name, source, size] of [
  ["icon-192", svg, 192],
  ["icon-512", svg, 512],
  ["icon-maskable-512", maskable, 512],
] as const) {
  await page.setViewportSize({ width: size, height: size });
  await page.setContent(
    `<style>body { margin: 0 } svg { position: fixed; inset: 0; width: 100vw; height: 100vh }</style>${source}`,
  );
  await writeFile(join(web, "public", `${name}.png`), await page.screenshot({ omitBackground: true }));
}
await browser.close();
