import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { Ajv } from "ajv";
import formats from "ajv-formats";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { idOf } from "./feedback.ts";
import { startForge, type TestForge } from "./server.ts";

interface Operation {
  readonly query: readonly string[];
  readonly body: readonly string[];
  readonly responses: Readonly<Record<string, unknown>>;
}

/** GitLab's published description of the operations that Offstage calls: see `prune-gitlab.ts`. */
interface Description {
  readonly operations: Readonly<Record<string, Operation>>;
  readonly definitions: Readonly<Record<string, unknown>>;
}

const project = "/api/v4/projects/{id}";
const merges = `${project}/merge_requests`;
const merge = `${merges}/{merge_request_iid}`;
let description: Description;
let ajv: Ajv;
let forge: TestForge;

beforeAll(async () => {
  description = JSON.parse(await readFile(join(import.meta.dirname, "gitlab-openapi.json"), "utf8")) as Description;
  ajv = new Ajv({ strict: false });
  formats.default(ajv, ["date-time", "date", "int32"]);
  forge = await startForge();
  await forge.createRepository("acme/tools", "shop", { "a.txt": "a\n" });
});

afterAll(() => forge?.close());

function operationOf(name: string): Operation {
  const found = description.operations[name];
  if (found === undefined) throw new Error(`GitLab does not describe ${name}`);
  return found;
}

/**
 * What is wrong with an answer by the description, a field that it lacks too; then the fields of `read` that the answer lacks. What is
 * read and answered is described, so it is what GitLab has.
 */
function problems(name: string, status: number, body: unknown, read: readonly string[] = []): readonly string[] {
  const schema = operationOf(name).responses[String(status)];
  if (schema === undefined) return [`${name} never answers ${status}`];
  const validate = ajv.compile(schema === true ? {} : { ...(schema as object), definitions: description.definitions });
  validate(body);
  const wrong = (validate.errors ?? []).map(
    ({ instancePath, message, params }) => `${instancePath} ${message} ${JSON.stringify(params)}`,
  );
  const one: unknown = Array.isArray(body) ? body[0] : body;
  return [
    ...wrong,
    ...read.filter((field) => valueOf(one, field) === undefined).map((field) => `${field} is not there`),
  ];
}

function valueOf(body: unknown, field: string): unknown {
  return field.split(".").reduce((value, key) => (value as Record<string, unknown> | null | undefined)?.[key], body);
}

/** What is sent and GitLab does not know. */
const unknownOf = (known: readonly string[], sent: readonly string[]): string[] =>
  sent.filter((field) => !known.includes(field));

/** What `src/forges/gitlab/gitlab.ts` reads of a merge request. */
const readOfMerge = [
  "iid",
  "web_url",
  "state",
  "source_branch",
  "target_branch",
  "source_project_id",
  "target_project_id",
  "sha",
  "description",
  "merge_status",
  "detailed_merge_status",
  "has_conflicts",
  "draft",
  "reviewers",
  "assignees",
];
/** What `src/forges/gitlab/access.ts` and `fork.ts` read of a project. */
const readOfProject = [
  "id",
  "path_with_namespace",
  "archived",
  "marked_for_deletion_on",
  "repository_access_level",
  "merge_requests_access_level",
  "forking_access_level",
  "permissions.project_access",
  "permissions.group_access.access_level",
  "import_status",
  "import_error",
];

async function call(method: string, path: string, body?: unknown, id = "acme/tools/shop") {
  const response = await fetch(`${forge.url}/api/v4/projects/${encodeURIComponent(id)}${path}`, {
    method,
    headers: { Authorization: `Bearer ${forge.token}`, "Content-Type": "application/json" },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  });
  return { status: response.status, headers: response.headers, body: await response.json() };
}

