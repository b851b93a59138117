import { createHash } from "node:crypto";
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { beforeAll, afterAll, describe, expect, test } from "vitest";
import { definitionsDirectory, migrationsDirectory } from "../../src/database/database.ts";
import { readDefinitions, type DefinitionSet } from "../../src/database/definitions.ts";
import { functionCases } from "../../bench/function-cases.ts";
import { createTestDatabase, type TestDatabase } from "../database.ts";
import { addAutomation, addOrganization, addSession, claim, requireClaim } from "./fixtures.ts";

let set: DefinitionSet;
let testDatabase: TestDatabase;

beforeAll(async () => {
  set = await readDefinitions(definitionsDirectory);
  testDatabase = await createTestDatabase();
});

afterAll(() => testDatabase.close());

/** The program's own files, by their path from the package. */
async function sourcesOf(src: string): Promise<{ readonly path: string; readonly text: string }[]> {
  const names = (await readdir(src, { recursive: true })).filter((name) => /(?<!\.test)\.ts$/u.test(name));
  return Promise.all(
    names.map(async (name) => ({ path: `src/${name}`, text: await readFile(join(src, name), "utf8") })),
  );
}

const withoutComments = (sql: string): string => sql.replaceAll(/--.*$/gmu, "");

describe("src/store/sql", () => {
  test("has one function in each file, of the file's name, that can be replaced", () => {
    for (const { name, sql } of set.definitions) {
      const defined = [...withoutComments(sql).matchAll(/^create (?:or replace )?function (\w+)/gmu)];
      // An overload's file has the function's name and what tells it apart: `move_session.without_waits_for`.
      expect(defined.map(([words]) => words)).toEqual([`create or replace function ${name.split(".")[0]}`]);
    }
  });

  test("has in each file what the function costs in its usual case, as npm run bench:functions measures it", () => {
    for (const { name, sql } of set.definitions) {
      const lines = sql.split("\n").filter((line) => line.startsWith("-- Measured:"));
      expect([name, lines]).toEqual([
        name,
        [expect.stringMatching(/^-- Measured: \d+(?:\.\d)? µs, \d+ pages: \S.+\.$/u)],
      ]);
      expect(functionCases.map(({ definition }) => definition)).toContain(name);
    }
  });

  test("names in the first line of each file the definitions that it calls, and no others", () => {
    for (const { name, sql } of set.definitions) {
      const body = withoutComments(sql);
      const called = set.definitions
        .map((other) => other.name)
        .filter((other) => other !== name && new RegExp(`\\b${other}\\(`, "u").test(body));
      expect([name, sql.split("\n", 1)[0]]).toEqual([name, `-- needs: ${called.sort().join(", ")}`.trimEnd()]);
    }
  });

  test("names in each file the callers of the function, and no others", async () => {
    const sources = await sourcesOf(join(import.meta.dirname, "../../src"));
    for (const { name, sql } of set.definitions) {
      const header = sql.replaceAll(/\n-- /gu, " ");
      const named = / Callers: (.+?)\.(?: |\n)/u.exec(header)?.[1]?.split(", ");
      const triggers = [...sql.matchAll(/^create or replace trigger /gmu)].length;
      const isOverload = name.includes(".");
      const call = new RegExp(`\\b${name}\\(`, "u");
      const definitions = set.definitions.filter((other) => other.name !== name);
      const functions = definitions.filter((other) => call.test(withoutComments(other.sql))).map((other) => other.name);
      const files = sources.filter(({ text }) => call.test(text)).map(({ path }) => path);
      const callers = [...functions.toSorted(), ...files.toSorted()];
      expect([name, named]).toEqual([
        name,
        isOverload
          ? ["nodes of the version before"]
          : triggers > 0
            ? [triggers === 1 ? "the trigger below" : "the triggers below"]
            : callers,
      ]);
    }
  });

  test("has another revision with each change, so that of two programs the newer one's definitions stay", async () => {
    const written = JSON.parse(await readFile(join(definitionsDirectory, "revision.json"), "utf8")) as unknown;
    const lines = set.definitions.map(({ name, sha256 }) => `${name} ${sha256}\n`).sort();
    const sha256 = createHash("sha256").update(lines.join("")).digest("hex");
    // If this fails: write this checksum into revision.json, and a revision that is greater than that of the last commit.
    expect(written).toEqual({ revision: set.revision, sha256 });
  });

  test("is the only place of functions: migrations since then are for tables", async () => {
    const later = (await readdir(migrationsDirectory)).filter((name) => name >= "0029");
    for (const name of later) {
      const sql = await readFile(join(migrationsDirectory, name), "utf8");
      // An index is made with these, so that they change with it.
      expect([name, sql.replaceAll(/create function (?:search_fold|search_text|session_lexemes)\(/gu, "")]).not.toEqual(
        [name, expect.stringMatching(/create (?:or replace )?function/u)],
      );
    }
  });
});

describe("the queue's conditions", () => {
  async function planOf(query: string): Promise<string> {
    return testDatabase.database.transaction(async (transaction) => {
      await transaction.query("set local enable_seqscan to off");
      const { rows } = await transaction.query<Record<string, string>>(`explain (verbose) ${query}`);
      return rows.map((row) => row["QUERY PLAN"]).join("\n");
    });
  }

  test("are replaced by their bodies in a plan, so that the partial indexes answer them", async () => {
    const first = await planOf(
      "select organization_id from session where claimable(session) order by organization_id limit 1",
    );
    expect(first).toMatch(/Index Only Scan using session_to_claim/u);
    const lanes = await planOf(
      `select lane(session) from session where organization_id = gen_random_uuid() and claimable(session)
       order by organization_id, lane(session), priority, queued_at limit 1`,
    );
    expect(lanes).toMatch(/Index (?:Only )?Scan using session_to_claim_by_lane/u);
    expect(lanes).not.toMatch(/claimable\(|lane\(|Sort/u);
    const job = await planOf(
      "select organization_id from job where claimable_job(job) order by organization_id, automation_id limit 1",
    );
    expect(job).toMatch(/Index Only Scan using job_to_claim/u);
  });

  test("hold on one connection for a claim with rivals and for one without", async () => {
    const { database } = testDatabase;
    const organizationId = await addOrganization(database);
    const automationId = await addAutomation(database, organizationId, "rival");
    const alone = await addSession(database, organizationId);
    expect((await requireClaim(database)).sessionId).toBe(alone.id);
    const rivals = [
      await addSession(database, organizationId),
      await addSession(database, organizationId, { automationId }),
    ];
    const taken = [await requireClaim(database), await requireClaim(database)].map(({ sessionId }) => sessionId);
    expect(taken.toSorted()).toEqual(rivals.map(({ id }) => id).toSorted());
    const last = await addSession(database, organizationId);
    expect((await requireClaim(database)).sessionId).toBe(last.id);
    expect(await claim(database)).toBeNull();
  });
});
