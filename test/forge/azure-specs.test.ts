import { randomUUID } from "node:crypto";
import { readFile } from "node:fs/promises";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { text as readText } from "node:stream/consumers";
import { Ajv } from "ajv";
import { afterAll, beforeAll, beforeEach, expect, it } from "vitest";
import { parseRepositoryUrl, type RepositoryAddress } from "../../src/domain/repositories/repository.ts";
import { createAzure } from "../../src/forges/azure/azure.ts";
import { checkAzure } from "../../src/forges/azure/check.ts";
import type { Feedback } from "../../src/forges/feedback/feedback.ts";
import type { Forge } from "../../src/forges/forge.ts";
import { hangTimeoutMs } from "../hang-timeout.ts";
import { guidOf } from "./azure-places.ts";
import { tipOf } from "./commits.ts";
import { asAzure } from "./azure-url.ts";
import { startForge, type TestForge } from "./server.ts";

interface Operation {
  readonly query: readonly string[];
  readonly scopes: readonly string[];
  readonly body: unknown;
  readonly status: number;
  readonly response: unknown;
}

/** The published descriptions of the operations that Offstage calls: see `prune-azure.ts`. */
interface Description {
  readonly operations: Readonly<Record<string, Operation>>;
  readonly definitions: Readonly<Record<string, unknown>>;
}

/** One request and what came back. */
interface Exchange {
  readonly method: string;
  readonly path: string;
  readonly query: URLSearchParams;
  readonly sent: unknown;
  readonly status: number;
  readonly answer: unknown;
}

/**
 * Parameters of forms of a call that the descriptions leave out, as there is one entry for all forms of a path. The client that
 * Microsoft publishes has them (azure-devops-node-api: getRepositoryWithParent, getComments).
 */
const otherForms: Readonly<Record<string, readonly string[]>> = {
  "GET /{organization}/{project}/_apis/git/repositories/{repositoryId}": ["includeParent"],
  "GET /{organization}/{project}/_apis/wit/workItems/{workItemId}/comments": ["$top", "order", "continuationToken"],
};
/** Answered with 201, as the examples beside the descriptions are. */
const created = new Set([
  "POST /{organization}/{project}/_apis/git/repositories/{repositoryId}/pullrequests",
  "POST /{organization}/{project}/_apis/git/repositories/{repositoryId}/commits/{commitId}/statuses",
]);

let description: Description;
let ajv: Ajv;
let forge: TestForge;
let recorder: Server;
let exchanges: Exchange[] = [];
let azure: Forge;
let settings: Parameters<typeof createAzure>[0];

beforeAll(async () => {
  description = JSON.parse(await readFile(join(import.meta.dirname, "azure-specs.json"), "utf8")) as Description;
  ajv = new Ajv({ strict: false, allErrors: true });
  forge = await startForge();
  // Between the adapter and the forge, so that what is checked is what the adapter sends.
  recorder = createServer((incoming, response) => {
    void (async () => {
      const { method = "GET", url = "/", headers } = incoming;
      const body = await readText(incoming);
      const answer = await fetch(`${forge.url}${url}`, {
        method,
        headers: { authorization: headers.authorization ?? "" },
        redirect: "manual",
        ...(body !== "" && { body }),
      });
      const text = await answer.text();
      const { pathname: path, searchParams: query } = new URL(url, forge.url);
      const isJson = answer.headers.get("content-type")?.startsWith("application/json") === true;
      const sent: unknown = body === "" ? undefined : JSON.parse(body);
      exchanges.push({ method, path, query, sent, status: answer.status, answer: isJson ? JSON.parse(text) : text });
      response.writeHead(answer.status, Object.fromEntries(answer.headers)).end(text);
    })();
  });
  await new Promise<void>((resolve) => recorder.listen(0, "127.0.0.1", resolve));
  const apiUrl = `http://127.0.0.1:${(recorder.address() as AddressInfo).port}`;
  settings = { kind: "azure", webUrl: forge.url, apiUrl, token: forge.token };
  azure = createAzure(settings);
});

beforeEach(() => {
  exchanges = [];
});

afterAll(async () => {
  recorder?.closeAllConnections();
  recorder?.close();
  await forge?.close();
});

/** The described operation of a request; null: none. Optional parts of paths are written as the descriptions have them. */
function operationOf(method: string, path: string): string | null {
  const whole = path
    .replace(/^(\/[^/]+)\/_apis\/git\/repositories$/u, "$1/any/_apis/git/repositories")
    .replace(/\/timeline$/u, "/timeline/any");
  return (
    Object.keys(description.operations).find((name) => {
      const [of, template = ""] = name.split(" ");
      const pattern = template.replaceAll(/\{\w+\}/gu, "[^/]+").replaceAll(".", String.raw`\.`);
      return of === method && new RegExp(`^${pattern}$`, "iu").test(whole);
    }) ?? null
  );
}

