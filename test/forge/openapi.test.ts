import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { Ajv } from "ajv";
import formats from "ajv-formats";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createTestApp } from "./github-app.ts";
import { startForge, type TestForge } from "./server.ts";

/** GitHub's published description of the operations that Offstage calls: see `prune-openapi.ts`. */
interface Description {
  readonly operations: Readonly<Record<string, { readonly responses: Readonly<Record<string, unknown>> }>>;
  readonly definitions: Readonly<Record<string, unknown>>;
}

const pulls = "/repos/{owner}/{repo}/pulls";
let description: Description;
let ajv: Ajv;
let forge: TestForge;

beforeAll(async () => {
  description = JSON.parse(await readFile(join(import.meta.dirname, "github-openapi.json"), "utf8")) as Description;
  ajv = new Ajv({ strict: false, allErrors: true });
  formats.default(ajv, ["uri", "date-time", "int64"]);
  forge = await startForge();
  await forge.createRepository("acme", "shop", { "a.txt": "a\n" });
});

afterAll(() => forge?.close());

/** What is wrong with a body by the description; nothing if it holds. */
function problems(operation: string, status: number, body: unknown): readonly string[] {
  const schema = description.operations[operation]?.responses[String(status)];
  if (schema === undefined) return [`${operation} never answers ${status}`];
  const validate = ajv.compile({ ...(schema as object), definitions: description.definitions });
  validate(body);
  return (validate.errors ?? []).map(({ instancePath, message }) => `${instancePath} ${message}`);
}

/** What is wrong with what is sent. */
function requestProblems(operation: string, sent: unknown): readonly string[] {
  const { request } = description.operations[operation] as unknown as { readonly request: object };
  const validate = ajv.compile({ ...request, definitions: description.definitions });
  validate(sent);
  return (validate.errors ?? []).map(({ instancePath, message }) => `${instancePath} ${message}`);
}

interface Schema {
  readonly $ref?: string;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly anyOf?: readonly Schema[];
  readonly oneOf?: readonly Schema[];
  readonly allOf?: readonly Schema[];
  readonly items?: Schema;
}

/** The schemas of a field, in each of the forms that a value of `schema` may have. */
function fieldsOf(schema: Schema, name: string): readonly Schema[] {
  const { $ref, properties, anyOf = [], oneOf = [], allOf = [], items } = schema;
  const referred = $ref === undefined ? [] : [description.definitions[$ref.split("/").at(-1) ?? ""] as Schema];
  const forms = [...referred, ...anyOf, ...oneOf, ...allOf, ...(items === undefined ? [] : [items])];
  const own = properties?.[name];
  return [...(own === undefined ? [] : [own]), ...forms.flatMap((form) => fieldsOf(form, name))];
}

/** Fields that are read, and that the description or the answer lacks; of a list, its first item. */
function lacking(operation: string, status: number, fields: readonly string[], body: unknown): string[] {
  const answered = description.operations[operation]?.responses[String(status)] as Schema | undefined;
  if (answered === undefined) return [`${operation} never answers ${status}`];
  return fields.filter((field) => {
    let schemas: readonly Schema[] = [answered];
    let value: unknown = Array.isArray(body) ? (body[0] as unknown) : body;
    for (const name of field.split(".")) {
      schemas = schemas.flatMap((schema) => fieldsOf(schema, name));
      value = (value as Record<string, unknown> | undefined)?.[name];
    }
    return value === undefined || schemas.length === 0;
  });
}

/** What `src/forges/github/github.ts` reads of a pull request in a list, and of one by its number. */
const readOfListed = [
  "number",
  "html_url",
  "state",
  "merged_at",
  "body",
  "head.ref",
  "head.sha",
  "head.repo.id",
  "head.repo.full_name",
  "base.ref",
  "base.repo.id",
];
const readOfPull = [...readOfListed, "mergeable", "draft"];
/** What `src/forges/github/access.ts` reads of a repository. */
const readOfRepository = ["archived", "disabled", "private", "permissions.push", "has_pull_requests", "allow_forking"];

