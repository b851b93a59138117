import { randomBytes } from "node:crypto";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Readable } from "node:stream";
import { setTimeout as pause } from "node:timers/promises";
import { isDeepStrictEqual } from "node:util";
import { messageOf } from "../src/domain/errors/errors.ts";
import type { PullRequestAddition } from "../src/domain/repositories/pull-request-settings.ts";
import { isAddressProblem, parseRepositoryUrl, type RepositoryAddress } from "../src/domain/repositories/repository.ts";
import { createAzureApi, type AzureSettings } from "../src/forges/azure/api.ts";
import type { Forge, ForgePullRequest, ForgeSettings } from "../src/forges/forge.ts";
import { repositoryPlaceOf } from "../src/forges/bitbucket-data-center/place.ts";
import { createForges } from "../src/forges/forges.ts";
import { pathOn } from "../src/forges/serves.ts";
import { mustGit, type GitOptions } from "../src/worker/git/git.ts";

/** The forge and the repository that are tried. */
export interface Subject {
  readonly settings: Extract<
    ForgeSettings,
    { kind: "azure" | "github" | "gitlab" | "gitea" | "bitbucket" | "bitbucketDataCenter" }
  > & {
    readonly token: string;
  };
  /** A repository for trials: branches and pull requests come and go in it. */
  readonly repositoryUrl: string;
  /** How long the forge may lag behind what was pushed or changed, in ms. */
  readonly lagMs: number;
  /** Labels, reviewers and assignees that the forge has. Omitted: none are tried. */
  readonly additions?: readonly PullRequestAddition[];
}

/** Whether the forge did what is expected of it. */
export interface Expectation {
  readonly name: string;
  /** What went wrong; null: it was met. */
  readonly problem: string | null;
  readonly ms: number;
}

/** What the expectations share. */
export interface Trial {
  readonly subject: Subject;
  readonly forge: Forge;
  readonly address: RepositoryAddress;
  readonly signal: AbortSignal;
  readonly remote: GitOptions;
  readonly target: string;
  /** A new commit on the target, with a file of its own if none is given. @returns its hash */
  commit(parent: string | null, file?: TrialFile): Promise<string>;
  push(sha: string, branch: string): Promise<void>;
  open(branch: string, sha: string, draft?: boolean): Promise<ForgePullRequest & { readonly created: boolean }>;
  close(number: number): Promise<void>;
  /** Deletes branches. */
  remove(branches: readonly string[]): Promise<void>;
}

/** A file of the trial. */
export interface TrialFile {
  readonly path: string;
  readonly content: string;
}

/** What reports expectations one after the other, whether they are met or not. */
export function expecting(report: (met: Expectation) => void): {
  readonly expect: Expect;
  readonly isMet: () => boolean;
} {
  let isMet = true;
  async function expect(name: string, act: () => Promise<void>): Promise<boolean> {
    const began = performance.now();
    const problem = await act().then(
      () => null,
      (error: unknown) => messageOf(error),
    );
    isMet &&= problem === null;
    report({ name, problem, ms: Math.round(performance.now() - began) });
    return problem === null;
  }
  return { expect, isMet: () => isMet };
}

/**
 * Begins a trial with a clone of its own.
 * @throws Error if it can't begin: the repository is not served, or can't be cloned
 */
export async function begin(subject: Subject): Promise<{ readonly trial: Trial; readonly end: () => Promise<void> }> {
  const address = parseRepositoryUrl(subject.repositoryUrl);
  if (isAddressProblem(address)) throw new Error(`${subject.repositoryUrl} ${address.problem}`);
  const folder = await mkdtemp(join(tmpdir(), "offstage-acceptance-"));
  const end = (): Promise<void> => rm(folder, { recursive: true, force: true });
  try {
    return { trial: await beginIn(folder, subject, address), end };
  } catch (error) {
    await end();
    throw error;
  }
}

async function beginIn(folder: string, subject: Subject, address: RepositoryAddress): Promise<Trial> {
  const forge = createForges([subject.settings]).forgeOf(address);
  if (forge.kind === "git") throw new Error(`${subject.settings.webUrl} does not serve ${subject.repositoryUrl}`);
  const signal = AbortSignal.timeout(30 * 60_000);
  const credentials = await forge.credentials(address, signal);
  const remote = { cwd: folder, signal, remote: { url: address.cloneUrl, credentials, pinned: null } };
  await mustGit(["init", "--quiet", "--bare", "."], remote);
  const heads = await mustGit(["ls-remote", "--symref", address.cloneUrl, "HEAD"], remote);
  const target = /^ref: refs\/heads\/(\S+)\tHEAD$/mu.exec(heads)?.[1];
  if (target === undefined) throw new Error(`${subject.repositoryUrl} has no commit on its default branch`);
  await mustGit(["fetch", "--quiet", address.cloneUrl, `refs/heads/${target}:refs/heads/target`], remote);
  const sessionId = crypto.randomUUID();
  return {
    subject,
    forge,
    address,
    signal,
    remote,
    target,
    commit: (parent, file) => addCommit(remote, parent ?? "refs/heads/target", file),
    push: async (sha, branch) => {
      await mustGit(["push", "--quiet", address.cloneUrl, `${sha}:refs/heads/${branch}`], remote);
    },
    open: (head, sha, draft = false) => {
      const work = { sessionId, sha, askedMsAgo: null, beforeAsking: () => Promise.resolve() };
      const words = { title: "A trial of Offstage", body: "Made by `npm run accept:forge`; it can be deleted." };
      return forge.openPullRequest(address, { head, target, ...words, draft, work }, signal);
    },
    close: (number) => closePullRequest(subject, address, number),
    remove: (branches) => deleteBranches({ address, remote }, branches),
  };
}

