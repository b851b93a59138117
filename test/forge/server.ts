import { execFile } from "node:child_process";
import { randomBytes } from "node:crypto";
import { chmod, cp, mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { promisify } from "node:util";
import { isAboutRights, isApi, serveApi } from "./api.ts";
import { changeTargets, endPullRequest, proposePullRequest, showPullRequests, type Proposal } from "./api-request.ts";
import { azureGitPlace, azurePathIn } from "./azure-places.ts";
import { runCi } from "./ci.ts";
import { tipOf } from "./commits.ts";
import { deliveriesOf, happeningsOn, type Hook } from "./deliveries/deliveries.ts";
import { feedbackOf, logOf } from "./feedback.ts";
import { registerFromManifest } from "./github-manifest.ts";
import type { RegisteredApp } from "./github-app.ts";
import { serveGit } from "./git-http.ts";
import { contentPath, serveLfs, type LfsState } from "./lfs.ts";
import { mergeInto } from "./mergeable.ts";
import { createRefs } from "./refs.ts";
import {
  gitEnvironment,
  nextLagMs,
  tokenUser,
  type CheckRun,
  type Failure,
  type ForgeState,
  type KeptFeedback,
  type Person,
  type Place,
  type RepositoryFacts,
  type TestPullRequest,
} from "./state.ts";

export interface TestForge {
  readonly url: string;
  /**
   * The address of the GitHub part of the API; GitLab's is at `<url>/api/v4`, Gitea's at `<url>/api/v1`, Bitbucket
   * Cloud's at `<url>/2.0`, Data Center's at `<url>/rest/api/latest`, that of Azure DevOps at `url`.
   */
  readonly apiUrl: string;
  readonly token: string;
  /** Makes a repository with one commit on `main`, of files given or of a folder; of no files, without a commit. */
  createRepository(owner: string, name: string, files: Record<string, string> | string): Promise<{ url: string }>;
  /** Adds a commit to a branch, which is made from `main` if it is not there. */
  commit(owner: string, name: string, branch: string, files: Record<string, string>): Promise<void>;
  /** The bare repository itself. */
  pathOf(owner: string, name: string): string;
  pullRequests(owner: string, name: string): Promise<readonly TestPullRequest[]>;
  /**
   * From here on the API is behind: it knows pushed branches, and lists pull requests and their ends, only after a time between the
   * two, in ms. A pull request can be read by its number at once, and no second one is opened beside an open one.
   * @param shortestMs the same as the longest if omitted
   */
  lag(longestMs: number, shortestMs?: number): void;
  /** From here on git speaks the first version of its protocol, as on a server from before 2018. */
  speakOldGit(): void;
  /** From here on git sends its answers in pieces, with so many ms between two. */
  slowGit(pauseMs: number): void;
  /** From here on the API takes so many ms for each answer. */
  answerAfter(ms: number): void;
  /** From here on Gitea's lists have no more items on a page, whatever is asked for (MAX_RESPONSE_ITEMS). */
  limitPages(items: number): void;
  /** What the forge says of a repository from here on. */
  describe(owner: string, name: string, facts: RepositoryFacts): void;
  /** The token becomes a classic one of GitHub's with these scopes, as `repo, workflow`; null: a fine-grained one. */
  setScopes(scopes: string | null): void;
  /** What the token may write, as a fine-grained one of GitHub's, such as `contents`; null: all. */
  setGranted(granted: readonly string[] | null): void;
  /** The token's scopes at GitLab, and the day on which it ends. */
  setGitLabToken(token: { readonly scopes: readonly string[]; readonly expiresOn: string | null }): void;
  /** The token's scopes at Azure DevOps, such as `vso.code_write`; null: all. */
  setAzureScopes(scopes: readonly string[] | null): void;
  /** The token's scopes at Gitea, such as `write:repository`; null: all. */
  setGiteaScopes(scopes: readonly string[] | null): void;
  /** The token's scopes at Bitbucket Cloud, such as `repository:write`; null: it does not name them. */
  setBitbucketScopes(scopes: readonly string[] | null): void;
  /** Whether the token at Bitbucket Data Center may write. */
  setDataCenterWrites(writes: boolean): void;
  /** Gives a person a token of their own. */
  addPerson(login: string, token?: string): Person;
  /** From here on a person's token is good for nothing. */
  removePerson(person: Person): void;
  /** The API requests so far, as `GET /api/v3/repos/…`. */
  asked(): readonly string[];
  /** Comments, reactions and statuses. */
  feedback(owner: string, name: string): KeptFeedback;
  /** What GitLab was made to do by lines of texts, as `/merge`. */
  quickActions(): readonly string[];
  /** Opens a pull request of a branch that is there, as a person on the forge would. */
  propose(owner: string, name: string, proposal: Proposal): void;
  /** Gives an open pull request another target, as a reviewer on the forge would. */
  retarget(owner: string, name: string, number: number, target: string): void;
  /** Renames a branch as a person on the forge would: open pull requests into it are for its new name, as the default branch is. */
  renameBranch(owner: string, name: string, branch: string, newName: string): Promise<void>;
  /** Closes a pull request, as a person on the forge would. */
  endPullRequest(owner: string, name: string, number: number, state: "closed" | "merged"): void;
  /**
   * Merges a pull request with git, as a person on the forge would by its button: a merge commit on the target.
   * @throws Error if it collides with its target
   */
  merge(owner: string, name: string, number: number): void;
  /** From here on these shell commands run over each commit that is pushed, once what happens is delivered. @returns their runs so far, oldest first */
  runCi(owner: string, name: string, script: string): readonly CheckRun[];
  /** From here on what happens is delivered there. @returns what else may happen, as people and CI make it */
  deliverTo(hooks: readonly Hook[]): ReturnType<typeof deliveriesOf>;
  /** Actions of people and CI, for tests that deliver them themselves. */
  happenings(kind: Hook["kind"]): ReturnType<typeof happeningsOn>;
  /** A repository as deliveries name it. */
  place(owner: string, name: string): Place;
  /** The forge's LFS server, and the path of a repository's content there. */
  readonly lfs: LfsState & { pathOf(owner: string, name: string, oid: string): string };
  /** From here on the forge also takes tokens that it gave to this App. */
  /** How many files of a tree are listed at once from here on. */
  limitTrees(files: number): void;
  registerApp(app: RegisteredApp): void;
  /** From here on the forge takes none of the tokens that it gave to an App so far. */
  forgetAppTokens(): void;
  failNext(failure: Failure): Promise<void>;
  /** Failures that nothing has met yet. */
  pendingFailures(): number;
  /** Comments and replies that were taken, and whose answer was lost. */
  lostComments(): number;
  close(): Promise<void>;
}

const run = promisify(execFile);

/**
 * The project's own forge: real git over HTTP, and a pull request API that reads the truth from refs.
 * @param options `below`: the path below which all of it is, as `/forge`
 */
export async function startForge({ below = "" }: { readonly below?: string } = {}): Promise<TestForge> {
  const root = await mkdtemp(join(tmpdir(), "offstage-forge-"));
  const token = `forge-token-${randomBytes(12).toString("hex")}`;
  const lfs: LfsState = { given: new Set(), refuseUpload: null };
  const state: ForgeState = {
    root,
    token,
    tokens: new Set([token]),
    people: new Map(),
    asking: tokenUser,
    app: null,
    registered: new Map(),
    mergeableAsked: new Set(),
    scopes: null,
    granted: null,
    giteaScopes: null,
    azureScopes: null,
    bitbucketScopes: null,
    dataCenterWrites: true,
    treeLimit: 100_000,
    gitLabToken: { scopes: ["api"], expiresOn: null },
    maxResponseItems: 50,
    lag: { shortestMs: 0, longestMs: 0 },
    answerMs: 0,
    gitPauseMs: 0,
    speaksOldGit: false,
    refs: createRefs(gitEnvironment, () => nextLagMs(state)),
    pulls: new Map(),
    shownHeads: new Map(),
    facts: new Map(),
    failures: [],
    lostComments: 0,
    asked: [],
    quickActions: [],
    ci: new Map(),
    feedback: new Map(),
    lfs,
    commented: () => undefined,
    statusSet: () => undefined,
    reviewed: () => undefined,
    pushed: () => undefined,
    edited: () => undefined,
    ended: () => undefined,
    url: "",
  };
  const { pulls, failures, refs } = state;
  const server = createServer((request, response) => {
    handle(state, below, request, response).catch((error: unknown) => {
      response.statusCode = 500;
      response.end(JSON.stringify({ message: String(error) }));
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  state.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}${below}`;
  return {
    url: state.url,
    apiUrl: `${state.url}/api/v3`,
    token,
    createRepository: async (owner, name, files) => {
      await createRepository(root, owner, name, files);
      refs.changed(join(root, owner, `${name}.git`));
      pulls.set(`${owner}/${name}`, []);
      return { url: `${state.url}/${owner}/${name}` };
    },
    commit: async (owner, name, branch, files) => {
      const bare = join(root, owner, `${name}.git`);
      const before = tipOf(bare, branch);
      await addCommit(bare, branch, files);
      refs.changed(bare);
      state.pushed({ webUrl: state.url, owner, name }, branch, before, tipOf(bare, branch) ?? "", "ann");
    },
    pathOf: (owner, name) => join(root, owner, `${name}.git`),
    pullRequests: (owner, name) => Promise.resolve(pulls.get(`${owner}/${name}`) ?? []),
    propose: (owner, name, proposal) => proposePullRequest(state, { owner, name }, proposal),
    retarget: (owner, name, number, target) =>
      changeTargets(state, { owner, name }, (pull) => (pull.number === number ? target : pull.base)),
    async renameBranch(owner, name, branch, newName) {
      const bare = join(root, owner, `${name}.git`);
      // git moves HEAD with it.
      await run("git", ["-C", bare, "branch", "--move", branch, newName], { env: gitEnvironment });
      refs.changed(bare);
      changeTargets(state, { owner, name }, ({ base }) => (base === branch ? newName : base));
    },
    endPullRequest: (owner, name, number, ending) => void endPullRequest(state, { owner, name }, number, ending),
    lag: (longestMs, shortestMs = longestMs) => {
      // What is there already is known.
      for (const place of pulls.keys()) refs.changed(join(root, `${place}.git`));
      state.lag = { shortestMs, longestMs };
    },
    speakOldGit: () => void (state.speaksOldGit = true),
    slowGit: (pauseMs) => void (state.gitPauseMs = pauseMs),
    answerAfter: (ms) => void (state.answerMs = ms),
    limitPages: (items) => void (state.maxResponseItems = items),
    describe: (owner, name, facts) => void state.facts.set(`${owner}/${name}`, facts),
    setScopes: (scopes) => void (state.scopes = scopes),
    setGranted: (granted) => void (state.granted = granted),
    limitTrees: (files) => void (state.treeLimit = files),
    setGitLabToken: (told) => void (state.gitLabToken = told),
    setAzureScopes: (scopes) => void (state.azureScopes = scopes),
    setGiteaScopes: (scopes) => void (state.giteaScopes = scopes),
    setBitbucketScopes: (scopes) => void (state.bitbucketScopes = scopes),
    setDataCenterWrites: (writes) => void (state.dataCenterWrites = writes),
    addPerson: (login, own = `token-of-${login}-${randomBytes(12).toString("hex")}`) => {
      const person: Person = { login, token: own, refusal: null, asked: [] };
      state.people.set(own, person);
      state.tokens.add(own);
      return person;
    },
    removePerson: ({ token: own }) => {
      state.people.delete(own);
      state.tokens.delete(own);
    },
    asked: () => state.asked,
    feedback: (owner, name) => feedbackOf(state, { owner, name }),
    quickActions: () => state.quickActions,
    happenings: (kind) => happeningsOn(state, kind),
    place: (owner, name) => ({ webUrl: state.url, owner, name }),
    merge(owner, name, number) {
      const place = { webUrl: state.url, owner, name };
      const merged = mergeInto(state, place, number);
      refs.changed(join(root, owner, `${name}.git`));
      endPullRequest(state, place, number, "merged");
      state.pushed(place, merged.branch, merged.before, merged.after, "ann");
    },
    runCi(owner, name, script) {
      const runs: CheckRun[] = [];
      state.ci.set(`${owner}/${name}`, { script, runs });
      return runs;
    },
    deliverTo(hooks) {
      const deliveries = deliveriesOf(state, hooks);
      state.commented = (place, comment) => deliveries.commented(place, comment, state.asking);
      state.statusSet = deliveries.statusSet;
      state.reviewed = deliveries.review;
      state.edited = deliveries.edited;
      state.ended = deliveries.ended;
      state.pushed = (place, branch, before, after, by = tokenUser) => {
        deliveries.pushed(place, branch, before, after, by);
        void runCi(state, place, branch, after).then((ended) => ended !== null && deliveries.ran(place, ended));
      };
      return deliveries;
    },
    lfs: Object.assign(lfs, {
      pathOf: (owner: string, name: string, oid: string) => contentPath(root, `${owner}/${name}`, oid),
    }),
    registerApp: (app) => void (state.app = app),
    forgetAppTokens: () => {
      for (const given of state.tokens) if (given.startsWith("ghs_")) state.tokens.delete(given);
    },
    failNext: async (failure) => {
      if (failure.kind === "rejectPush") await rejectPushes(root, failure);
      else failures.push(failure);
    },
    pendingFailures: () => failures.length,
    lostComments: () => state.lostComments,
    async close() {
      server.closeAllConnections();
      await new Promise<void>((resolve) => server.close(() => resolve()));
      await rm(root, { recursive: true, force: true });
    },
  };
}

async function createRepository(
  root: string,
  owner: string,
  name: string,
  files: Record<string, string> | string,
): Promise<void> {
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

async function addCommit(bare: string, branch: string, files: Record<string, string>): Promise<void> {
  const work = await mkdtemp(join(tmpdir(), "offstage-seed-"));
  try {
    const git = (...parameters: string[]) => run("git", ["-C", work, ...parameters], { env: gitEnvironment });
    await git("clone", "--quiet", bare, ".");
    // A local branch of the remote's, or a new one from the default branch.
    await git("checkout", "--quiet", branch).catch(() => git("checkout", "--quiet", "-b", branch));
    await writeFiles(work, files);
    await git("add", "--all", "--force");
    await git("commit", "--quiet", "--message", `Change ${Object.keys(files).join(", ")}`);
    await git("push", "--quiet", "origin", branch);
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

async function rejectPushes(
  root: string,
  { owner, name, message }: Extract<Failure, { kind: "rejectPush" }>,
): Promise<void> {
  const hook = join(root, owner, `${name}.git`, "hooks/pre-receive");
  await writeFile(hook, `#!/bin/sh\necho "${message}" >&2\nexit 1\n`);
  await chmod(hook, 0o755);
}

async function handle(
  state: ForgeState,
  below: string,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const { pathname: full, search, searchParams } = new URL(request.url ?? "/", state.url);
  if (!full.startsWith(`${below}/`)) {
    response.writeHead(404).end("not found");
    return;
  }
  const written = full.slice(below.length);
  // A project of GitLab's API is one encoded segment.
  const decoded = written.startsWith("/api/v4/") ? written : decodeURIComponent(written);
  // The path at which git finds repositories on Bitbucket Data Center.
  const pathname = decoded.replace(/^\/scm\/~?/u, "/");
  const failure = state.failures[0];
  if (failure?.kind === "hang" && failure.at === kindOf(pathname, search)) {
    state.failures.shift();
    return;
  }
  if (failure?.kind === "refuseGit" && isMeant(failure, pathname, search)) {
    state.failures.shift();
    const asked = failure.retryAfter === undefined ? {} : { "Retry-After": failure.retryAfter };
    response.writeHead(failure.status, { "Content-Type": "text/plain", ...asked }).end("slow down, please\n");
    return;
  }
  if (isApi(pathname)) {
    if (state.answerMs > 0) await pause(state.answerMs);
    await serveApi(state, pathname, searchParams, request, response);
    return;
  }
  if (pathname.endsWith("/settings/apps/new")) return registerFromManifest(state, request, searchParams, response);
  const [, owner = "", name = "", job] = /^\/logs\/(.+)\/([^/]+)\/(\d+)$/u.exec(pathname) ?? [];
  if (job !== undefined) {
    // As a store of files does with another service's token.
    const isStray = request.headers.authorization !== undefined;
    response.writeHead(isStray ? 400 : 200).end(logOf(state, { owner, name }, job));
    return;
  }
  const page = /^\/(.+)\/([^/]+)\/(?:pull|pull-requests|pullrequest|-\/merge_requests)\/(\d+)$/u.exec(pathname);
  if (page !== null) {
    const place = azureGitPlace(state, page[1] ?? "", page[2] ?? "") ?? { owner: page[1] ?? "", name: page[2] ?? "" };
    await servePage(state, place.owner, place.name, Number(page[3]), response);
    return;
  }
  const git = /^\/(.+)\/([^/]+?)(?:\.git)?\/(info\/refs|info\/lfs\/.+|git-upload-pack|git-receive-pack)$/u.exec(
    pathname,
  );
  const azure = git?.[1]?.endsWith("/_git") === true ? azureGitPlace(state, git[1], git[2] ?? "") : null;
  if (git !== null && azure !== null) git.splice(1, 2, azure.owner, azure.name);
  if (git === null || !state.pulls.has(`${git[1]}/${git[2]}`)) {
    response.writeHead(404).end("not found");
    return;
  }
  const basic = Buffer.from((request.headers.authorization ?? "").replace(/^Basic /u, ""), "base64").toString();
  const password = basic.slice(basic.indexOf(":") + 1);
  const isAllowed = state.tokens.has(password) && !state.people.has(password);
  if (git[3]?.startsWith("info/lfs/") === true) {
    const asked = { repository: `${git[1]}/${git[2]}`, path: git[3].slice("info/lfs/".length) };
    await serveLfs(state, asked, isAllowed, request, response);
    return;
  }
  if (!isAllowed) {
    response.writeHead(401, { "WWW-Authenticate": 'Basic realm="forge"' }).end("authentication required");
    return;
  }
  const isPush = `${pathname}${search}`.includes("git-receive-pack");
  const { push: mayPush, gitPush } = state.facts.get(`${git[1]}/${git[2]}`) ?? {};
  if (isPush && (mayPush === false || gitPush === false)) {
    response.writeHead(403, { "Content-Type": "text/plain" }).end("Permission denied to the token's user");
    return;
  }
  const bare = join(state.root, git[1] ?? "", `${git[2]}.git`);
  const isReceiving = git[3] === "git-receive-pack";
  if (git[3] === "info/refs") showPullRequests(state, { owner: git[1] ?? "", name: git[2] ?? "" });
  const before = isReceiving ? state.refs.all(bare) : new Map<string, string>();
  if (state.speaksOldGit) delete request.headers["git-protocol"];
  await serveGit(
    { root: state.root, pauseMs: state.gitPauseMs },
    `/${git[1]}/${git[2]}.git/${git[3]}`,
    search.slice(1),
    request,
    response,
  );
  if (!isReceiving) return;
  state.refs.changed(bare);
  const place = { webUrl: state.url, owner: git[1] ?? "", name: git[2] ?? "" };
  for (const [branch, sha] of state.refs.all(bare))
    if (before.get(branch) !== sha) state.pushed(place, branch, before.get(branch) ?? null, sha);
}

function isMeant({ at, late = false }: Extract<Failure, { kind: "refuseGit" }>, pathname: string, search: string) {
  return kindOf(pathname, search) === at && late === (at !== "lfs" && !pathname.endsWith("/info/refs"));
}

function kindOf(pathname: string, search: string): Extract<Failure, { kind: "hang" }>["at"] {
  const [, path] =
    /^(?:\/api\/v\d\/(?:repos\/[^/]+|projects)|\/2\.0\/repositories\/[^/]+|\/rest\/api\/latest\/projects\/[^/]+\/repos)\/[^/]+(.*)$/u.exec(
      pathname,
    ) ?? [];
  if (pathname.includes("/_apis/")) return isAboutRights(azurePathIn(pathname).path) ? "repository" : "api";
  if (isApi(pathname)) return path !== undefined && isAboutRights(path) ? "repository" : "api";
  if (pathname.includes("/info/lfs/")) return "lfs";
  return `${pathname}${search}`.includes("git-receive-pack") ? "push" : "fetch";
}

/** A page of a pull request, so that its address can be opened. */
async function servePage(
  state: ForgeState,
  owner: string,
  name: string,
  number: number,
  response: ServerResponse,
): Promise<void> {
  const pull = state.pulls.get(`${owner}/${name}`)?.find((candidate) => candidate.number === number);
  if (pull === undefined) {
    response.writeHead(404).end("not found");
    return;
  }
  const bare = join(state.root, owner, `${name}.git`);
  const diff = await run("git", ["-C", bare, "diff", `${pull.base}...${pull.head}`], {
    env: gitEnvironment,
    maxBuffer: 64 * 1024 * 1024,
  });
  const escape = (text: string): string => text.replaceAll("&", "&amp;").replaceAll("<", "&lt;");
  response.writeHead(200, { "Content-Type": "text/html; charset=utf-8" });
  response.end(
    `<!doctype html><html lang="en"><title>${escape(pull.title)}</title><h1>${escape(pull.title)} #${number}</h1>` +
      `<p>${escape(pull.head)} → ${escape(pull.base)}</p><pre>${escape(pull.body)}</pre><pre>${escape(diff.stdout)}</pre></html>`,
  );
}
