import { createHash } from "node:crypto";
import { readAutomationFile } from "../../automation-files/read-automation.ts";
import type { Database, Queryable } from "../../database/database.ts";
import { splitAgentName } from "../../domain/agents/agent.ts";
import {
  automationFolder,
  automationStatusName,
  longestAutomationFile,
  mostAutomationFiles,
} from "../../domain/automations/automation-file.ts";
import { InvalidInputError, SessionError } from "../../domain/errors/errors.ts";
import { firstOf } from "../../domain/fields/text.ts";
import { repositoryRefusal } from "../../domain/repositories/repository-pattern.ts";
import { isAddressProblem, parseRepositoryUrl, type RepositoryAddress } from "../../domain/repositories/repository.ts";
import type { Forge } from "../../forges/forge.ts";
import { createClaimLoop } from "../../lifecycle/claim-loop.ts";
import { createPeriodic, withListener } from "../../lifecycle/periodic.ts";
import type { Service } from "../../lifecycle/service.ts";
import type { Logger } from "../../observability.ts";
import { queueAnswer } from "../../store/answers/answers.ts";
import {
  applyFiles,
  type FileAutomation,
  type FileProblem,
  type ReadBranch,
  type ReadFile,
} from "../../store/automations/apply-files.ts";
import { claimSync, endSync, releaseSync, renewSync, type ClaimedSync } from "../../store/automations/file-sync.ts";
import { allowedRepositories } from "../../store/people/organizations.ts";
import type { Vault } from "../../store/secrets/vault.ts";
import type { Templates } from "../../templates/templates.ts";
import { askRemote } from "../git/mirrors/ask-remote.ts";
import { ensureMirror } from "../git/mirrors/make-mirror.ts";
import { fetchBranch } from "../git/mirrors/fetch-commits.ts";
import { remoteOptions, type Mirror } from "../git/mirrors/mirror.ts";
import type { Mirrors } from "../git/mirrors/mirrors.ts";
import { listFolder, readText, type TreeFile } from "../git/mirrors/read-folder.ts";

/** Interval, in ms, of the poll that finds repositories that are due. */
const pollMs = 5_000;
/** How many repositories a worker reads at once: a slow one must not delay the others. */
const atOnce = 3;
/** Lease of a repository, in ms: after it another worker may read the repository if its worker is silent. */
const defaultLeaseMs = 60_000;
/** Bytes of a file's path, of which those of git may be as long as they like. */
const longestPath = 300;
/** Characters of a status' description; GitHub takes 140. */
const longestDescription = 140;

/** Dependencies of the synchronisation of automations in files. */
export interface FileSyncs {
  readonly database: Database;
  readonly vault: Vault;
  readonly logger: Logger;
  readonly templates: Templates;
  readonly mirrors: Mirrors;
  readonly forgeOf: (address: RepositoryAddress, organizationId: string) => Promise<Forge>;
  /** Ids of the providers of agents. */
  readonly providers: readonly string[];
  readonly allowLocalRepositories: boolean;
  readonly publicUrl: () => string;
  /** Of a claim, in ms, which is renewed three times as often; default 60 s. */
  readonly leaseMs?: number;
}

/** Makes the task that brings automations to what the files of repositories say. Any number of workers may run it. */
export function createFileSyncs(options: FileSyncs): Service {
  const { database, logger } = options;
  const onFailure = (error: unknown): void =>
    logger.error({ err: error }, "could not synchronise automations of files; will retry");
  const loop = createClaimLoop<ClaimedSync>({
    atOnce,
    everyMs: pollMs,
    claim: async () => {
      const claim = await claimSync(database, options.leaseMs ?? defaultLeaseMs);
      return claim === null ? [] : [claim];
    },
    work: (claim, hurry) => syncClaimed(options, claim, hurry),
    graceMs: 0,
    onClaimFailure: onFailure,
    onWorkFailure: onFailure,
  });
  return withListener(loop, (now) =>
    database.listen("offstage_work", (what) => {
      if (what === "automation-files" || what === "") now();
    }),
  );
}

/**
 * Reads the files of a repository that is due. The branch's present head decides, whatever deliveries said of pushes.
 * @returns false if none is due
 */
export async function syncNext(options: FileSyncs, signal: AbortSignal): Promise<boolean> {
  const claim = await claimSync(options.database, options.leaseMs ?? defaultLeaseMs);
  if (claim === null) return false;
  await syncClaimed(options, claim, signal);
  return true;
}

