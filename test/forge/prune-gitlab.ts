import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { parse } from "yaml";
import { isObject, objectAt, type Json, type JsonObject } from "./described-json.ts";

/**
 * Makes `gitlab-openapi.json` of GitLab's published OpenAPI description: the operations that Offstage calls, as JSON Schema, without
 * prose. In GitLab's repository it is `doc/api/openapi/openapi_v2.yaml`.
 *
 *   node test/forge/prune-gitlab.ts openapi_v2.yaml
 *
 * GitLab makes it of its code, which names every field but not always its type: such a field is a string there, and a list is what
 * one of its items is. So only types that have a format, an example or a reference are kept; anything may be null, and a list.
 */
const project = "/api/v4/projects/{id}";
const mergeRequest = `${project}/merge_requests/{merge_request_iid}`;
const operations = [
  ["get", project],
  ["get", `${project}/merge_requests`],
  ["post", `${project}/merge_requests`],
  ["get", mergeRequest],
  ["put", mergeRequest],
  ["get", `${mergeRequest}/commits`],
  ["get", `${project}/repository/branches/{branch}`],
  ["get", `${project}/protected_branches`],
  ["post", `${project}/fork`],
  ["post", `${project}/issues/{issue_iid}/award_emoji`],
  ["post", `${project}/issues/{issue_iid}/notes/{note_id}/award_emoji`],
  ["post", `${mergeRequest}/award_emoji`],
  ["post", `${mergeRequest}/notes/{note_id}/award_emoji`],
  ["post", `${project}/statuses/{sha}`],
  ["get", `${project}/jobs/{job_id}/trace`],
  ["get", `${project}/members/all/{user_id}`],
] as const;
/** What the description has without the calls that answer with it: notes and discussions are not described. */
const entities = ["API_Entities_Note"];

const [source = ""] = process.argv.slice(2);
const description = parse(await readFile(source, "utf8")) as JsonObject;
const at = (...path: readonly string[]): JsonObject => objectAt(description, path);
const definitions: JsonObject = {};
const kept: JsonObject = {};

for (const [method, path] of operations) {
  const operation = at("paths", path, method);
  const parameters = (operation["parameters"] as JsonObject[] | undefined) ?? [];
  const body = parameters.find((each) => each["in"] === "body");
  const responses = Object.entries(operation["responses"] as JsonObject);
  kept[`${method.toUpperCase()} ${path}`] = {
    query: parameters.filter((each) => each["in"] === "query").map((each) => each["name"] ?? null),
    body: body === undefined ? [] : fieldsOf(body["schema"]),
    responses: Object.fromEntries(responses.map(([status, response]) => [status, schemaOf(response)])),
  };
}
for (const name of entities) define(name);
await writeFile(
  join(import.meta.dirname, "gitlab-openapi.json"),
  `${JSON.stringify({ version: at("info")["version"] ?? null, operations: kept, definitions })}\n`,
);

/** The names of a request's fields. */
function fieldsOf(schema: Json | undefined): Json[] {
  const reference = isObject(schema) ? schema["$ref"] : undefined;
  const resolved = typeof reference === "string" ? at(...reference.slice(2).split("/")) : schema;
  return isObject(resolved) && isObject(resolved["properties"]) ? Object.keys(resolved["properties"]) : [];
}

/** The schema of an answer; a refusal is described by its status alone. */
function schemaOf(response: Json): Json {
  return isObject(response) && response["schema"] !== undefined ? prune(response["schema"]) : true;
}

function prune(schema: Json): Json {
  if (!isObject(schema)) return schema;
  if (typeof schema["$ref"] === "string") return orList(define(schema["$ref"].split("/").at(-1) ?? ""));
  if (schema["type"] === "string" && schema["example"] === undefined && schema["format"] === undefined) return true;
  if (schema["type"] === "array") return orNull({ type: "array", items: prune(schema["items"] ?? true) });
  // Some have the name of a Ruby class for a type.
  if (!isObject(schema["properties"])) return isType(schema["type"]) ? orNull({ type: schema["type"] }) : true;
  const properties = Object.entries(schema["properties"]).map(([name, each]): [string, Json] => [name, prune(each)]);
  return orNull({ type: "object", properties: Object.fromEntries(properties), additionalProperties: false });
}

function isType(type: Json | undefined): type is string {
  return typeof type === "string" && ["string", "integer", "number", "boolean", "object"].includes(type);
}

function orNull(schema: JsonObject): Json {
  return { ...schema, type: [schema["type"] ?? "object", "null"] };
}

function orList(schema: Json): Json {
  return { anyOf: [schema, { type: "array", items: schema }] };
}

function define(name: string): Json {
  if (definitions[name] === undefined) {
    // There before it is whole: schemas refer to themselves.
    definitions[name] = true;
    definitions[name] = prune(at("definitions", name));
  }
  return { $ref: `#/definitions/${name}` };
}