async function addCommit(remote: GitOptions, parent: string, file?: TrialFile): Promise<string> {
  const options = { cwd: remote.cwd, signal: remote.signal };
  const identity = ["-c", "user.name=Offstage", "-c", "user.email=offstage@localhost"];
  const message = `A trial of Offstage: ${randomBytes(6).toString("hex")}`;
  const tree = await mustGit(["rev-parse", `${parent}^{tree}`], options);
  const input = Readable.from([file?.content ?? ""]);
  const blob = await mustGit(["hash-object", "-w", "-t", "blob", "--stdin"], { ...options, input });
  const listed = await mustGit(["ls-tree", "-z", tree], options);
  await mustGit(["read-tree", tree], options);
  if (listed === "") throw new Error("the target branch has no files");
  const path = file?.path ?? message.replaceAll(/\W+/gu, "-");
  await mustGit(["update-index", "--add", "--cacheinfo", `100644,${blob},${path}`], options);
  const changed = await mustGit(["write-tree"], options);
  return mustGit([...identity, "commit-tree", changed, "-p", parent, "-m", message], options);
}

async function deleteBranches(
  { address, remote }: Pick<Trial, "address" | "remote">,
  branches: readonly string[],
): Promise<void> {
  const refs = branches.map((branch) => `refs/heads/${branch}`);
  const there = await mustGit(["ls-remote", address.cloneUrl, ...refs], remote);
  const deleted = refs.filter((ref) => there.includes(ref)).map((ref) => `:${ref}`);
  if (deleted.length > 0) await mustGit(["push", "--quiet", address.cloneUrl, ...deleted], remote);
}

/** The product has no use for it. GitHub and Gitea have the same call. */
export async function closePullRequest(
  { settings }: Subject,
  address: RepositoryAddress,
  number: number,
): Promise<void> {
  if (settings.kind === "azure") return abandon(settings, address, number);
  const { kind, apiUrl, webUrl, token } = settings;
  const path = pathOn(webUrl, address);
  if (kind === "bitbucket")
    return declinePullRequest(`${apiUrl}/repositories/${path}/pullrequests/${number}`, settings);
  if (kind === "bitbucketDataCenter") {
    const { project, slug } = repositoryPlaceOf(webUrl, address);
    const url = `${apiUrl}/projects/${project}/repos/${slug}/pull-requests/${number}`;
    const read = await fetch(url, { headers: { Authorization: `Bearer ${token}` }, redirect: "manual" });
    const { version } = (await read.json()) as { readonly version: number };
    return declinePullRequest(url, { token }, `?version=${version}`);
  }
  const isGitLab = kind === "gitlab";
  const url = isGitLab
    ? `${apiUrl}/projects/${encodeURIComponent(path)}/merge_requests/${number}`
    : `${apiUrl}/repos/${path}/pulls/${number}`;
  const response = await fetch(url, {
    method: isGitLab ? "PUT" : "PATCH",
    headers: {
      Authorization: `${kind === "gitea" ? "token" : "Bearer"} ${token}`,
      "Content-Type": "application/json",
    },
    body: JSON.stringify(isGitLab ? { state_event: "close" } : { state: "closed" }),
    redirect: "manual",
  });
  if (!response.ok) throw new Error(`closing it was answered with ${response.status}: ${await response.text()}`);
}

/** Azure DevOps calls closing so. */
async function abandon(settings: AzureSettings, address: RepositoryAddress, number: number): Promise<void> {
  const api = createAzureApi(settings);
  const url = api.repositoryUrl(api.repositoryOf(address), `/pullrequests/${number}`);
  const { status, body } = await api.call(url, "PATCH", AbortSignal.timeout(60_000), { body: { status: "abandoned" } });
  if (status !== 200) throw new Error(`closing it was answered with ${status}: ${JSON.stringify(body)}`);
}

async function declinePullRequest(
  url: string,
  { token, username }: { readonly token: string; readonly username?: string | undefined },
  query = "",
): Promise<void> {
  const basic = Buffer.from(`${username}:${token}`).toString("base64");
  const authorization = username === undefined ? `Bearer ${token}` : `Basic ${basic}`;
  const headers = { Authorization: authorization, "X-Atlassian-Token": "no-check" };
  const response = await fetch(`${url}/decline${query}`, { method: "POST", headers, redirect: "manual" });
  if (!response.ok) throw new Error(`closing it was answered with ${response.status}: ${await response.text()}`);
}

/** Tries an expectation and reports it. @returns whether it is met */
export type Expect = (name: string, act: () => Promise<void>) => Promise<boolean>;

/** Tries until it holds, or until the forge had its time. */
export async function within({ subject, signal }: Trial, act: () => Promise<void>): Promise<void> {
  const until = performance.now() + subject.lagMs;
  for (;;) {
    try {
      return await act();
    } catch (error) {
      if (performance.now() >= until) throw error;
      await pause(500, undefined, { signal });
    }
  }
}

/** @throws Error if they differ, with what it is about */
export function same(actual: unknown, expected: unknown, what: string): void {
  unless(!isDeepStrictEqual(actual, expected), `${what}: ${JSON.stringify(actual)}, not ${JSON.stringify(expected)}`);
}

/** @throws Error with the problem if something is wrong */
export function unless(isWrong: boolean, problem: string): void {
  if (isWrong) throw new Error(problem);
}