async function syncClaimed(options: FileSyncs, claim: ClaimedSync, signal: AbortSignal): Promise<void> {
  const { database, logger, leaseMs = defaultLeaseMs } = options;
  if (signal.aborted) return releaseSync(database, claim);
  const lost = new AbortController();
  const renewals = createPeriodic({
    everyMs: leaseMs / 3,
    firstAfterMs: leaseMs / 3,
    pass: async () => {
      if (!(await renewSync(database, claim, leaseMs))) lost.abort(new Error("the claim of the repository was lost"));
    },
    onFailure: (error) => logger.warn({ err: error }, "could not renew a claim of automations of files"),
  });
  await renewals.start();
  try {
    await sync(options, claim, AbortSignal.any([signal, lost.signal]));
  } catch (error) {
    if (signal.aborted) await releaseSync(database, claim);
    else if (!lost.signal.aborted) await endFailed(options, claim, error);
  } finally {
    await renewals.stop();
  }
}

async function endFailed({ database, logger }: FileSyncs, claim: ClaimedSync, error: unknown): Promise<void> {
  const isTheirs = error instanceof SessionError || error instanceof InvalidInputError;
  logger.warn({ err: error, repositoryId: claim.repositoryId }, "could not synchronise automations of files");
  const problem = isTheirs ? error.message : "the worker could not read it: see the server's log";
  await endSync(database, claim, problem, !isTheirs);
}

async function sync(options: FileSyncs, claim: ClaimedSync, signal: AbortSignal): Promise<void> {
  const { database, vault, mirrors } = options;
  const address = await addressOf(options, claim);
  const forge = await options.forgeOf(address, claim.organizationId);
  const mirror = mirrors.of({
    url: address.cloneUrl,
    named: forge.webUrl !== null && forge.namedByOperator !== false,
    credentials: () => forge.credentials(address, signal),
  });
  const read = await mirrors.use.whileUsed(mirror.path, async () => {
    await ensureMirror(mirror, signal);
    const head = await headOf(mirror, claim.configuredBranch, signal);
    const isKnown = head.commit === claim.commit && claim.files.every(({ blob }) => blob !== null);
    return isKnown ? null : readFiles(options, claim, { ...head, mirror, forge, address }, signal);
  });
  if (read === null) return endSync(database, claim, null);
  await applyFiles(database, vault, claim, read, (transaction, problems) =>
    queueCommitStatus(transaction, options, { claim, read, problems, isForge: forge.opensPullRequests }),
  );
}

/** @throws InvalidInputError if the repository can't be worked on any more */
async function addressOf(
  { database, allowLocalRepositories }: FileSyncs,
  { url, organizationId }: ClaimedSync,
): Promise<RepositoryAddress> {
  const address = parseRepositoryUrl(url);
  if (isAddressProblem(address)) throw new InvalidInputError(`its address ${address.problem}`);
  if (address.local && !allowLocalRepositories) throw new InvalidInputError("its address is a local path");
  if (repositoryRefusal(await allowedRepositories(database, organizationId), address) === null) return address;
  throw new InvalidInputError("the organization does not allow it any more");
}

interface Head {
  readonly branch: string;
  readonly commit: string;
}

/** @throws SessionError repository_*; InvalidInputError if the branch does not exist */
async function headOf(mirror: Mirror, configured: string | null, signal: AbortSignal): Promise<Head> {
  const ref = configured === null ? "HEAD" : `refs/heads/${configured}`;
  const { defaultBranch, shaOf } = await askRemote(mirror, [ref], await remoteOptions(mirror, signal));
  const branch = configured ?? defaultBranch;
  const commit = shaOf(ref);
  if (branch !== null && commit !== null) return { branch, commit };
  throw new InvalidInputError(`it has no ${configured === null ? "default branch" : `branch ${configured}`}`);
}

/** The branch whose files are read, and where it is. */
interface SyncedBranch extends Head {
  readonly mirror: Mirror;
  readonly forge: Forge;
  readonly address: RepositoryAddress;
}

