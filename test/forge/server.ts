import { execFile } from "node:child_process";
import { randomBytes } from "node:crypto";
import { chmod, cp, mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { text as readText } from "node:stream/consumers";
import { promisify } from "node:util";
import { serveGit } from "./git-http.ts";

/** A pull request as the forge keeps it; its commits are whatever the refs say. */
export interface TestPullRequest {
  readonly number: number;
  readonly title: string;
  readonly body: string;
  readonly head: string;
  readonly base: string;
  readonly state: "open" | "closed";
}

/** Something that goes wrong the next time. */
export type Failure =
  | { readonly kind: "rejectPush"; readonly owner: string; readonly name: string; readonly message: string }
  | { readonly kind: "status"; readonly status: number }
  /** The pull request is opened, and the connection cut before the answer. */
  | { readonly kind: "loseAnswer" };

export interface TestForge {
  readonly url: string;
  /** Where the GitHub part of the API is; Gitea's is at `<url>/api/v1`. */
  readonly apiUrl: string;
  readonly token: string;
  /** Makes a repository with one commit on `main`, of files given or of a folder; of no files, without a commit. */
  createRepository(owner: string, name: string, files: Record<string, string> | string): Promise<{ url: string }>;
  pullRequests(owner: string, name: string): Promise<readonly TestPullRequest[]>;
  failNext(failure: Failure): Promise<void>;
  close(): Promise<void>;
}

const run = promisify(execFile);
const gitEnvironment = {
  PATH: process.env["PATH"],
  GIT_CONFIG_NOSYSTEM: "1",
  GIT_CONFIG_GLOBAL: "/dev/null",
  GIT_AUTHOR_NAME: "Forge",
  GIT_AUTHOR_EMAIL: "forge@localhost",
  GIT_COMMITTER_NAME: "Forge",
  GIT_COMMITTER_EMAIL: "forge@localhost",
};

/** The project's own forge: real git over HTTP, and a pull request API that reads the truth from refs. */
export async function startForge(): Promise<TestForge> {
  const root = await mkdtemp(join(tmpdir(), "offstage-forge-"));
  const token = `forge-token-${randomBytes(12).toString("hex")}`;
  const pulls = new Map<string, TestPullRequest[]>();
  const failures: Exclude<Failure, { kind: "rejectPush" }>[] = [];
  const state: ForgeState = { root, token, pulls, failures, url: "" };
  const server = createServer((request, response) => {
    handle(state, request, response).catch((error: unknown) => {
      response.statusCode = 500;
      response.end(JSON.stringify({ message: String(error) }));
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  state.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return {
    url: state.url,
    apiUrl: `${state.url}/api/v3`,
    token,
    createRepository: async (owner, name, files) => {
      await createRepository(root, owner, name, files);
      pulls.set(`${owner}/${name}`, []);
      return { url: `${state.url}/${owner}/${name}` };
    },
    pullRequests: (owner, name) => Promise.resolve(pulls.get(`${owner}/${name}`) ?? []),
    failNext: async (failure) => {
      if (failure.kind === "rejectPush") await rejectPushes(root, failure);
      else failures.push(failure);
    },
    async close() {
      server.closeAllConnections();
      await new Promise<void>((resolve) => server.close(() => resolve()));
      await rm(root, { recursive: true, force: true });
    },
  };
}

interface ForgeState {
  readonly root: string;
  readonly token: string;
  readonly pulls: Map<string, TestPullRequest[]>;
  readonly failures: Exclude<Failure, { kind: "rejectPush" }>[];
  url: string;
}

async function createRepository(root: string, owner: string, name: string, files: Record<string, string> | string): Promise<void> {
  const bare = join(root, owner, `${name}.git`);
  await mkdir(dirname(bare), { recursive: true });
  await run("git", ["init", "--quiet", "--bare", "--initial-branch", "main", bare], { env: gitEnvironment });
  await run("git", ["-C", bare, "config", "http.receivepack", "true"], { env: gitEnvironment });
  // A repository as a forge makes it, before anything is pushed.
  if (typeof files !== "string" && Object.keys(files).length === 0) return;
  const work = await mkdtemp(join(tmpdir(), "offstage-seed-"));
  try {
    if (typeof files === "string") await cp(files, work, { recursive: true });
    else await writeFiles(work, files);
    const git = (...parameters: string[]) => run("git", ["-C", work, ...parameters], { env: gitEnvironment });
    await git("init", "--quiet", "--initial-branch", "main");
    await git("add", "--all", "--force");
    await git("commit", "--quiet", "--message", "Begin");
    await git("push", "--quiet", bare, "main");
  } finally {
    await rm(work, { recursive: true, force: true });
  }
}

async function writeFiles(folder: string, files: Record<string, string>): Promise<void> {
  for (const [path, content] of Object.entries(files)) {
    await mkdir(dirname(join(folder, path)), { recursive: true });
    await writeFile(join(folder, path), content);
  }
}

async function rejectPushes(root: string, { owner, name, message }: Extract<Failure, { kind: "rejectPush" }>): Promise<void> {
  const hook = join(root, owner, `${name}.git`, "hooks/pre-receive");
  await writeFile(hook, `#!/bin/sh\necho "${message}" >&2\nexit 1\n`);
  await chmod(hook, 0o755);
}

async function handle(state: ForgeState, request: IncomingMessage, response: ServerResponse): Promise<void> {
  const { pathname, search, searchParams } = new URL(request.url ?? "/", state.url);
  const api = /^\/api\/(v3|v1)\/repos\/([^/]+)\/([^/]+)(\/.*)?$/u.exec(pathname);
  if (api !== null) {
    const [, version, owner = "", name = "", path = ""] = api;
    const repository = { owner, name, isGitea: version === "v1" };
    await serveApi(state, repository, path, searchParams, request, response);
    return;
  }
  const page = /^\/([^/]+)\/([^/]+)\/pull\/(\d+)$/u.exec(pathname);
  if (page !== null) {
    await servePage(state, page[1] ?? "", page[2] ?? "", Number(page[3]), response);
    return;
  }
  const git = /^\/([^/]+)\/([^/]+?)(?:\.git)?\/(info\/refs|git-upload-pack|git-receive-pack)$/u.exec(pathname);
  if (git === null || !state.pulls.has(`${git[1]}/${git[2]}`)) {
    response.writeHead(404).end("not found");
    return;
  }
  const basic = Buffer.from((request.headers.authorization ?? "").replace(/^Basic /u, ""), "base64").toString();
  if (!basic.endsWith(`:${state.token}`)) {
    response.writeHead(401, { "WWW-Authenticate": 'Basic realm="forge"' }).end("authentication required");
    return;
  }
  await serveGit(state.root, `/${git[1]}/${git[2]}.git/${git[3]}`, search.slice(1), request, response);
}

interface ApiRepository {
  readonly owner: string;
  readonly name: string;
  readonly isGitea: boolean;
}

async function serveApi(
  state: ForgeState,
  repository: ApiRepository,
  path: string,
  query: URLSearchParams,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const send = (status: number, body: unknown): void => {
    response.writeHead(status, { "Content-Type": "application/json; charset=utf-8" }).end(JSON.stringify(body));
  };
  const failure = state.failures[0];
  if (failure?.kind === "status") {
    state.failures.shift();
    return send(failure.status, { message: "Server Error" });
  }
  if (!(request.headers.authorization ?? "").endsWith(state.token)) return send(401, { message: "Bad credentials" });
  const pulls = state.pulls.get(`${repository.owner}/${repository.name}`);
  if (pulls === undefined) return send(404, { message: "Not Found" });
  const shown = (pull: TestPullRequest): Promise<unknown> => showPull(state, repository, pull);
  const one = /^\/pulls\/(\d+)$/u.exec(path);
  if (one !== null) {
    const pull = pulls.find((candidate) => candidate.number === Number(one[1]));
    return pull === undefined ? send(404, { message: "Not Found" }) : send(200, await shown(pull));
  }
  if (path !== "/pulls") return send(404, { message: "Not Found" });
  if (request.method === "GET") {
    const head = query.get("head")?.replace(`${repository.owner}:`, "") ?? null;
    const matching = pulls.filter(
      (pull) => (head === null || pull.head === head) && (query.get("base") ?? pull.base) === pull.base,
    );
    const page = Number(query.get("page") ?? 1) === 1 ? matching.toReversed() : [];
    return send(200, await Promise.all(page.map(shown)));
  }
  const opened = await openPull(state, repository, pulls, JSON.parse(await readText(request)) as Record<string, string>);
  if (state.failures[0]?.kind === "loseAnswer") {
    state.failures.shift();
    response.destroy();
    return undefined;
  }
  return "refused" in opened ? send(opened.status, opened.refused) : send(201, await shown(opened));
}

/** Refuses as GitHub does: a branch that is missing, no commits between, one that is open already. */
async function openPull(
  state: ForgeState,
  { owner, name, isGitea }: ApiRepository,
  pulls: TestPullRequest[],
  { head = "", base = "", title = "", body = "" }: Record<string, string>,
): Promise<TestPullRequest | { refused: unknown; status: number }> {
  const refuse = (error: object, status = 422) => ({
    refused: { message: "Validation Failed", errors: [{ resource: "PullRequest", ...error }], documentation_url: "https://docs.github.com/rest" },
    status,
  });
  const headSha = await shaOf(state, owner, name, head);
  const baseSha = await shaOf(state, owner, name, base);
  if (headSha === null) return refuse({ field: "head", code: "invalid" });
  if (baseSha === null) return refuse({ field: "base", code: "invalid" });
  if (headSha === baseSha) return refuse({ code: "custom", message: `No commits between ${base} and ${head}` });
  if (pulls.some((pull) => pull.state === "open" && pull.head === head && pull.base === base)) {
    return refuse({ code: "custom", message: `A pull request already exists for ${owner}:${head}.` }, isGitea ? 409 : 422);
  }
  const pull: TestPullRequest = { number: pulls.length + 1, title, body, head, base, state: "open" };
  pulls.push(pull);
  return pull;
}

async function shaOf(state: ForgeState, owner: string, name: string, branch: string): Promise<string | null> {
  const bare = join(state.root, owner, `${name}.git`);
  const found = await run("git", ["-C", bare, "rev-parse", "--verify", "--quiet", `refs/heads/${branch}`], { env: gitEnvironment }).catch(() => null);
  return found === null ? null : found.stdout.trim();
}

async function showPull(state: ForgeState, { owner, name, isGitea }: ApiRepository, pull: TestPullRequest): Promise<unknown> {
  const address = `${state.url}/${owner}/${name}`;
  return {
    number: pull.number,
    html_url: `${address}/pull/${pull.number}`,
    state: pull.state,
    title: pull.title,
    body: pull.body,
    ...(isGitea ? { merged: false } : { merged_at: null }),
    head: { ref: pull.head, sha: await shaOf(state, owner, name, pull.head) },
    base: { ref: pull.base, sha: await shaOf(state, owner, name, pull.base) },
  };
}

/** A page of a pull request, so that its address can be opened. */
async function servePage(state: ForgeState, owner: string, name: string, number: number, response: ServerResponse): Promise<void> {
  const pull = state.pulls.get(`${owner}/${name}`)?.find((candidate) => candidate.number === number);
  if (pull === undefined) {
    response.writeHead(404).end("not found");
    return;
  }
  const bare = join(state.root, owner, `${name}.git`);
  const diff = await run("git", ["-C", bare, "diff", `${pull.base}...${pull.head}`], { env: gitEnvironment, maxBuffer: 64 * 1024 * 1024 });
  const escape = (text: string): string => text.replaceAll("&", "&amp;").replaceAll("<", "&lt;");
  response.writeHead(200, { "Content-Type": "text/html; charset=utf-8" });
  response.end(
    `<!doctype html><html lang="en"><title>${escape(pull.title)}</title><h1>${escape(pull.title)} #${number}</h1>` +
      `<p>${escape(pull.head)} → ${escape(pull.base)}</p><pre>${escape(pull.body)}</pre><pre>${escape(diff.stdout)}</pre></html>`,
  );
}
