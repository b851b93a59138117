import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { isObject, objectAt, type Json, type JsonObject } from "./described-json.ts";

/**
 * Makes `gitea-swagger.json` of Gitea's published Swagger description: the operations that Offstage calls, as JSON Schema,
 * without prose. A running Gitea has it at `/swagger.v1.json`; in its repository it is `templates/swagger/v1_json.tmpl`.
 *
 *   node test/forge/prune-swagger.ts swagger.v1.json
 */
const operations = [
  ["get", "/repos/{owner}/{repo}"],
  ["get", "/repos/{owner}/{repo}/branches"],
  ["get", "/repos/{owner}/{repo}/branches/{branch}"],
  ["post", "/repos/{owner}/{repo}/forks"],
  ["get", "/repos/{owner}/{repo}/actions/jobs/{job_id}/logs"],
  ["get", "/repos/{owner}/{repo}/collaborators/{collaborator}/permission"],
  ["get", "/repos/{owner}/{repo}/issues/{index}/comments"],
  ["post", "/repos/{owner}/{repo}/issues/{index}/comments"],
  ["post", "/repos/{owner}/{repo}/issues/{index}/reactions"],
  ["post", "/repos/{owner}/{repo}/issues/comments/{id}/reactions"],
  ["post", "/repos/{owner}/{repo}/issues/{index}/labels"],
  ["post", "/repos/{owner}/{repo}/statuses/{sha}"],
  ["get", "/repos/{owner}/{repo}/pulls"],
  ["post", "/repos/{owner}/{repo}/pulls"],
  ["get", "/repos/{owner}/{repo}/pulls/{base}/{head}"],
  ["get", "/repos/{owner}/{repo}/pulls/{index}"],
  ["patch", "/repos/{owner}/{repo}/pulls/{index}"],
  ["get", "/repos/{owner}/{repo}/pulls/{index}/commits"],
  ["post", "/repos/{owner}/{repo}/pulls/{index}/requested_reviewers"],
  // Since 1.26.
  ["post", "/repos/{owner}/{repo}/pulls/comments/{id}/resolve"],
] as const;

const prose = new Set(["description", "title", "example"]);
const [source = ""] = process.argv.slice(2);
const description = JSON.parse(await readFile(source, "utf8")) as JsonObject;
const at = (...path: readonly string[]): JsonObject => objectAt(description, path);
const definitions: JsonObject = {};
const kept: JsonObject = {};

for (const [method, path] of operations) {
  const operation = at("paths", path, method);
  const parameters = (operation["parameters"] as JsonObject[]).filter((each) => each["in"] === "query");
  const responses = Object.entries(operation["responses"] as JsonObject);
  kept[`${method.toUpperCase()} ${path}`] = {
    query: parameters.map((each) => each["name"] ?? null),
    responses: Object.fromEntries(responses.map(([status, response]) => [status, schemaOf(response)])),
  };
}
await writeFile(
  join(import.meta.dirname, "gitea-swagger.json"),
  `${JSON.stringify({ version: at("info")["version"] ?? null, operations: kept, definitions })}\n`,
);

/** The schema of an answer; of one that is described by its headers alone, an error's. */
function schemaOf(response: Json): Json {
  const reference = isObject(response) ? response["$ref"] : undefined;
  const resolved = typeof reference === "string" ? at(...reference.slice(2).split("/")) : response;
  if (!isObject(resolved) || resolved["schema"] === undefined) return define("APIError");
  return prune(resolved["schema"]);
}

function prune(schema: Json): Json {
  if (Array.isArray(schema)) return schema.map(prune);
  if (!isObject(schema)) return schema;
  if (typeof schema["$ref"] === "string") return define(schema["$ref"].split("/").at(-1) ?? "");
  const entries = Object.entries(schema)
    .filter(([key]) => !prose.has(key) && !key.startsWith("x-"))
    .map(([key, value]): [string, Json] => [
      key,
      key === "properties" && isObject(value)
        ? Object.fromEntries(Object.entries(value).map(([name, each]) => [name, prune(each)]))
        : prune(value),
    ]);
  return Object.fromEntries(entries);
}

function define(name: string): Json {
  if (definitions[name] === undefined) {
    // There before it is whole: schemas refer to themselves.
    definitions[name] = true;
    definitions[name] = prune(at("definitions", name));
  }
  return { $ref: `#/definitions/${name}` };
}