function wrongIn(schema: unknown, value: unknown, where: string): string[] {
  const validate = ajv.compile(schema === true ? {} : { ...(schema as object), definitions: description.definitions });
  validate(value);
  return (validate.errors ?? [])
    .filter(({ keyword }) => keyword !== "anyOf")
    .map(({ instancePath, message, params }) => `${where}${instancePath} ${message} ${JSON.stringify(params)}`);
}

/** What is wrong with an exchange by the descriptions. Lists are answered as `{ count, value }`, which they don't say. */
function problems({ method, path, query, sent, status, answer }: Exchange): readonly string[] {
  if (path.endsWith("/_apis/connectionData")) return [];
  const name = operationOf(method, path);
  const operation = name === null ? undefined : description.operations[name];
  if (name === null || operation === undefined) return [`${method} ${path} is not described`];
  const known = new Set([...operation.query, ...(otherForms[name] ?? []), "api-version"]);
  const unknown = [...query.keys()].filter((each) => !known.has(each)).map((each) => `${each} is not described`);
  const version = query.get("api-version") ?? "";
  const { value } = (answer ?? {}) as { readonly value?: unknown };
  const isRefusal = status >= 400;
  const expected = created.has(name) ? 201 : operation.status;
  return [
    ...unknown,
    ...(/^7\.0(?:-preview(?:\.\d)?)?$/u.test(version) ? [] : [`${name} was asked for with the version ${version}`]),
    ...(sent === undefined || operation.body === null ? [] : wrongIn(operation.body, sent, "sent ")),
    ...(sent !== undefined && operation.body === null ? [`${name} has no body`] : []),
    ...(isRefusal || status === expected ? [] : [`${name} never answers ${status}`]),
    ...(isRefusal ? [] : wrongIn(operation.response, Array.isArray(value) ? value : answer, "answered ")),
  ].map((each) => `${name}: ${each}`);
}

const signal = (): AbortSignal => AbortSignal.timeout(hangTimeoutMs);

async function repository(name: string): Promise<RepositoryAddress> {
  const { url } = await forge.createRepository("acme/tools", name, { "a.txt": "a\n" });
  await forge.commit("acme/tools", name, "work", { "b.txt": "b\n" });
  return parseRepositoryUrl(asAzure(url)) as RepositoryAddress;
}

const request = { head: "work", target: "main", title: "Work", body: "Words", draft: true };