describe("the test forge answers as GitLab's description says, with the fields that are read", () => {
  const request = { source_branch: "work", target_branch: "main", title: "Work", description: "Words" };

  it("when a merge request is opened, refused, read, listed and closed", async () => {
    await forge.commit("acme/tools", "shop", "work", { "b.txt": "b\n" });
    const opened = await call("POST", "/merge_requests", request);
    expect([opened.status, problems(`POST ${merges}`, 201, opened.body, readOfMerge)]).toEqual([201, []]);

    const again = await call("POST", "/merge_requests", request);
    expect([again.status, problems(`POST ${merges}`, 409, again.body)]).toEqual([409, []]);
    expect(again.body).toEqual({ message: ["Another open merge request already exists for this source branch: !1"] });
    const same = await call("POST", "/merge_requests", { ...request, source_branch: "main" });
    expect([same.status, problems(`POST ${merges}`, 422, same.body)]).toEqual([422, []]);
    const empty = await call("POST", "/merge_requests", {});
    expect([empty.status, problems(`POST ${merges}`, 400, empty.body)]).toEqual([400, []]);

    expect(opened.body).toMatchObject({ merge_status: "checking", has_conflicts: false });
    const read = await call("GET", "/merge_requests/1");
    expect(problems(`GET ${merge}`, 200, read.body, readOfMerge)).toEqual([]);
    expect(read.body).toMatchObject({ merge_status: "can_be_merged" });
    expect(problems(`GET ${merge}`, (await call("GET", "/merge_requests/7")).status, {})).toEqual([]);
    const commits = await call("GET", "/merge_requests/1/commits");
    expect(commits.body).toHaveLength(1);
    expect(problems(`GET ${merge}/commits`, 200, commits.body, ["id"])).toEqual([]);

    const closed = await call("PUT", "/merge_requests/1", { state_event: "close" });
    expect([closed.status, problems(`PUT ${merge}`, 200, closed.body, readOfMerge)]).toEqual([200, []]);
    const listed = await call("GET", "/merge_requests?state=all&source_branch=work&target_branch=main");
    expect(listed.body).toHaveLength(1);
    expect(problems(`GET ${merges}`, 200, listed.body, readOfMerge)).toEqual([]);
  });

  it("when a project, a branch and the protected branches are read", async () => {
    forge.describe("acme/tools", "shop", { rules: [{ type: "protected", pattern: "release/*" }] });
    const read = await call("GET", "");
    expect(problems(`GET ${project}`, 200, read.body, readOfProject)).toEqual([]);
    const branch = await call("GET", "/repository/branches/main");
    expect(problems(`GET ${project}/repository/branches/{branch}`, 200, branch.body)).toEqual([]);
    const missing = await call("GET", "/repository/branches/not%2Fthere");
    expect([missing.status, missing.body]).toEqual([404, { message: "404 Branch Not Found" }]);
    expect(problems(`GET ${project}/repository/branches/{branch}`, 404, missing.body)).toEqual([]);
    const rules = await call("GET", "/protected_branches");
    const fields = ["access_level", "user_id", "group_id", "deploy_key_id"].map(
      (name) => `push_access_levels.0.${name}`,
    );
    expect(problems(`GET ${project}/protected_branches`, 200, rules.body, ["name", ...fields])).toEqual([]);
  });

  it("when one commit is read, as it is described in a list", async () => {
    const branch = await call("GET", "/repository/branches/main");
    const { id } = (branch.body as { commit: { id: string } }).commit;
    const read = await call("GET", `/repository/commits/${id}`);
    expect([read.status, wrongIn("API_Entities_Commit", read.body)]).toEqual([200, []]);
    expect(read.body).toHaveProperty("parent_ids");
    expect((await call("GET", `/repository/commits/${"f".repeat(40)}`)).status).toBe(404);
  });

  it("when a fork is made, and a merge request is opened from there", async () => {
    const fork = await call("POST", "/fork", {});
    expect([fork.status, problems(`POST ${project}/fork`, 201, fork.body)]).toEqual([201, []]);
    const again = await call("POST", "/fork", {});
    expect([again.status, problems(`POST ${project}/fork`, 409, again.body)]).toEqual([409, []]);
    const read = await call("GET", "", undefined, "tester/shop");
    const fields = [...readOfProject, "forked_from_project.path_with_namespace"];
    expect(problems(`GET ${project}`, 200, read.body, fields)).toEqual([]);
    await forge.commit("tester", "shop", "theirs", { "c.txt": "c\n" });
    const upstream = (await call("GET", "")).body as { id: number };
    const from = { ...request, source_branch: "theirs", target_project_id: upstream.id };
    const opened = await call("POST", "/merge_requests", from, "tester/shop");
    expect([opened.status, problems(`POST ${merges}`, 201, opened.body, readOfMerge)]).toEqual([201, []]);
    expect(opened.body).toMatchObject({ target_project_id: upstream.id });
    expect((opened.body as { source_project_id: number }).source_project_id).not.toBe(upstream.id);
  });
});

/** What is wrong with a note: of calls for notes GitLab describes the answer alone. */
const wrongInNote = (note: unknown): readonly string[] => wrongIn("API_Entities_Note", note);

