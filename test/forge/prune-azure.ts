import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { isObject, objectAt, type Json, type JsonObject } from "./described-json.ts";

/**
 * Makes `azure-specs.json` of the published descriptions of Azure DevOps
 * (https://github.com/MicrosoftDocs/vsts-rest-api-specs): the operations that Offstage calls, as JSON Schema, without prose.
 *
 *   node test/forge/prune-azure.ts vsts-rest-api-specs/specification
 *
 * Any field may be null, which the descriptions don't say, and none is required.
 */
const files: Readonly<Record<string, string>> = {
  git: "git/7.0/git.json",
  build: "build/7.0/build.json",
  security: "security/7.0/security.json",
  identities: "ims/7.0/identities.json",
  workItems: "wit/7.0/workItemTracking.json",
};
const repository = "/{organization}/{project}/_apis/git/repositories/{repositoryId}";
const pullRequest = `${repository}/pullRequests/{pullRequestId}`;
const build = "/{organization}/{project}/_apis/build/builds/{buildId}";
const comments = "/{organization}/{project}/_apis/wit/workItems/{workItemId}/comments";
const operations = [
  ["git", "get", repository],
  ["git", "post", "/{organization}/{project}/_apis/git/repositories"],
  ["git", "get", `${repository}/pullrequests`],
  ["git", "post", `${repository}/pullrequests`],
  ["git", "get", `${repository}/pullrequests/{pullRequestId}`],
  ["git", "patch", `${repository}/pullrequests/{pullRequestId}`],
  ["git", "get", `${pullRequest}/commits`],
  ["git", "get", `${pullRequest}/threads`],
  ["git", "post", `${pullRequest}/threads`],
  ["git", "get", `${pullRequest}/threads/{threadId}`],
  ["git", "patch", `${pullRequest}/threads/{threadId}`],
  ["git", "post", `${pullRequest}/threads/{threadId}/comments`],
  ["git", "post", `${pullRequest}/threads/{threadId}/comments/{commentId}/likes`],
  ["git", "post", `${pullRequest}/labels`],
  ["git", "put", `${pullRequest}/reviewers/{reviewerId}`],
  ["git", "post", `${repository}/commits/{commitId}/statuses`],
  ["git", "get", `${repository}/commits/{commitId}`],
  ["git", "get", `${repository}/items`],
  ["git", "get", `${repository}/refs`],
  ["build", "get", `${build}/timeline/{timelineId}`],
  ["build", "get", `${build}/logs/{logId}`],
  ["security", "get", "/{organization}/_apis/accesscontrollists/{securityNamespaceId}"],
  ["security", "post", "/{organization}/_apis/security/permissionevaluationbatch"],
  ["identities", "get", "/{organization}/_apis/identities"],
  ["workItems", "get", comments],
  ["workItems", "post", comments],
  ["workItems", "put", `${comments}/{commentId}/reactions/{reactionType}`],
] as const;

/** What is sent as something else than the class that is described, as the examples beside the descriptions show. */
const sentAs: Readonly<Record<string, string>> = { ReferenceLinks: "object", IdentityDescriptor: "string" };

const [folder = ""] = process.argv.slice(2);
const descriptions: Record<string, JsonObject> = {};
for (const [name, path] of Object.entries(files)) {
  // They begin with a byte order mark.
  const text = (await readFile(join(folder, path), "utf8")).replace(/^\uFEFF/u, "");
  descriptions[name] = JSON.parse(text) as JsonObject;
}
const definitions: JsonObject = {};
const kept: JsonObject = {};

for (const [file, method, path] of operations) {
  const operation = at(file, "paths", path, method);
  const parameters = (operation["parameters"] as JsonObject[] | undefined) ?? [];
  const body = parameters.find((each) => each["in"] === "body");
  const [answer] = Object.entries(operation["responses"] as JsonObject);
  if (answer === undefined) throw new Error(`${path} has no answer`);
  const [status, response] = answer;
  kept[`${method.toUpperCase()} ${path}`] = {
    query: parameters.filter((each) => each["in"] === "query").map((each) => each["name"] ?? null),
    scopes: scopesOf(operation["security"]),
    body: body === undefined ? null : prune(file, body["schema"] ?? true),
    status: Number(status),
    response: isObject(response) && response["schema"] !== undefined ? prune(file, response["schema"]) : true,
  };
}
await writeFile(
  join(import.meta.dirname, "azure-specs.json"),
  `${JSON.stringify({ operations: kept, definitions })}\n`,
);

function at(file: string, ...path: readonly string[]): JsonObject {
  return objectAt(descriptions[file], path);
}

/** Of several scopes one is enough. */
function scopesOf(security: Json | undefined): Json[] {
  const [first] = Array.isArray(security) ? security : [];
  const scopes = isObject(first) ? first["oauth2"] : undefined;
  return Array.isArray(scopes) ? scopes : [];
}

function prune(file: string, schema: Json): Json {
  if (!isObject(schema)) return schema;
  if (typeof schema["$ref"] === "string") return orNull(define(file, schema["$ref"].split("/").at(-1) ?? ""));
  if (Array.isArray(schema["enum"])) return { enum: [...schema["enum"], null] };
  if (schema["type"] === "array") return { type: ["array", "null"], items: prune(file, schema["items"] ?? true) };
  const properties = propertiesOf(file, schema);
  if (properties !== null) return { type: ["object", "null"], properties, additionalProperties: false };
  if (isObject(schema["additionalProperties"]))
    return { type: ["object", "null"], additionalProperties: prune(file, schema["additionalProperties"]) };
  return typeof schema["type"] === "string" && schema["format"] !== "Stream"
    ? { type: [schema["type"], "null"] }
    : true;
}

/** With those of what it extends; null if it has none of its own, and may have any. */
function propertiesOf(file: string, schema: JsonObject): JsonObject | null {
  const extended = (Array.isArray(schema["allOf"]) ? schema["allOf"] : []).flatMap((each) =>
    isObject(each) && typeof each["$ref"] === "string"
      ? [propertiesOf(file, at(file, "definitions", each["$ref"].split("/").at(-1) ?? "")) ?? {}]
      : [],
  );
  if (!isObject(schema["properties"]) && extended.length === 0) return null;
  const own = Object.entries(isObject(schema["properties"]) ? schema["properties"] : {});
  const pruned = Object.fromEntries(own.map(([name, each]): [string, Json] => [name, prune(file, each)]));
  return Object.assign({}, ...extended, pruned) as JsonObject;
}

function orNull(schema: Json): Json {
  return { anyOf: [schema, { type: "null" }] };
}

function define(file: string, name: string): Json {
  const other = sentAs[name];
  if (other !== undefined) return { type: [other, "null"] };
  const key = `${file}.${name}`;
  if (definitions[key] === undefined) {
    // There before it is whole: schemas refer to themselves.
    definitions[key] = true;
    definitions[key] = prune(file, at(file, "definitions", name));
  }
  return { $ref: `#/definitions/${key}` };
}
