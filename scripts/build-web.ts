import { readdir, stat } from "node:fs/promises";
import { join } from "node:path";
import { build } from "vite";

/**
 * Builds the web app into `dist/web` unless it is there and newer than everything that it is made of: so that `npm start`,
 * `npm run demo` and `npm test` work from a clean clone, and cost nothing when nothing changed.
 */
const root = join(import.meta.dirname, "..");
const made = await modifiedAt(join(root, "dist/web/index.html"));
const sources = ["src/web", "src/domain", "src/description", "src/client.ts", "package-lock.json"];
const newest = Math.max(...(await Promise.all(sources.map((path) => newestIn(join(root, path))))));
if (made <= newest) await build({ configFile: join(root, "src/web/vite.config.ts"), logLevel: "warn" });

/** Newest file of a folder, in ms since 1970. */
async function newestIn(path: string): Promise<number> {
  if (!(await stat(path)).isDirectory()) return modifiedAt(path);
  const entries = await readdir(path, { recursive: true });
  return Math.max(...(await Promise.all(entries.map((entry) => modifiedAt(join(path, entry))))));
}

async function modifiedAt(path: string): Promise<number> {
  return (await stat(path).catch(() => null))?.mtimeMs ?? 0;
}