function wrongIn(entity: string, answer: unknown): readonly string[] {
  const validate = ajv.compile({ $ref: `#/definitions/${entity}`, definitions: description.definitions });
  validate(answer);
  return (validate.errors ?? []).map(
    ({ instancePath, message, params }) => `${instancePath} ${message} ${JSON.stringify(params)}`,
  );
}

it("the test forge answers comments, reactions, statuses and rights as GitLab's description says", async () => {
  forge.describe("acme/tools", "shop", { issues: [40], threads: ["abc"], people: { ada: "write" } });
  const comment = await call("POST", "/issues/40/notes", { body: "Words" });
  expect([comment.status, wrongInNote(comment.body)]).toEqual([201, []]);
  const reply = await call("POST", "/merge_requests/1/discussions/abc/notes", { body: "Words" });
  expect([reply.status, wrongInNote(reply.body)]).toEqual([201, []]);
  const resolved = await call("PUT", "/merge_requests/1/discussions/abc", { resolved: true });
  const { notes } = resolved.body as { notes: readonly unknown[] };
  expect([resolved.status, notes.flatMap(wrongInNote)]).toEqual([200, []]);
  const listed = await call("GET", "/issues/40/notes?order_by=created_at&sort=desc");
  expect(listed.body).toMatchObject([
    { id: expect.any(Number) as number, body: "Words", created_at: expect.any(String) as string },
  ]);
  expect(wrongInNote({ ...(comment.body as object), invented: 1 }).join()).toContain("invented");
  for (const [about, path] of [
    ["merge_requests/{merge_request_iid}", "/merge_requests/1"],
    ["merge_requests/{merge_request_iid}/notes/{note_id}", "/merge_requests/1/notes/700"],
    ["issues/{issue_iid}", "/issues/40"],
    ["issues/{issue_iid}/notes/{note_id}", "/issues/40/notes/700"],
  ] as const) {
    const operation = `POST ${project}/${about}/award_emoji`;
    const reaction = await call("POST", `${path}/award_emoji`, { name: "eyes" });
    expect([about, reaction.status, problems(operation, 201, reaction.body)]).toEqual([about, 201, []]);
    expect(unknownOf(operationOf(operation).body, ["name"])).toEqual([]);
    const again = await call("POST", `${path}/award_emoji`, { name: "eyes" });
    expect([again.status, problems(operation, 404, again.body)]).toEqual([404, []]);
  }
  const sent = { state: "running", name: "offstage", description: "Words", target_url: "https://offstage.example" };
  const status = await call("POST", `/statuses/${"a".repeat(40)}`, sent);
  // GitLab answers 201, and describes it as 200.
  expect([status.status, problems(`POST ${project}/statuses/{sha}`, 200, status.body)]).toEqual([201, []]);
  expect(unknownOf(operationOf(`POST ${project}/statuses/{sha}`).body, Object.keys(sent))).toEqual([]);
  const member = await call("GET", `/members/all/${idOf("ada")}`);
  expect(problems(`GET ${project}/members/all/{user_id}`, 200, member.body, ["access_level", "state"])).toEqual([]);
});

it("GitLab knows what Offstage sends", () => {
  const sent = [...Object.keys({ source_branch: "", target_branch: "", target_project_id: 0 }), "title", "description"];
  expect(unknownOf(operationOf(`POST ${merges}`).body, sent)).toEqual([]);
  expect(
    unknownOf(operationOf(`PUT ${merge}`).body, [
      "description",
      "state_event",
      "add_labels",
      "reviewer_ids",
      "assignee_ids",
    ]),
  ).toEqual([]);
  const asked = ["source_branch", "target_branch", "state", "scope", "per_page", "page"];
  expect(unknownOf(operationOf(`GET ${merges}`).query, asked)).toEqual([]);
  expect(unknownOf(operationOf(`GET ${merge}/commits`).query, ["per_page", "page"])).toEqual([]);
  expect(unknownOf(operationOf(`GET ${project}/protected_branches`).query, ["per_page", "invented"])).toEqual([
    "invented",
  ]);
});

it("the check sees a field that is not described, one that is missing, and one of another type", async () => {
  const { body } = await call("GET", "/merge_requests/1");
  const read = (fields: object) => problems(`GET ${merge}`, 200, { ...(body as object), ...fields }, readOfMerge);
  expect(read({})).toEqual([]);
  expect(read({ invented: 1 }).join()).toContain("invented");
  expect(read({ iid: "1" }).join()).toContain("/iid must be integer,null");
  expect(read({ sha: undefined })).toEqual(["sha is not there"]);
});
