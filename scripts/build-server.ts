import { execFileSync } from "node:child_process";
import { copyFile, glob, mkdir } from "node:fs/promises";
import { dirname, join } from "node:path";

/**
 * Builds what Node runs: compiles `src`, and copies what the program reads at run time: SQL with its revision, templates of automations, and the programs that run inside a
 * sandbox. `node scripts/build-server.ts [folder]`; the folder is `dist` if omitted.
 */
const root = join(import.meta.dirname, "..");
const [to = join(root, "dist")] = process.argv.slice(2);
const tsc = join(root, "node_modules/.bin/tsc");
execFileSync(tsc, ["-p", join(root, "tsconfig.build.json"), "--outDir", to], { stdio: "inherit" });
for await (const file of glob(["**/*.{sql,sh,cjs,pl}", "store/sql/*.json", "automation-files/templates/*.yaml"], {
  cwd: join(root, "src"),
})) {
  await mkdir(dirname(join(to, file)), { recursive: true });
  await copyFile(join(root, "src", file), join(to, file));
}