/** What was asked, by the names of the descriptions. */
const asked = (): string[] => [
  ...new Set(
    exchanges.map(({ method, path }) => (operationOf(method, path) ?? path).replace(/^.*_apis\//u, `${method} `)),
  ),
];

it("a pull request is opened, refused, found, read, changed and looked into as the descriptions say", async () => {
  const address = await repository("shop");
  await expect(azure.openPullRequest(address, { ...request, head: "nowhere" }, signal())).rejects.toThrow("TF401398");
  const sha = "a".repeat(40);
  const beforeAsking = () => Promise.resolve();
  const work = { sessionId: randomUUID(), sha, askedMsAgo: null, beforeAsking };
  await azure.openPullRequest(address, { ...request, work }, signal());
  await azure.openPullRequest(address, request, signal());
  await azure.editPullRequest(address, 1, (body) => `${body}${"x".repeat(500)}`, signal());
  await azure.readPullRequest(address, 1, signal());
  forge.endPullRequest("acme/tools", "shop", 1, "closed");
  await azure.openPullRequest(address, { ...request, work: { ...work, sha: "b".repeat(40) } }, signal());
  await azure.readAccess(address, "work", signal());
  expect(exchanges.flatMap(problems)).toEqual([]);
  expect(asked().toSorted()).toEqual([
    "GET git/repositories/{repositoryId}",
    "GET git/repositories/{repositoryId}/pullRequests/{pullRequestId}/commits",
    "GET git/repositories/{repositoryId}/pullrequests",
    "GET git/repositories/{repositoryId}/pullrequests/{pullRequestId}",
    "PATCH git/repositories/{repositoryId}/pullrequests/{pullRequestId}",
    "POST git/repositories/{repositoryId}/pullrequests",
    "POST security/permissionevaluationbatch",
  ]);
  // Each field that the adapter reads is answered: a name that the test forge alone had would be no field of the descriptions.
  const read = exchanges.findLast(({ path, method }) => method === "GET" && path.endsWith("/pullrequests/1"))?.answer;
  for (const field of ["pullRequestId", "status", "sourceRefName", "targetRefName", "description", "mergeStatus"])
    expect(read).toHaveProperty(field);
  expect(read).toHaveProperty("lastMergeSourceCommit.commitId");
});

it("a fork is made and found, and a pull request opened from there, as the descriptions say", async () => {
  const address = await repository("forked");
  const fork = await azure.fork(address, signal());
  expect(await azure.fork(address, signal())).toEqual(fork);
  await forge.commit("tester", "forked", "theirs", { "c.txt": "c\n" });
  const opened = await azure.openPullRequest(address, { ...request, head: "theirs", from: fork }, signal());
  expect(await azure.findPullRequest(address, "theirs", "main", signal(), fork)).toMatchObject({
    number: opened.number,
  });
  expect(await azure.findPullRequest(address, "theirs", "main", signal())).toBeNull();
  expect(exchanges.flatMap(problems)).toEqual([]);
  expect(asked()).toEqual(
    expect.arrayContaining(["POST git/repositories", "GET git/repositories/{repositoryId}/refs"]),
  );
});

it("comments, answers, likes, statuses, logs and rights are asked for and answered as the descriptions say", async () => {
  const address = await repository("answers");
  const people = { ada: "write" } as const;
  forge.describe("acme/tools", "answers", { issues: [40], threads: ["77"], logs: { "5": "Words\n" }, people });
  await azure.openPullRequest(address, request, signal());
  const feedback = azure.feedback as Feedback;
  await feedback.add(address, 1, { field: "labels", names: ["bug"] }, signal());
  await feedback.add(address, 1, { field: "reviewers", names: ["ada"] }, signal());
  const comment = () => ({ key: randomUUID(), text: "Words", since: new Date() });
  const pull = { kind: "pullRequest", number: 1 } as const;
  const issue = { kind: "issue", number: 40 } as const;
  for (const subject of [pull, issue]) {
    const wanted = comment();
    await feedback.comment(address, subject, wanted, signal());
    const { id } = await feedback.comment(address, subject, wanted, signal());
    await feedback.react(address, { subject, commentId: id, isOnLines: false }, "eyes", signal());
  }
  await feedback.reply(address, { subject: pull, id: "77" }, comment(), signal());
  for (let time = 0; time < 2; time += 1) await feedback.resolve(address, { subject: pull, id: "77" }, signal());
  const status = { state: "pending", name: "offstage", description: "Words", url: "https://offstage.example" } as const;
  await feedback.setStatus(address, "a".repeat(40), status, signal());
  expect(await feedback.readLogEnd(address, "5", 100, signal())).toBe("Words\n");
  const [main, work = ""] = ["main", "work"].map(
    (branch) => tipOf(forge.pathOf("acme/tools", "answers"), branch) ?? "",
  );
  expect(await feedback.parentsOf?.(address, work, signal())).toEqual([main]);
  expect(await feedback.mayWrite(address, { id: guidOf("person ada"), login: "ada" }, signal())).toBe(true);
  // The properties of an identity are a collection whose entries the description does not name.
  const isOfProperties = (problem: string): boolean =>
    /^GET \/\{organization\}\/_apis\/identities: answered \/0(?:\/properties must .*|(?: must be null) .*)$/u.test(
      problem,
    );
  expect(exchanges.flatMap(problems).filter((problem) => !isOfProperties(problem))).toEqual([]);
  const wanted = Object.keys(description.operations).map((name) => name.replace(/^(\w+) .*_apis\//u, "$1 "));
  expect(asked()).toEqual(
    expect.arrayContaining(
      wanted.filter((name) =>
        /threads|labels|reviewers|commits\/|statuses|builds|identities|accesscontrol|wit\//u.test(name),
      ),
    ),
  );
});

it("the check tries one request for each scope that it names, which the descriptions want for it", async () => {
  await checkAzure({ ...settings, webUrl: `${forge.url}/acme` }, signal());
  const tried = exchanges.filter(({ path }) => !path.endsWith("/connectionData"));
  expect(tried.map(({ method, path }) => description.operations[operationOf(method, path) ?? ""]?.scopes)).toEqual([
    ["vso.code_write"],
    ["vso.work_write"],
    ["vso.build"],
    ["vso.identity"],
  ]);
  expect(tried.map(({ status }) => status >= 400 || status === 200)).toEqual([true, true, true, true]);
});

it("what is checked sees a field that is not described, one of another type, and a parameter that is unknown", async () => {
  const address = await repository("control");
  await azure.openPullRequest(address, request, signal());
  const opened = exchanges.find(({ method }) => method === "POST") as Exchange;
  expect(problems(opened)).toEqual([]);
  const answered = (fields: object) => problems({ ...opened, answer: { ...(opened.answer as object), ...fields } });
  expect(answered({ invented: 1 }).join()).toContain("invented");
  expect(answered({ pullRequestId: "1" }).join()).toContain("must be integer,null");
  expect(answered({ mergeStatus: "perhaps" }).join()).toContain("must be equal to one of the allowed values");
  expect(problems({ ...opened, sent: { sourceBranch: "work" } }).join()).toContain("sourceBranch");
  expect(problems({ ...opened, query: new URLSearchParams({ "api-version": "7.0", page: "1" }) }).join()).toContain(
    "page is not described",
  );
  expect(problems({ ...opened, status: 200 }).join()).toContain("never answers 200");
});
