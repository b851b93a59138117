import { readFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { describe, expect, it } from "vitest";
import {
  cycles,
  forbiddenImports,
  parts,
  readImports,
  shelfGraph,
  shelves,
  unusedArrows,
  type Import,
  type ImportGraph,
} from "./architecture.ts";

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

  it("uses each arrow of the tables", async () => {
    expect(unusedArrows(await readImports(src))).toEqual([]);
  });

  it("has no import cycle of files", async () => {
    expect(cycles(await readImports(src))).toEqual([]);
  });

  it("has no import cycle of folders", async () => {
    expect(cycles(shelfGraph(await readImports(src)))).toEqual([]);
  });

  it("has the folders of the table of shelves, and only those", async () => {
    const files = [...(await readImports(src)).keys()].filter((file) => file.split("/").length > 2);
    const listed = Object.entries(shelves).flatMap(([part, rows]) => Object.keys(rows).map((row) => `${part}/${row}`));
    expect([...new Set(files.map((file) => dirname(file)))].sort()).toEqual(listed.sort());
  });

  it("is read whole: the walk sees the imports of a file that has some", async () => {
    const graph = await readImports(src);
    expect(graph.get("domain/sessions/session.ts")).toContainEqual({
      to: "domain/sessions/status.ts",
      typeOnly: false,
    });
    expect(graph.get("worker/attempt/attempt.ts")).toContainEqual({ to: "forges/forge.ts", typeOnly: true });
  });
});

