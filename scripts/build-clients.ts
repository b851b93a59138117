import { execFileSync } from "node:child_process";
import { readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { operationsOf } from "../src/description/operations.ts";
import { pythonModule } from "./clients/python.ts";
import { typeScriptOperations, typeScriptSchema } from "./clients/typescript.ts";
import { describeApi } from "./describe-api.ts";

/**
 * Writes what of the clients follows from the API's description, and builds the TypeScript one.
 * `node scripts/build-clients.ts --check` writes nothing, and fails if something is not as it would be written.
 */
const clients = join(import.meta.dirname, "../clients");
const isCheck = process.argv.includes("--check");
const description = await describeApi();
const operations = operationsOf(description);
const files: Readonly<Record<string, string>> = {
  "typescript/src/schema.ts": await typeScriptSchema(description, operations),
  "typescript/src/operations.ts": typeScriptOperations(operations),
  "python/offstage/_operations.py": pythonModule(operations),
};
const stale: string[] = [];
for (const [name, content] of Object.entries(files)) {
  const path = join(clients, name);
  const before = await readFile(path, "utf8").catch(() => null);
  if (before === content) continue;
  stale.push(name);
  if (!isCheck) await writeFile(path, content);
}
if (isCheck && stale.length > 0) {
  process.stderr.write(`clients/${stale.join(", clients/")} do not follow the API: run \`npm run build:clients\`\n`);
  process.exitCode = 1;
} else if (!isCheck) {
  await rm(join(clients, "typescript/dist"), { recursive: true, force: true });
  execFileSync(join(clients, "../node_modules/.bin/tsc"), ["-p", join(clients, "typescript")], { stdio: "inherit" });
}
