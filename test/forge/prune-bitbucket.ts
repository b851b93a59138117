import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { parse } from "yaml";
import { isObject, objectAt, type Json, type JsonObject } from "./described-json.ts";

/**
 * Makes `bitbucket-openapi.json` of the published OpenAPI description of Bitbucket Cloud
 * (https://dac-static.atlassian.com/cloud/bitbucket/swagger.v3.json), and `bitbucket-data-center-openapi.json` of that of Data Center
 * (https://dac-static.atlassian.com/server/bitbucket/9.4.swagger.v3.json): the operations that Offstage calls, as JSON Schema, without
 * prose. A description may be in several files, in JSON or YAML.
 *
 *   node test/forge/prune-bitbucket.ts cloud swagger.v3.json
 *   node test/forge/prune-bitbucket.ts data-center 9.4.swagger.v3.json
 *
 * What consists of several schemas becomes one, which allows no further fields. An account may have what a user has.
 */
const repository = "/repositories/{workspace}/{repo_slug}";
const pullRequest = `${repository}/pullrequests/{pull_request_id}`;
const pipeline = `${repository}/pipelines/{pipeline_uuid}/steps`;
const project = "/api/latest/projects/{projectKey}/repos/{repositorySlug}";
const change = `${project}/pull-requests/{pullRequestId}`;
const operations: Readonly<Record<string, readonly (readonly [string, string])[]>> = {
  cloud: [
    ["get", repository],
    ["post", `${repository}/forks`],
    ["get", `${repository}/refs/branches`],
    ["get", `${repository}/pullrequests`],
    ["post", `${repository}/pullrequests`],
    ["get", pullRequest],
    ["put", pullRequest],
    ["get", `${pullRequest}/commits`],
    ["get", `${pullRequest}/conflicts`],
    ["post", `${pullRequest}/decline`],
    ["get", `${pullRequest}/comments`],
    ["post", `${pullRequest}/comments`],
    ["post", `${pullRequest}/comments/{comment_id}/resolve`],
    ["post", `${repository}/commit/{commit}/statuses/build`],
    ["get", pipeline],
    ["get", `${pipeline}/{step_uuid}/log`],
    ["get", "/workspaces/{workspace}/permissions/repositories/{repo_slug}"],
    ["get", "/user/workspaces/{workspace}/permissions/repositories"],
    ["get", "/user"],
  ],
  "data-center": [
    ["get", project],
    ["post", project],
    ["get", `${project}/branches`],
    ["get", `${project}/pull-requests`],
    ["post", `${project}/pull-requests`],
    ["get", change],
    ["put", change],
    ["get", `${change}/commits`],
    ["get", `${change}/merge`],
    ["post", `${change}/decline`],
    ["get", `${change}/activities`],
    ["post", `${change}/comments`],
    ["get", `${change}/comments/{commentId}`],
    ["put", `${change}/comments/{commentId}`],
    ["post", `${project}/commits/{commitId}/builds`],
    ["get", "/api/latest/repos"],
    ["get", "/api/latest/users"],
    ["put", `${change.replace("/api/", "/comment-likes/")}/comments/{commentId}/reactions/{emoticon}`],
  ],
};

const [product = "", ...sources] = process.argv.slice(2);
const paths: JsonObject = {};
const schemas: JsonObject = {};
for (const source of sources) {
  const part = parse(await readFile(source, "utf8")) as JsonObject;
  Object.assign(paths, part["paths"]);
  Object.assign(schemas, (part["components"] as JsonObject | undefined)?.["schemas"]);
}
const definitions: JsonObject = {};
const kept: JsonObject = {};

for (const [method, path] of operations[product] ?? []) {
  const item = objectAt(paths, [path]);
  const operation = objectAt(item, [method]);
  const parameters = [...listOf(item["parameters"]), ...listOf(operation["parameters"])];
  const responses = Object.entries(objectAt(operation, ["responses"]));
  kept[`${method.toUpperCase()} ${path}`] = {
    query: parameters.flatMap((each) => (each["in"] === "query" ? [each["name"] ?? null] : [])),
    body: schemaOf(operation["requestBody"]),
    responses: Object.fromEntries(responses.map(([status, response]) => [status, schemaOf(response)])),
  };
}
const name = product === "cloud" ? "bitbucket" : "bitbucket-data-center";
await writeFile(
  join(import.meta.dirname, `${name}-openapi.json`),
  `${JSON.stringify({ operations: kept, definitions }, null, 1)}\n`,
);

function listOf(value: Json | undefined): JsonObject[] {
  return Array.isArray(value) ? value.filter((each) => isObject(each)) : [];
}

/** The schema of a body; `true` if none is described. */
function schemaOf(described: Json | undefined): Json {
  const content = isObject(described) ? described["content"] : undefined;
  const [first] = isObject(content) ? Object.values(content) : [];
  return isObject(first) && first["schema"] !== undefined ? prune(first["schema"]) : true;
}

/** A schema without prose. Anything may be null: neither description says what may. */
function prune(schema: Json): Json {
  if (!isObject(schema)) return schema;
  if (typeof schema["$ref"] === "string") return define(schema["$ref"].split("/").at(-1) ?? "");
  if (schema["type"] === "array") return { type: ["array", "null"], items: prune(schema["items"] ?? true) };
  const properties = propertiesOf(schema);
  if (properties !== null) {
    // An object that is described by its type alone may have anything.
    const isOpen = Object.keys(properties).every((each) => each === "type");
    return { type: ["object", "null"], properties, additionalProperties: isOpen };
  }
  if (schema["enum"] !== undefined) return { enum: [...new Set([...(schema["enum"] as Json[]), null])] };
  return typeof schema["type"] === "string" ? { type: [schema["type"], "null"] } : true;
}

/** The fields of an object, with those of all that it consists of; null if it is none. */
function propertiesOf(schema: JsonObject): JsonObject | null {
  if (typeof schema["$ref"] === "string")
    return propertiesOf(objectAt(schemas, [schema["$ref"].split("/").at(-1) ?? ""]));
  const parts = listOf(schema["allOf"]).map((each) => propertiesOf(each) ?? {});
  if (parts.length === 0 && !isObject(schema["properties"])) return null;
  const own = isObject(schema["properties"]) ? schema["properties"] : {};
  const pruned = Object.entries(own).map(([field, each]): [string, Json] => [field, prune(each)]);
  return Object.assign({}, ...parts, Object.fromEntries(pruned)) as JsonObject;
}

function define(reference: string): Json {
  if (definitions[reference] === undefined) {
    // There before it is whole: schemas refer to themselves.
    definitions[reference] = true;
    const described = objectAt(schemas, [reference]);
    definitions[reference] = prune(
      reference === "account" && isObject(schemas["user"])
        ? { allOf: [described, schemas["user"], { type: "object", properties: { username: { type: "string" } } }] }
        : described,
    );
  }
  return { $ref: `#/definitions/${reference}` };
}
