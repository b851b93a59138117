import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, it } from "vitest";
import { parse } from "yaml";
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

/** The variables of an example of an environment file. */
async function exampleVariables(name: string): Promise<Record<string, string>> {
  const text = await readFile(join(root, `deploy/${name}.env.example`), "utf8");
  return Object.fromEntries(
    [...text.matchAll(/^([A-Z][A-Z0-9_]*)=(.*)$/gmu)].map(([, variable = "", value = ""]) => [variable, value]),
  );
}

it("gives values in the examples of environment files that every node starts with", async () => {
  const common = await exampleVariables("offstage");
  const worker = await exampleVariables("worker");
  expect(Object.keys(worker)).toContain("OFFSTAGE_DEFAULT_AGENT");
  for (const own of [await exampleVariables("api"), worker]) {
    expect(readConfig({ ...common, ...own }).publicUrl).toBe("https://offstage.company.example");
  }
});

it("gives each container of compose.yml what it needs, and the keys of no other", async () => {
  const { services } = parse(await readFile(join(root, "deploy/compose.yml"), "utf8"), { merge: true }) as {
    services: Record<string, { env_file: string | string[]; environment?: unknown }>;
  };
  const given: Record<string, string[]> = {};
  for (const [service, { env_file: files, environment }] of Object.entries(services)) {
    expect(environment).toBeUndefined();
    const variables = await Promise.all([files].flat().map((file) => exampleVariables(file.replace(/\.env$/u, ""))));
    given[service] = variables.flatMap((named) => Object.keys(named));
  }
  expect(Object.keys(given).toSorted()).toEqual(["api-1", "api-2", "postgres", "worker"]);
  expect(given["postgres"]).toEqual(["POSTGRES_USER", "POSTGRES_DB", "POSTGRES_PASSWORD"]);
  const ofWorkers = [
    "ANTHROPIC_API_KEY",
    "OPENAI_API_KEY",
    "GEMINI_API_KEY",
    "GITHUB_TOKEN",
    "GITLAB_TOKEN",
    "OFFSTAGE_S3_SECRET_ACCESS_KEY",
  ];
  expect(given["worker"]).toEqual(expect.arrayContaining(ofWorkers));
  expect(given["worker"]).not.toEqual(expect.arrayContaining(["OFFSTAGE_ADMIN_KEY"]));
  for (const api of ["api-1", "api-2"]) {
    expect(given[api]).toEqual(expect.arrayContaining(["DATABASE_URL", "OFFSTAGE_MASTER_KEY", "OFFSTAGE_ADMIN_KEY"]));
    for (const name of [...ofWorkers, "POSTGRES_PASSWORD"]) expect(given[api]).not.toContain(name);
  }
});

it("trusts no proxy before an operator names one", async () => {
  const values = await readFile(join(root, "deploy/helm/offstage/values.yaml"), "utf8");
  expect((parse(values) as { settings: object }).settings).toEqual({});
  expect((await exampleVariables("api"))["OFFSTAGE_TRUSTED_PROXIES"]).toBe("");
});
