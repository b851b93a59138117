import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { Ajv } from "ajv";
import formats from "ajv-formats";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { startForge, type TestForge } from "./server.ts";

type Schema = { readonly $ref?: string; readonly properties?: Record<string, Schema>; readonly items?: Schema };

/** Gitea's published description of the operations that Offstage calls: see `prune-swagger.ts`. */
interface Description {
  readonly operations: Readonly<
    Record<string, { readonly query: readonly string[]; readonly responses: Readonly<Record<string, Schema>> }>
  >;
  readonly definitions: Readonly<Record<string, Schema>>;
}

const repository = "/repos/{owner}/{repo}";
const pulls = `${repository}/pulls`;
/** What `src/forges/gitea/gitea.ts` reads of a pull request. */
const readOfPull = [
  "number",
  "html_url",
  "state",
  "merged",
  "body",
  "mergeable",
  "draft",
  "head.label",
  "head.ref",
  "head.sha",
  "head.repo_id",
  "head.repo.full_name",
  "base.ref",
  "base.repo_id",
];
let description: Description;
let ajv: Ajv;
let forge: TestForge;

beforeAll(async () => {
  description = JSON.parse(await readFile(join(import.meta.dirname, "gitea-swagger.json"), "utf8")) as Description;
  ajv = new Ajv({ strict: false, allErrors: true });
  formats.default(ajv, ["date-time", "int64"]);
  // Addresses of commits are whatever their authors wrote.
  ajv.addFormat("email", true);
  forge = await startForge();
  await forge.createRepository("acme", "shop", { "a.txt": "a\n" });
});

afterAll(() => forge?.close());

function schemaOf(operation: string, status: number): Schema {
  const schema = description.operations[operation]?.responses[String(status)];
  if (schema === undefined) throw new Error(`${operation} never answers ${status}`);
  return schema;
}

const resolve = (schema: Schema | undefined): Schema =>
  schema?.$ref === undefined ? (schema ?? {}) : (description.definitions[schema.$ref.split("/").at(-1) ?? ""] ?? {});

/** What is wrong with a body by the description, and the fields of it that the description does not have. */
function problems(operation: string, status: number, body: unknown): readonly string[] {
  const schema = schemaOf(operation, status);
  const validate = ajv.compile({ ...(schema as object), definitions: description.definitions });
  validate(body);
  const wrong = (validate.errors ?? []).map(({ instancePath, message }) => `${instancePath} ${message}`);
  return [...wrong, ...unknownFields(schema, body, "")];
}

function unknownFields(of: Schema, value: unknown, path: string): string[] {
  const schema = resolve(of);
  if (Array.isArray(value)) return value.flatMap((each) => unknownFields(schema.items ?? {}, each, `${path}[]`));
  if (typeof value !== "object" || value === null) return [];
  return Object.entries(value).flatMap(([name, inner]) => {
    const known = schema.properties?.[name];
    return known === undefined ? [`${path}.${name} is not described`] : unknownFields(known, inner, `${path}.${name}`);
  });
}

/** Fields that are read and that the description lacks, or the answer. */
function missing(operation: string, status: number, fields: readonly string[], body: unknown): string[] {
  return fields.filter((field) => {
    let schema = resolve(schemaOf(operation, status));
    let value: unknown = body;
    for (const name of field.split(".")) {
      schema = resolve(schema.properties?.[name]);
      value = (value as Record<string, unknown> | undefined)?.[name];
    }
    return value === undefined || Object.keys(schema).length === 0;
  });
}

async function call(method: string, path: string, body?: unknown) {
  const response = await fetch(`${forge.url}/api/v1/repos/acme${path}`, {
    method,
    headers: { Authorization: `token ${forge.token}`, "Content-Type": "application/json" },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  });
  return { status: response.status, headers: response.headers, body: await response.json() };
}