describe("docs/architecture.md", () => {
  it("has the same table of parts as the check", async () => {
    const document = await readFile(join(src, "../docs/architecture.md"), "utf8");
    const rows = [...document.matchAll(/^\| `([\w-]+)(?:\/|\.ts)` \| .+ \| ([^|]+) \|$/gmu)];
    const documented = rows.filter(([, part]) => part !== "main").map(([, part, imports]) => [part, imports]);
    const checked = Object.entries(parts).map(([part, { imports, types = [] }]) => {
      // The settings' types are named once, in the picture.
      const typesOf = types.filter((type) => type !== "config").join(" and ");
      return [part, `${imports.join(", ") || "nothing"}${typesOf === "" ? "" : `; types of ${typesOf}`}`];
    });
    expect(Object.fromEntries(documented) as unknown).toEqual(Object.fromEntries(checked));
  });

  it("has a picture in which each part stands once, above all that it imports", async () => {
    const document = await readFile(join(src, "../docs/architecture.md"), "utf8");
    const picture = /^main {2,}[^`]+/mu.exec(document)?.[0].trimEnd().split("\n").slice(1) ?? [];
    // Behind two spaces and more comes the next part; a remark has several words.
    const rows = picture.map((row) => row.split(/ {2,}/u).flatMap((name) => /^[\w-]+(?= \(|$)/u.exec(name)?.[0] ?? []));
    expect(rows.flat().sort()).toEqual(Object.keys(parts).sort());
    const rowOf = (part: string): number => rows.findIndex((row) => row.includes(part));
    const upwards = Object.entries(parts).flatMap(([part, { imports, types = [] }]) =>
      [...imports, ...types.filter((type) => type !== "config")]
        .filter((other) => rowOf(other) <= rowOf(part))
        .map((other) => `${part} → ${other}`),
    );
    expect(upwards).toEqual([]);
  });

  it("has the same table of folders as the check", async () => {
    const document = await readFile(join(src, "../docs/architecture.md"), "utf8");
    const rows = [...document.matchAll(/^\| `(\w[\w/-]*)\/` \| [^|]+ \| ([^|]+) \|$/gmu)].filter(([, folder]) =>
      folder?.includes("/"),
    );
    const documented = rows.map(([, folder, imports]) => [folder, imports?.replaceAll("`", "")]);
    const checked = Object.entries(shelves).flatMap(([part, table]) =>
      Object.entries(table).map(([shelf, imports]) => [`${part}/${shelf}`, imports.join(", ") || "nothing"]),
    );
    expect(documented).toEqual(checked);
  });
});

describe("the check itself", () => {
  it("names an arrow that points up", () => {
    const graph = madeUp({ "store/cursor.ts": ["api/app.ts"], "api/app.ts": [] });
    expect(forbiddenImports(graph)).toEqual([
      "src/store/cursor.ts imports src/api/app.ts, but store may import only objects, all-settled, atomic-file, database, domain",
    ]);
  });

  it("names an arrow that points up within a part, of a type too", () => {
    const graph = madeUp({
      "worker/git/mirror.ts": [{ to: "worker/steps/push.ts", typeOnly: true }, "worker/git/fetch.ts"],
      "worker/git/fetch.ts": ["worker/worker.ts"],
      "worker/steps/push.ts": ["worker/git/mirror.ts"],
      "worker/worker.ts": ["worker/steps/push.ts"],
    });
    expect(forbiddenImports(graph)).toEqual([
      "src/worker/git/mirror.ts imports src/worker/steps/push.ts, but of worker its folder git may import only itself",
      "src/worker/git/fetch.ts imports src/worker/worker.ts, but of worker its folder git may import only itself",
    ]);
  });

  it("names a part that is in no row, and lets only the two first files stand above all", () => {
    const graph = madeUp({ "utils/text.ts": [], "misc.ts": ["main.ts"], "main.ts": ["command-line.ts"] });
    expect(forbiddenImports(graph)).toEqual([
      "src/utils/text.ts is in utils, which is not in the table of parts",
      "src/misc.ts is in misc, which is not in the table of parts",
    ]);
  });

  it("names an unused arrow, of parts and of folders", () => {
    const unused = unusedArrows(
      madeUp({ "cli/sessions/list.ts": ["client.ts", "cli/remote/remote.ts"], "client.ts": [] }),
    );
    expect(unused).toContain("cli → domain");
    expect(unused).toContain("cli: sessions → terminal");
    expect(unused).not.toContain("cli → client");
  });

  it("names a folder that is in no row", () => {
    expect(forbiddenImports(madeUp({ "worker/misc/thing.ts": [] }))).toEqual([
      "src/worker/misc/thing.ts is in the folder misc of worker, which is not in the table of shelves",
    ]);
  });

  it("names an arrow between two folders of one row", () => {
    const graph = madeUp({ "api/app.ts": ["worker/worker.ts"], "worker/worker.ts": ["client.ts"], "client.ts": [] });
    expect(forbiddenImports(graph)).toHaveLength(2);
  });

  it("lets config be named by its types only", () => {
    const types = madeUp({ "worker/worker.ts": [{ to: "config/config.ts", typeOnly: true }], "config/config.ts": [] });
    const values = madeUp({ "worker/worker.ts": ["config/config.ts"], "config/config.ts": [] });
    expect(forbiddenImports(types)).toEqual([]);
    expect(forbiddenImports(values)[0]).toContain("(types of it only)");
  });

  it("names a package away from its home, and node in what the browser runs", () => {
    const graph = madeUp({ "worker/worker.ts": ["fastify", "zod"], "domain/automations/job.ts": ["node:fs"] });
    expect(forbiddenImports(graph)).toEqual([
      "src/worker/worker.ts imports fastify, whose home is api",
      "src/domain/automations/job.ts imports node:fs, but domain also runs in the browser",
    ]);
  });

  it("finds a cycle over three files, and one that a type closes", () => {
    const graph = madeUp({ "a.ts": ["b.ts"], "b.ts": ["c.ts"], "c.ts": ["a.ts"] });
    expect(cycles(graph)).toEqual(["a.ts → b.ts → c.ts → a.ts"]);
    const byType = madeUp({ "a.ts": [{ to: "b.ts", typeOnly: true }], "b.ts": ["a.ts"] });
    expect(cycles(byType)).toEqual(["a.ts → b.ts → a.ts"]);
  });

  it("finds a cycle of two folders that is none of files", () => {
    const graph = madeUp({
      "worker/git/a.ts": ["worker/disk/a.ts"],
      "worker/disk/a.ts": [],
      "worker/disk/b.ts": ["worker/git/b.ts"],
      "worker/git/b.ts": [],
    });
    expect(cycles(graph)).toEqual([]);
    expect(cycles(shelfGraph(graph))).toEqual(["worker/git → worker/disk → worker/git"]);
  });

  it("finds a cycle of a folder and a file that lies in its part", () => {
    const graph = madeUp({
      "store/cursor.ts": ["store/queue/lease.ts"],
      "store/queue/lease.ts": [],
      "store/queue/claims.ts": ["store/cursor.ts"],
    });
    expect(cycles(shelfGraph(graph))).toEqual(["store/cursor.ts → store/queue → store/cursor.ts"]);
  });

  it("has tables without a cycle of their own, arrows for types included", () => {
    const table = Object.entries(parts).map(([part, { imports, types = [] }]): [string, string[]] => [
      part,
      [...imports, ...types],
    ]);
    expect(cycles(madeUp(Object.fromEntries(table)))).toEqual([]);
    for (const rows of Object.values(shelves)) {
      const arrows = Object.entries(rows).map(([shelf, imports]): [string, string[]] => [shelf, [...imports]]);
      expect(cycles(madeUp(Object.fromEntries(arrows)))).toEqual([]);
    }
  });
});