async function readFiles(
  options: FileSyncs,
  claim: ClaimedSync,
  { branch, commit, mirror, forge, address }: SyncedBranch,
  signal: AbortSignal,
): Promise<ReadBranch> {
  const into = `refs/offstage/latest/${branch.replaceAll("/", "-")}`;
  await fetchBranch(mirror, { branch, sha: commit, into }, () => undefined, signal);
  const listed = await listFolder(mirror, { commit, folder: automationFolder, signal });
  const named = listed?.filter(({ path }) => /\.ya?ml$/u.test(path)) ?? null;
  if (named === null || named.length > mostAutomationFiles) {
    throw new InvalidInputError(
      `${automationFolder} has more than ${mostAutomationFiles} files: nothing of it was read`,
    );
  }
  if (named.some(({ path }) => isUnnameable(path))) {
    throw new InvalidInputError(
      `${automationFolder} has a file whose name is no text, or longer than ${longestPath} bytes: nothing of it was read`,
    );
  }
  const files: ReadFile[] = [];
  for (const file of named) {
    const { path, blob } = file;
    const url = pageOf(forge, address, commit, path);
    const before = claim.files.find((known) => known.path === path);
    const isUnchanged = before?.blob === blob && before.automationId !== null;
    files.push({ path, blob, url, content: isUnchanged ? null : await readFile(options, claim, mirror, file, signal) });
  }
  return { branch, commit, files };
}

/** Whether a path can't be kept: it is the key of its file, and unreadable bytes all look the same. */
const isUnnameable = (path: string): boolean => path.includes("\ufffd") || Buffer.byteLength(path) > longestPath;

async function readFile(
  options: FileSyncs,
  { organizationId }: ClaimedSync,
  mirror: Mirror,
  { path, blob, bytes }: TreeFile,
  signal: AbortSignal,
): Promise<ReadFile["content"]> {
  if (bytes === null) return { problem: "is no plain file" };
  if (bytes > longestAutomationFile) return { problem: `has more than ${longestAutomationFile / 1024} KiB` };
  const content = await readText(mirror, { blob, signal });
  if (content === null) return { problem: "must be UTF-8" };
  try {
    return await check(options, organizationId, path, content);
  } catch (error) {
    if (error instanceof InvalidInputError) return { problem: error.message };
    throw error;
  }
}

/** @throws InvalidInputError as the API would refuse it */
async function check(
  { templates, providers }: FileSyncs,
  organizationId: string,
  path: string,
  content: string,
): Promise<FileAutomation> {
  const asker = { organizationId, id: "automation files" };
  const read = readAutomationFile(path, await templates.readYaml(content, asker));
  const { agent = null, title = null, targetBranch = null, budgetUsd = null, pullRequest = null, ...automation } = read;
  const provider = agent === null ? null : splitAgentName(agent).provider;
  if (provider !== null && !providers.includes(provider)) {
    throw new InvalidInputError(`agent: there is no provider ${provider}; the providers are ${providers.join(", ")}`);
  }
  await templates.check(automation.instructions, asker);
  if (title !== null) await templates.check(title, asker);
  await templates.checkTriggers(automation.triggers, asker);
  return { ...automation, agent, title, targetBranch, budgetUsd, pullRequest };
}

/** The address of a file's page on its forge; null if it has none. */
function pageOf({ filePages }: Forge, { cloneUrl }: RepositoryAddress, commit: string, path: string): string | null {
  if (filePages === null || !/^https?:/u.test(cloneUrl)) return null;
  const encoded = path.split("/").map(encodeURIComponent).join("/");
  return `${cloneUrl.replace(/\.git$/u, "")}/${filePages}/${commit}/${encoded}`;
}

/**
 * Reports the outcome of the files at the commit, if there are or were any. The same outcome once, however often they
 * are read.
 */
async function queueCommitStatus(
  transaction: Queryable,
  { publicUrl }: FileSyncs,
  {
    claim: { organizationId, repositoryId, files: before },
    read: { commit, files },
    problems,
    isForge,
  }: {
    readonly claim: ClaimedSync;
    readonly read: ReadBranch;
    readonly problems: readonly FileProblem[];
    readonly isForge: boolean;
  },
): Promise<void> {
  if (!isForge || (files.length === 0 && before.length === 0)) return;
  const state = problems.length === 0 ? "success" : "failure";
  const nameOf = (path: string): string => path.slice(automationFolder.length + 1);
  const words =
    state === "success"
      ? `${files.length} ${files.length === 1 ? "automation is" : "automations are"} as in the files`
      : firstOf(
          problems.map(({ path, problem }) => `${nameOf(path)}: ${problem}`),
          3,
          "; ",
        );
  const description =
    words.length > longestDescription ? `${words.slice(0, longestDescription - 1).toWellFormed()}…` : words;
  const digest = createHash("sha256").update(words).digest("base64url");
  await queueAnswer(transaction, {
    organizationId,
    sessionId: null,
    repositoryId,
    key: `automation-files:${repositoryId}:${commit}:${digest}`,
    action: {
      kind: "status",
      sha: commit,
      state,
      name: automationStatusName,
      description,
      url: `${publicUrl()}/automations`,
    },
    text: "",
  });
}