async function call(method: string, path: string, body?: unknown, token = forge.token) {
  const response = await fetch(`${forge.apiUrl}${path}`, {
    method,
    headers: { Authorization: `Bearer ${token}`, "Content-Type": "application/json" },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  });
  return { status: response.status, body: await response.json() };
}

describe("the test forge answers as GitHub's description says", () => {
  it("when a pull request is refused, opened, read, listed and merged", async () => {
    const request = { head: "work", base: "main", title: "Work", body: "Words" };
    const missing = await call("POST", "/repos/acme/shop/pulls", request);
    expect(missing.status).toBe(422);
    expect(problems(`POST ${pulls}`, 422, missing.body)).toEqual([]);

    await forge.commit("acme", "shop", "work", { "b.txt": "b\n" });
    const opened = await call("POST", "/repos/acme/shop/pulls", request);
    expect(opened.status).toBe(201);
    expect(problems(`POST ${pulls}`, 201, opened.body)).toEqual([]);
    expect(lacking(`POST ${pulls}`, 201, readOfPull, opened.body)).toEqual([]);

    const again = await call("POST", "/repos/acme/shop/pulls", request);
    expect(again).toMatchObject({
      status: 422,
      body: { errors: [{ message: "A pull request already exists for acme:work." }] },
    });
    expect(problems(`POST ${pulls}`, 422, again.body)).toEqual([]);

    const read = await call("GET", "/repos/acme/shop/pulls/1");
    expect(problems(`GET ${pulls}/{pull_number}`, 200, read.body)).toEqual([]);
    expect(lacking(`GET ${pulls}/{pull_number}`, 200, readOfPull, read.body)).toEqual([]);
    const unknown = await call("GET", "/repos/acme/shop/pulls/7");
    expect(problems(`GET ${pulls}/{pull_number}`, unknown.status, unknown.body)).toEqual([]);

    const commits = await call("GET", "/repos/acme/shop/pulls/1/commits");
    expect(commits.body).toHaveLength(1);
    expect(problems(`GET ${pulls}/{pull_number}/commits`, 200, commits.body)).toEqual([]);
    expect(lacking(`GET ${pulls}/{pull_number}/commits`, 200, ["sha"], commits.body)).toEqual([]);
    const kept = await call("PATCH", "/repos/acme/shop/pulls/1", { title: "Work" });
    expect(problems(`PATCH ${pulls}/{pull_number}`, 200, kept.body)).toEqual([]);

    forge.endPullRequest("acme", "shop", 1, "merged");
    const listed = await call("GET", "/repos/acme/shop/pulls?state=all&head=acme:work&base=main");
    expect(listed.body).toHaveLength(1);
    expect(problems(`GET ${pulls}`, 200, listed.body)).toEqual([]);
    expect(lacking(`GET ${pulls}`, 200, readOfListed, listed.body)).toEqual([]);
  });

  it("when a repository and the rules of a branch are read", async () => {
    const read = await call("GET", "/repos/acme/shop");
    expect(problems("GET /repos/{owner}/{repo}", 200, read.body)).toEqual([]);
    expect(lacking("GET /repos/{owner}/{repo}", 200, readOfRepository, read.body)).toEqual([]);
    const rulesOfBranch = "GET /repos/{owner}/{repo}/rules/branches/{branch}";
    forge.describe("acme", "shop", { approvals: { excludesPusher: true } });
    const approvals = await call("GET", "/repos/acme/shop/rules/branches/main");
    expect(problems(rulesOfBranch, 200, approvals.body)).toEqual([]);
    const [{ parameters }] = approvals.body as readonly [{ readonly parameters: object }];
    const readOfRule = [
      "require_last_push_approval",
      "dismiss_stale_reviews_on_push",
      "required_approving_review_count",
    ];
    expect(Object.keys(parameters)).toEqual(expect.arrayContaining(readOfRule));
    forge.describe("acme", "shop", { rules: [{ type: "creation" }, { type: "branch_name_pattern", pattern: "a/" }] });
    const rules = await call("GET", "/repos/acme/shop/rules/branches/work");
    expect(rules.body).toHaveLength(2);
    expect(problems("GET /repos/{owner}/{repo}/rules/branches/{branch}", 200, rules.body)).toEqual([]);
    expect(lacking("GET /repos/{owner}/{repo}/rules/branches/{branch}", 200, ["type"], rules.body)).toEqual([]);
  });

  it("when the classic protection of a branch is read, and where there is none", async () => {
    const protection = "GET /repos/{owner}/{repo}/branches/{branch}/protection";
    forge.describe("acme", "shop", { approvals: { excludesPusher: true, pushDismisses: true, isClassic: true } });
    const read = await call("GET", "/repos/acme/shop/branches/main/protection");
    expect([read.status, problems(protection, 200, read.body)]).toEqual([200, []]);
    const readOfReviews = ["require_last_push_approval", "dismiss_stale_reviews", "required_approving_review_count"];
    const fields = readOfReviews.map((field) => `required_pull_request_reviews.${field}`);
    expect(lacking(protection, 200, fields, read.body)).toEqual([]);
    forge.describe("acme", "shop", { approvals: { excludesPusher: true } });
    const none = await call("GET", "/repos/acme/shop/branches/main/protection");
    expect([none.status, problems(protection, 404, none.body)]).toEqual([404, []]);
  });

  it("when a fork is made, and its branches are listed", async () => {
    const fork = await call("POST", "/repos/acme/shop/forks", { default_branch_only: true });
    expect([fork.status, problems("POST /repos/{owner}/{repo}/forks", 202, fork.body)]).toEqual([202, []]);
    expect(lacking("POST /repos/{owner}/{repo}/forks", 202, ["full_name"], fork.body)).toEqual([]);
    const branches = await call("GET", "/repos/tester/shop/branches?per_page=1");
    expect(branches.body).toHaveLength(1);
    expect(problems("GET /repos/{owner}/{repo}/branches", 200, branches.body)).toEqual([]);
  });

  it("when comments, replies, reactions and a status are posted, and a person's rights are read", async () => {
    const repository = "/repos/{owner}/{repo}";
    forge.describe("acme", "shop", { issues: [40], threads: ["77"], people: { ada: "write" } });
    for (const [operation, path, fields] of [
      ["/issues/{issue_number}/comments", "/issues/40/comments", ["id", "html_url"]],
      ["/pulls/{pull_number}/comments/{comment_id}/replies", "/pulls/1/comments/77/replies", ["id", "html_url"]],
      ["/issues/{issue_number}/reactions", "/issues/40/reactions", []],
      ["/issues/comments/{comment_id}/reactions", "/issues/comments/7/reactions", []],
      ["/pulls/comments/{comment_id}/reactions", "/pulls/comments/7/reactions", []],
    ] as const) {
      const sent = { body: "Words", content: "eyes" };
      const posted = await call("POST", `/repos/acme/shop${path}`, sent);
      expect([path, posted.status, problems(`POST ${repository}${operation}`, 201, posted.body)]).toEqual([
        path,
        201,
        [],
      ]);
      expect(lacking(`POST ${repository}${operation}`, 201, fields, posted.body)).toEqual([]);
    }
    const again = await call("POST", "/repos/acme/shop/issues/40/reactions", { content: "eyes" });
    expect([again.status, problems(`POST ${repository}/issues/{issue_number}/reactions`, 200, again.body)]).toEqual([
      200,
      [],
    ]);
    for (const [operation, path] of [
      ["/issues/{issue_number}/comments", "/issues/40/comments"],
      ["/pulls/{pull_number}/comments", "/pulls/1/comments"],
    ] as const) {
      const listed = await call("GET", `/repos/acme/shop${path}?since=2026-01-01T00:00:00Z`);
      expect([path, problems(`GET ${repository}${operation}`, 200, listed.body)]).toEqual([path, []]);
      expect(lacking(`GET ${repository}${operation}`, 200, ["id", "html_url", "body"], listed.body)).toEqual([]);
    }
    for (const [operation, path, sent, answered, fields] of [
      ["/issues/{issue_number}/labels", "/issues/1/labels", { labels: ["bug"] }, 200, ["name"]],
      ["/issues/{issue_number}/assignees", "/issues/1/assignees", { assignees: ["ada"] }, 201, ["assignees"]],
      ["/pulls/{pull_number}/requested_reviewers", "/pulls/1/requested_reviewers", { reviewers: ["ada"] }, 201, []],
      ["/pulls/{pull_number}/requested_reviewers", "/pulls/1/requested_reviewers", { reviewers: ["no"] }, 422, []],
    ] as const) {
      const set = await call("POST", `/repos/acme/shop${path}`, sent);
      const name = `POST ${repository}${operation}`;
      expect([path, set.status, problems(name, answered, set.body)]).toEqual([path, answered, []]);
      expect(lacking(name, answered, fields, set.body)).toEqual([]);
      expect(requestProblems(name, sent)).toEqual([]);
    }
    const status = {
      state: "pending",
      context: "offstage",
      description: "Words",
      target_url: "https://offstage.example",
    };
    const set = await call("POST", `/repos/acme/shop/statuses/${"a".repeat(40)}`, status);
    expect([set.status, problems(`POST ${repository}/statuses/{sha}`, 201, set.body)]).toEqual([201, []]);
    forge.describe("acme", "shop", { logs: { "5": "Words\n" }, people: { ada: "write" } });
    const log = await fetch(`${forge.apiUrl}/repos/acme/shop/actions/jobs/5/logs`, {
      headers: { Authorization: `Bearer ${forge.token}` },
      redirect: "manual",
    });
    expect(problems(`GET ${repository}/actions/jobs/{job_id}/logs`, log.status, "")).toEqual([]);
    expect([log.status, log.headers.get("location")]).toEqual([302, expect.stringContaining("/logs/") as string]);
    const rights = await call("GET", "/repos/acme/shop/collaborators/ada/permission");
    const reading = `GET ${repository}/collaborators/{username}/permission`;
    expect(problems(reading, 200, rights.body)).toEqual([]);
    expect(lacking(reading, 200, ["permission", "user.id"], rights.body)).toEqual([]);
  });

  it("when a GitHub App asks for its installation and a token", async () => {
    const app = createTestApp(7);
    forge.registerApp(app);
    const installation = await call("GET", "/repos/acme/shop/installation", undefined, app.token());
    expect(problems("GET /repos/{owner}/{repo}/installation", 200, installation.body)).toEqual([]);
    expect(lacking("GET /repos/{owner}/{repo}/installation", 200, ["id"], installation.body)).toEqual([]);
    const given = await call("POST", "/app/installations/1/access_tokens", {}, app.token());
    expect(given.status).toBe(201);
    const giving = "POST /app/installations/{installation_id}/access_tokens";
    expect(problems(giving, 201, given.body)).toEqual([]);
    expect(lacking(giving, 201, ["token", "expires_at", "permissions"], given.body)).toEqual([]);
  });

  it("as a check that sees each field that the description or the answer lacks", async () => {
    const operation = `GET ${pulls}/{pull_number}`;
    const { body } = await call("GET", "/repos/acme/shop/pulls/1");
    expect(
      lacking(operation, 200, ["number", "head.invented", "invented"], { ...(body as object), invented: 1 }),
    ).toEqual(["head.invented", "invented"]);
    for (const field of readOfPull) {
      const shortened = structuredClone(body) as Record<string, unknown>;
      const names = field.split(".");
      const last = names.pop() ?? "";
      delete names.reduce((value, name) => value[name] as Record<string, unknown>, shortened)[last];
      expect(lacking(operation, 200, readOfPull, shortened)).toEqual([field]);
    }
  });

  it("with 401 without a good token", async () => {
    expect((await call("GET", "/repos/acme/shop/pulls", undefined, "wrong")).status).toBe(401);
    const stranger = createTestApp(8);
    expect((await call("GET", "/repos/acme/shop/installation", undefined, stranger.token())).status).toBe(401);
  });
});
