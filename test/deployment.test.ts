import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, it } from "vitest";
import { readConfig } from "../src/config/config.ts";
import { variablesSchema } from "../src/config/variables.ts";

const root = join(import.meta.dirname, "..");

/** What the other programs that are deployed read. */
const ofOthers = new Set(["NODE_ENV", "POSTGRES_USER", "POSTGRES_PASSWORD", "POSTGRES_DB"]);

/** Every variable that is named in a file: by its prefix anywhere, else where a value is given to it. */
function variablesIn(text: string): string[] {
  const named = [...text.matchAll(/\bOFFSTAGE_[A-Z0-9_]+/gu)].map(([name]) => name);
  const given = [...text.matchAll(/(?:^|\s)(?:-e )?(?<name>[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+)\s*[=:]/gmu)].map(
    ({ groups }) => groups?.["name"] ?? "",
  );
  return [...named, ...given];
}

it("names only variables in deploy/ and docs/deployment.md that the service reads", async () => {
  const entries = await readdir(join(root, "deploy"), { recursive: true, withFileTypes: true });
  const files = entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name));
  const known = new Set([...Object.keys(variablesSchema.shape), ...ofOthers]);
  const found = new Set<string>();
  const unknown: string[] = [];
  for (const file of [...files, join(root, "docs/deployment.md")]) {
    for (const name of variablesIn(await readFile(file, "utf8"))) {
      found.add(name);
      if (!known.has(name)) unknown.push(`${file.slice(root.length + 1)}: ${name}`);
    }
  }
  expect(unknown).toEqual([]);
  expect([...found]).toEqual(expect.arrayContaining(["DATABASE_URL", "OFFSTAGE_MASTER_KEY", "GITHUB_TOKEN"]));
});

it("keeps Kubernetes from setting variables of ours to the addresses of Services", async () => {
  for (const file of ["api", "worker"]) {
    const template = await readFile(join(root, `deploy/helm/offstage/templates/${file}.yaml`), "utf8");
    expect(template).toContain("enableServiceLinks: false");
  }
});

it("gives values in deploy/offstage.env.example that every node starts with", async () => {
  const text = await readFile(join(root, "deploy/offstage.env.example"), "utf8");
  const variables = Object.fromEntries(
    [...text.matchAll(/^([A-Z][A-Z0-9_]*)=(.*)$/gmu)].map(([, name = "", value = ""]) => [name, value]),
  );
  expect(Object.keys(variables)).toContain("OFFSTAGE_DEFAULT_AGENT");
  expect(readConfig(variables).publicUrl).toBe("https://offstage.company.example");
});
