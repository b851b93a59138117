import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { isObject, objectAt, type Json, type JsonObject } from "./described-json.ts";

/**
 * Makes `github-openapi.json` of GitHub's published OpenAPI description: the operations that Offstage calls, as JSON
 * Schema, without prose.
 *
 *   npm pack @octokit/openapi && tar xf octokit-openapi-*.tgz
 *   node test/forge/prune-openapi.ts package/generated/api.github.com.json
 */
const operations = [
  ["get", "/repos/{owner}/{repo}/pulls"],
  ["post", "/repos/{owner}/{repo}/pulls"],
  ["get", "/repos/{owner}/{repo}/pulls/{pull_number}"],
  ["patch", "/repos/{owner}/{repo}/pulls/{pull_number}"],
  ["get", "/repos/{owner}/{repo}/pulls/{pull_number}/commits"],
  ["get", "/repos/{owner}/{repo}/pulls/{pull_number}/comments"],
  ["post", "/repos/{owner}/{repo}/pulls/{pull_number}/comments/{comment_id}/replies"],
  ["post", "/repos/{owner}/{repo}/pulls/comments/{comment_id}/reactions"],
  ["get", "/repos/{owner}/{repo}/issues/{issue_number}/comments"],
  ["post", "/repos/{owner}/{repo}/issues/{issue_number}/comments"],
  ["post", "/repos/{owner}/{repo}/issues/{issue_number}/reactions"],
  ["post", "/repos/{owner}/{repo}/issues/{issue_number}/labels"],
  ["post", "/repos/{owner}/{repo}/issues/{issue_number}/assignees"],
  ["post", "/repos/{owner}/{repo}/pulls/{pull_number}/requested_reviewers"],
  ["post", "/repos/{owner}/{repo}/issues/comments/{comment_id}/reactions"],
  ["post", "/repos/{owner}/{repo}/statuses/{sha}"],
  ["get", "/repos/{owner}/{repo}/actions/jobs/{job_id}/logs"],
  ["get", "/repos/{owner}/{repo}/collaborators/{username}/permission"],
  ["get", "/repos/{owner}/{repo}"],
  ["get", "/repos/{owner}/{repo}/branches"],
  ["post", "/repos/{owner}/{repo}/forks"],
  ["get", "/repos/{owner}/{repo}/rules/branches/{branch}"],
  ["get", "/repos/{owner}/{repo}/branches/{branch}/protection"],
  ["get", "/repos/{owner}/{repo}/installation"],
  ["post", "/app/installations/{installation_id}/access_tokens"],
] as const;

const prose = new Set(["description", "example", "examples", "title", "deprecated", "externalDocs", "nullable"]);

const [source = ""] = process.argv.slice(2);
const description = JSON.parse(await readFile(source, "utf8")) as JsonObject;
const kept: JsonObject = {};
const definitions: JsonObject = {};

for (const [method, path] of operations) {
  const operation = objectAt(description, ["paths", path, method]);
  const responses = isObject(operation["responses"]) ? operation["responses"] : {};
  kept[`${method.toUpperCase()} ${path}`] = {
    request: schemaOf(resolve(operation["requestBody"])),
    responses: Object.fromEntries(
      Object.entries(responses).map(([status, response]) => [status, schemaOf(resolve(response))]),
    ),
  };
}
const version = objectAt(description, ["info"])["version"] ?? null;
await writeFile(
  join(import.meta.dirname, "github-openapi.json"),
  `${JSON.stringify({ version, operations: kept, definitions })}\n`,
);

function resolve(value: Json | undefined): JsonObject {
  if (!isObject(value)) return {};
  const reference = value["$ref"];
  return typeof reference === "string" ? objectAt(description, reference.slice(2).split("/")) : value;
}

/** The JSON schema of a body; true, which takes anything, if it has none. */
function schemaOf(body: JsonObject): Json {
  const content = body["content"];
  const json = isObject(content) ? content["application/json"] : undefined;
  return isObject(json) && json["schema"] !== undefined ? prune(json["schema"]) : true;
}

/** As JSON Schema: `nullable` becomes a type, references point into `definitions`, which they fill. */
function prune(schema: Json): Json {
  if (Array.isArray(schema)) return schema.map(prune);
  if (!isObject(schema)) return schema;
  if (typeof schema["$ref"] === "string") return define(schema["$ref"]);
  const entries = Object.entries(schema)
    .filter(([key]) => !prose.has(key) && !key.startsWith("x-"))
    .map(([key, value]): [string, Json] => [
      key,
      key === "properties" && isObject(value) ? pruneEach(value) : prune(value),
    ]);
  const pruned: JsonObject = Object.fromEntries(entries);
  return schema["nullable"] === true ? { anyOf: [pruned, { type: "null" }] } : pruned;
}

function pruneEach(properties: JsonObject): JsonObject {
  return Object.fromEntries(Object.entries(properties).map(([name, schema]) => [name, prune(schema)]));
}

function define(reference: string): Json {
  const name = reference.split("/").at(-1) ?? "";
  if (definitions[name] === undefined) {
    // There before it is whole: schemas refer to themselves.
    definitions[name] = true;
    definitions[name] = prune(objectAt(description, reference.slice(2).split("/")));
  }
  return { $ref: `#/definitions/${name}` };
}