describe("the test forge answers as Gitea's description says, with the fields that are read", () => {
  const request = { head: "work", base: "main", title: "Work", body: "Words" };

  it("when a pull request is refused, opened, read, found, listed and closed", async () => {
    const unknown = await call("POST", "/shop/pulls", request);
    // Gitea adds a list of errors to its 404, which its description leaves out.
    expect([unknown.status, problems(`POST ${pulls}`, 404, unknown.body)]).toEqual([404, [".errors is not described"]]);

    await forge.commit("acme", "shop", "work", { "b.txt": "b\n" });
    const opened = await call("POST", "/shop/pulls", request);
    expect([opened.status, problems(`POST ${pulls}`, 201, opened.body)]).toEqual([201, []]);
    expect(missing(`POST ${pulls}`, 201, readOfPull, opened.body)).toEqual([]);

    const again = await call("POST", "/shop/pulls", request);
    expect([again.status, problems(`POST ${pulls}`, 409, again.body)]).toEqual([409, []]);
    const same = await call("POST", "/shop/pulls", { ...request, head: "main" });
    expect([same.status, problems(`POST ${pulls}`, 422, same.body)]).toEqual([422, []]);

    const found = await call("GET", "/shop/pulls/main/work");
    expect([found.status, problems(`GET ${pulls}/{base}/{head}`, 200, found.body)]).toEqual([200, []]);
    expect(missing(`GET ${pulls}/{base}/{head}`, 200, readOfPull, found.body)).toEqual([]);

    const commits = await call("GET", "/shop/pulls/1/commits");
    expect(problems(`GET ${pulls}/{index}/commits`, 200, commits.body)).toEqual([]);
    expect(commits.body).toMatchObject([{ sha: (found.body as { head: { sha: string } }).head.sha }]);

    const closed = await call("PATCH", "/shop/pulls/1", { state: "closed" });
    expect([closed.status, problems(`PATCH ${pulls}/{index}`, 201, closed.body)]).toEqual([201, []]);
    const read = await call("GET", "/shop/pulls/1");
    expect(problems(`GET ${pulls}/{index}`, 200, read.body)).toEqual([]);
    expect(missing(`GET ${pulls}/{index}`, 200, readOfPull, read.body)).toEqual([]);

    const listed = await call("GET", "/shop/pulls?state=all&base_branch=main&limit=50&page=1");
    expect(listed.headers.get("x-total-count")).toBe("1");
    expect(problems(`GET ${pulls}`, 200, listed.body)).toEqual([]);
    expect(description.operations[`GET ${pulls}`]?.query).toEqual(
      expect.arrayContaining(["state", "base_branch", "limit", "page"]),
    );
  });

  it("when a repository and a branch are read", async () => {
    const read = await call("GET", "/shop");
    expect(problems(`GET ${repository}`, 200, read.body)).toEqual([]);
    const fields = ["archived", "mirror", "has_pull_requests", "permissions.push"];
    expect(missing(`GET ${repository}`, 200, fields, read.body)).toEqual([]);
    const branch = await call("GET", "/shop/branches/main");
    expect(problems(`GET ${repository}/branches/{branch}`, 200, branch.body)).toEqual([]);
    expect(missing(`GET ${repository}/branches/{branch}`, 200, ["protected", "user_can_push"], branch.body)).toEqual(
      [],
    );
  });

  it("when a fork is made, and its branches are listed", async () => {
    const fork = await call("POST", "/shop/forks", {});
    expect([fork.status, problems(`POST ${repository}/forks`, 202, fork.body)]).toEqual([202, []]);
    expect(missing(`POST ${repository}/forks`, 202, ["full_name", "parent.full_name"], fork.body)).toEqual([]);
    const again = await call("POST", "/shop/forks", {});
    expect([again.status, problems(`POST ${repository}/forks`, 409, again.body)]).toEqual([409, []]);
    const branches = await call("GET", "/shop/branches");
    expect(problems(`GET ${repository}/branches`, 200, branches.body)).toEqual([]);
  });

  it("when comments, reactions and a status are posted, and a person's rights are read", async () => {
    forge.describe("acme", "shop", { issues: [40], threads: ["77"], labels: ["bug"], people: { ada: "write" } });
    const comments = `${repository}/issues/{index}/comments`;
    const posted = await call("POST", "/shop/issues/40/comments", { body: "Words" });
    expect([posted.status, problems(`POST ${comments}`, 201, posted.body)]).toEqual([201, []]);
    expect(missing(`POST ${comments}`, 201, ["id", "html_url", "body"], posted.body)).toEqual([]);
    const listed = await call("GET", "/shop/issues/40/comments?since=2026-01-01T00:00:00Z");
    expect(listed.body).toHaveLength(1);
    expect(problems(`GET ${comments}`, 200, listed.body)).toEqual([]);
    expect(description.operations[`GET ${comments}`]?.query).toContain("since");
    for (const [about, path] of [
      ["{index}", "/shop/issues/40"],
      ["comments/{id}", "/shop/issues/comments/7"],
    ] as const) {
      const operation = `POST ${repository}/issues/${about}/reactions`;
      for (const status of [201, 200]) {
        const reaction = await call("POST", `${path}/reactions`, { content: "eyes" });
        expect([reaction.status, problems(operation, status, reaction.body)]).toEqual([status, []]);
      }
    }
    for (const [operation, path, sent, answered] of [
      [`POST ${repository}/issues/{index}/labels`, "/shop/issues/1/labels", { labels: ["bug"] }, 200],
      [`POST ${pulls}/{index}/requested_reviewers`, "/shop/pulls/1/requested_reviewers", { reviewers: ["ada"] }, 201],
    ] as const) {
      const set = await call("POST", path, sent);
      expect([path, set.status, problems(operation, answered, set.body)]).toEqual([path, answered, []]);
    }
    const assigned = await call("PATCH", "/shop/pulls/1", { assignees: ["ada"] });
    expect([assigned.status, problems(`PATCH ${pulls}/{index}`, 201, assigned.body)]).toEqual([201, []]);
    expect(assigned.body).toMatchObject({ assignees: [{ login: "ada" }], labels: [{ name: "bug" }] });
    const resolving = `POST ${repository}/pulls/comments/{id}/resolve`;
    const resolved = await fetch(`${forge.url}/api/v1/repos/acme/shop/pulls/comments/77/resolve`, {
      method: "POST",
      headers: { Authorization: `token ${forge.token}` },
    });
    expect([resolved.status, problems(resolving, 204, {})]).toEqual([204, []]);
    const gone = await call("POST", "/shop/pulls/comments/78/resolve");
    expect([gone.status, problems(resolving, 404, gone.body)]).toEqual([404, [".errors is not described"]]);
    const sent = {
      state: "pending",
      context: "offstage",
      description: "Words",
      target_url: "https://offstage.example",
    };
    const status = await call("POST", `/shop/statuses/${"a".repeat(40)}`, sent);
    expect([status.status, problems(`POST ${repository}/statuses/{sha}`, 201, status.body)]).toEqual([201, []]);
    const rights = await call("GET", "/shop/collaborators/ada/permission");
    const reading = `GET ${repository}/collaborators/{collaborator}/permission`;
    expect(problems(reading, 200, rights.body)).toEqual([]);
    expect(missing(reading, 200, ["permission", "user.id"], rights.body)).toEqual([]);
    forge.describe("acme", "shop", { tellsRights: false });
    const refused = await call("GET", "/shop/collaborators/ada/permission");
    expect([refused.status, problems(reading, 403, refused.body)]).toEqual([403, []]);
  });

  it("as a check that sees what is not described, and what is missing", () => {
    const operation = `GET ${repository}/branches/{branch}`;
    expect(problems(operation, 200, { name: 7, invented: true })).toEqual([
      "/name must be string",
      ".invented is not described",
    ]);
    expect(missing(operation, 200, ["protected", "invented"], { invented: true })).toEqual(["protected", "invented"]);
  });
});
