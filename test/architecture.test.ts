import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { cycles, forbiddenImports, parts, readImports, type Import, type ImportGraph } from "./architecture.ts";

const src = join(import.meta.dirname, "../src");

function madeUp(imports: Record<string, (string | Import)[]>): ImportGraph {
  const edges = Object.entries(imports).map(([from, to]): [string, Import[]] => [
    from,
    to.map((one) => (typeof one === "string" ? { to: one, typeOnly: false } : one)),
  ]);
  return new Map(edges);
}

describe("the source", () => {
  it("imports only along the arrows of docs/architecture.md", async () => {
    expect(forbiddenImports(await readImports(src))).toEqual([]);
  });

  it("has no import cycle", async () => {
    expect(cycles(await readImports(src))).toEqual([]);
  });

  it("is read whole: the walk sees the imports of a file that has some", async () => {
    const graph = await readImports(src);
    expect(graph.get("domain/session.ts")).toContainEqual({ to: "domain/status.ts", typeOnly: false });
    expect(graph.get("worker/run.ts")).toContainEqual({ to: "forges/forge.ts", typeOnly: true });
  });
});

describe("the check itself", () => {
  it("names an arrow that points up", () => {
    const graph = madeUp({ "store/sessions.ts": ["api/app.ts"], "api/app.ts": [] });
    expect(forbiddenImports(graph)).toEqual([
      "src/store/sessions.ts imports src/api/app.ts, but store may import only objects, database, domain, observability",
    ]);
  });

  it("names an arrow between two folders of one row", () => {
    const graph = madeUp({ "api/app.ts": ["worker/worker.ts"], "worker/worker.ts": ["client.ts"], "client.ts": [] });
    expect(forbiddenImports(graph)).toHaveLength(2);
  });

  it("lets config be named by its types only", () => {
    const types = madeUp({ "agents/providers.ts": [{ to: "config.ts", typeOnly: true }], "config.ts": [] });
    const values = madeUp({ "agents/providers.ts": ["config.ts"], "config.ts": [] });
    expect(forbiddenImports(types)).toEqual([]);
    expect(forbiddenImports(values)[0]).toContain("(types of it only)");
  });

  it("names a package away from its home, and node in what the browser runs", () => {
    const graph = madeUp({ "worker/worker.ts": ["fastify", "zod"], "domain/job.ts": ["node:fs"] });
    expect(forbiddenImports(graph)).toEqual([
      "src/worker/worker.ts imports fastify, whose home is api",
      "src/domain/job.ts imports node:fs, but domain also runs in the browser",
    ]);
  });

  it("finds a cycle over three files, and none in a type", () => {
    const graph = madeUp({
      "store/a.ts": ["store/b.ts"],
      "store/b.ts": ["store/c.ts", { to: "store/a.ts", typeOnly: true }],
      "store/c.ts": ["store/a.ts"],
    });
    expect(cycles(graph)).toEqual(["store/a.ts → store/b.ts → store/c.ts → store/a.ts"]);
    expect(cycles(madeUp({ "a.ts": [{ to: "b.ts", typeOnly: true }], "b.ts": ["a.ts"] }))).toEqual([]);
  });

  it("has a table without a cycle of its own", () => {
    const table = Object.entries(parts).map(([part, { imports }]): [string, string[]] => [part, [...imports]]);
    expect(cycles(madeUp(Object.fromEntries(table)))).toEqual([]);
  });
});
