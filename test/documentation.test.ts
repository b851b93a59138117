import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { readdir, readFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { describe, expect, it } from "vitest";
import { exitCodes } from "../src/cli/terminal/exit-code.ts";
import { readConfig } from "../src/config/config.ts";
import { variablesSchema } from "../src/config/variables.ts";
import { stepNames } from "../src/domain/sessions/step.ts";

const root = join(import.meta.dirname, "..");
const document = await readFile(join(root, "docs/configuration.md"), "utf8");

/** The row of a table whose first cell is this name. */
function row(name: string): string[] {
  const line = document.split("\n").find((candidate) => candidate.startsWith(`| ${name} |`)) ?? "";
  return line.split("|").map((cell) => cell.trim());
}

/** The third cell, where the default stands. */
function stated(variable: string): string {
  return row(`\`${variable}\``)[3] ?? "";
}

describe("docs/configuration.md", () => {
  it.each(Object.keys(variablesSchema.shape))("describes %s", (variable) => {
    expect(row(`\`${variable}\``).length).toBeGreaterThan(3);
  });

  it("names no variable that does not exist", () => {
    const named = [...document.matchAll(/^\| `([A-Z][A-Z_]+)` \|/gmu)].map(([, variable]) => variable);
    const known = new Set([...Object.keys(variablesSchema.shape), "OFFSTAGE_SERVER", "OFFSTAGE_API_KEY"]);
    expect(named.filter((variable) => variable !== undefined && !known.has(variable))).toEqual([]);
  });

  it("states the defaults that the program has", () => {
    const config = readConfig({});
    expect(stated("OFFSTAGE_HOST")).toBe(`\`${config.host}\``);
    expect(stated("OFFSTAGE_PORT")).toBe(`\`${config.port}\``);
    expect(stated("OFFSTAGE_SANDBOX")).toBe(`\`${config.sandbox}\``);
    expect(stated("OFFSTAGE_CONCURRENCY")).toBe(`\`${config.concurrency}\``);
    expect(stated("OFFSTAGE_MAX_RUNNING_PER_ORGANIZATION")).toBe(`\`${config.maxRunningPerOrganization}\``);
    expect(stated("OFFSTAGE_STALL_SECONDS")).toBe(`\`${config.stallMs / 1_000}\``);
    expect(stated("OFFSTAGE_LEASE_SECONDS")).toBe(`\`${config.leaseMs / 1_000}\``);
    expect(stated("OFFSTAGE_RATE_LIMIT_PER_MINUTE")).toBe(`\`${config.rateLimitPerMinute}\``);
    expect(stated("OFFSTAGE_DELIVERIES_PER_MINUTE")).toBe(`\`${config.deliveriesPerMinute}\``);
    expect(stated("OFFSTAGE_PERMISSIONS")).toBe(`\`${config.permissions}\``);
    expect(stated("OFFSTAGE_LOG_LEVEL")).toBe(`\`${config.logLevel}\``);
    expect(stated("OFFSTAGE_COMMIT_AUTHOR")).toBe(`\`${config.commitAuthor.name} <${config.commitAuthor.email}>\``);
  });

  it.each(Object.values(exitCodes))("describes exit code %i", (code) => {
    expect(row(String(code)).length).toBeGreaterThan(3);
  });
});

describe("every page", async () => {
  const pages = [
    "README.md",
    "CONTRIBUTING.md",
    ...(await readdir(join(root, "docs"))).filter((name) => name.endsWith(".md")).map((name) => `docs/${name}`),
  ];

  it.each(pages)("%s names and links only files that are there", async (page) => {
    const text = await readFile(join(root, page), "utf8");
    const named = [...text.matchAll(/`((?:src|test|bench|docs|scripts|demo)\/[\w./-]+)`/gu)].map(
      ([, path]) => path ?? "",
    );
    const linked = [...text.matchAll(/\]\((?!https?:|#|mailto:)([^)#\s]+)/gu)].map(([, path]) =>
      join(dirname(page), path ?? ""),
    );
    const paths = [...named, ...linked];
    expect(paths.filter((path) => !existsSync(join(root, path)))).toEqual([]);
  });

  it.each(pages)("%s has no command that a shell can't read", async (page) => {
    const text = await readFile(join(root, page), "utf8");
    const blocks = [...text.matchAll(/```sh\n(.*?)```/gsu)].map(([, block]) => block ?? "");
    const complaints = blocks.map((block) => spawnSync("bash", ["-n", "-c", block], { encoding: "utf8" }).stderr);
    expect(complaints.filter((complaint) => complaint !== "")).toEqual([]);
    // A line that was wrapped goes on with the next one's first word, not with an escaped space.
    expect(blocks.filter((block) => /\\ +-/u.test(block))).toEqual([]);
  });

  it("is in the README's table", async () => {
    const readme = await readFile(join(root, "README.md"), "utf8");
    expect(pages.filter((page) => page.startsWith("docs/") && !readme.includes(`](${page})`))).toEqual([]);
  });
});

describe("docs/glossary.md", async () => {
  const glossary = await readFile(join(root, "docs/glossary.md"), "utf8");

  it("begins with as many words as it says", () => {
    const [first = ""] = glossary.split("\nThe others");
    expect(first).toContain("With these sixteen the code can be");
    expect([...first.matchAll(/^\| \*\*[a-z]+\*\* \|/gmu)]).toHaveLength(16);
  });

  it("names the steps in their order", () => {
    expect(/^\| \*\*step\*\* \| .+$/mu.exec(glossary)?.[0]).toContain(`: ${stepNames.join(", ")}.`);
  });
});

describe("docs/dependencies.md", async () => {
  const table = await readFile(join(root, "docs/dependencies.md"), "utf8");

  it("names each dependency with its version", async () => {
    type Manifest = Record<string, Record<string, string>>;
    const manifest = JSON.parse(await readFile(join(root, "package.json"), "utf8")) as Manifest;
    const all = { ...manifest["dependencies"], ...manifest["optionalDependencies"], ...manifest["devDependencies"] };
    const absent = Object.entries(all).filter(([name, version]) => !table.includes(`| \`${name}\` | ${version} |`));
    expect(absent).toEqual([]);
  });

  it("names each package that has an install script, and whether npm runs it", async () => {
    const read = async (file: string) => JSON.parse(await readFile(join(root, file), "utf8")) as unknown;
    type Locked = { readonly hasInstallScript?: boolean; readonly dev?: boolean };
    const { packages } = (await read("package-lock.json")) as { packages: Record<string, Locked> };
    const { allowScripts } = (await read("package.json")) as { allowScripts: Record<string, boolean> };
    const locked = Object.entries(packages).flatMap(([path, { hasInstallScript, dev }]) => {
      const name = path.replace(/^.*node_modules\//u, "");
      return hasInstallScript === true ? [[name, dev !== true, allowScripts[name]]] : [];
    });
    const documented = [...table.matchAll(/^\| `([^`]+)` \| (yes|no) \| (yes|no) \|/gmu)].map(
      ([, name, withService, runs]) => [name, withService === "yes", runs === "yes"],
    );
    expect(locked.length).toBeGreaterThan(0);
    expect(documented).toEqual(locked);
    expect(new Set(Object.keys(allowScripts))).toEqual(new Set(locked.map(([name]) => name)));
  });
});
