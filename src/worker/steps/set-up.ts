import { createHash } from "node:crypto";
import { SessionError } from "../../domain/errors/errors.ts";
import { firstOf } from "../../domain/fields/text.ts";
import type { Attempt, AttemptServices } from "../attempt/attempt.ts";
import { commandFoldersOf } from "../attempt/session-repositories.ts";
import type { Clone, SessionRepository } from "../clones/clone.ts";
import type { SessionPaths } from "../disk/session-folders.ts";
import { requireSandbox } from "../sandboxed/require-sandbox.ts";
import { runSetupApart, setupVariables, type AppliedSetup, type SetupServices } from "../setup/apart.ts";
import { secretsFor, type Preparation, type RepositoryEnvironment } from "../setup/repository-environment.ts";
import { hasFailed, runRepositoryScript, settleSetup, unpackSetup, type SetupResult } from "../setup/script.ts";

type Services = SetupServices & Pick<AttemptServices, "environmentCache" | "sandboxImage">;

/** The repositories whose setup script was not run for this session yet. */
export async function withoutSetup(
  { session }: Pick<Attempt, "session">,
  { folders }: Pick<AttemptServices, "folders">,
  environments: readonly RepositoryEnvironment[],
): Promise<RepositoryEnvironment[]> {
  const missing: RepositoryEnvironment[] = [];
  for (const environment of environments) {
    if (!hasScript(environment)) continue;
    const { directory } = environment.clone.repository;
    if (!(await folders.isSetUp(session.sessionId, directory))) missing.push(environment);
  }
  return missing;
}

/** Most left-out files that a notice names. */
const namedFiles = 5;
const hasScript = ({ script }: Preparation): boolean => script !== null && script.trim() !== "";

/**
 * Runs each repository's setup script, or reuses the result of an earlier run with the same inputs.
 * A setup secret is present only together with the trusted commit: never with another commit's code, another repository, or
 * files of an agent.
 * @throws SessionError setup_failed, resources_exhausted, sandbox_unavailable
 */
export async function setUp(
  attempt: Attempt,
  services: Services,
  environments: readonly RepositoryEnvironment[],
): Promise<void> {
  const { sandbox, folders } = services;
  const { sessionId } = attempt.session;
  if (environments.length > 0) await requireSandbox(services);
  for (const environment of environments) {
    try {
      const originalPaths = await (sandbox.isolates ? setUpApart : setUpInPlace)(attempt, services, environment);
      await folders.markSetUp(sessionId, environment.clone.repository.directory, originalPaths);
    } finally {
      await folders.endSetups(sessionId);
    }
  }
}

/** Runs a repository's setup in separate folders. @returns folders in which the result was made, if in another session */
async function setUpApart(
  attempt: Attempt,
  services: Services,
  environment: RepositoryEnvironment,
): Promise<SessionPaths | null> {
  const { clone } = environment;
  const { repository } = clone;
  const trusted = environment.trusted !== null && hasScript(environment.trusted) ? environment.trusted : null;
  const isAtTrusted = clone.headSha === trusted?.commit.sha;
  const secrets = secretsFor(attempt.secrets, "setup", repository.id);
  const hasSecrets = Object.keys(secrets).length > 0;
  // Without secrets the setup of the head itself does everything that the trusted one could.
  const base =
    trusted !== null && (isAtTrusted || hasSecrets) ? await trustedSetup(attempt, services, clone, trusted) : null;
  const isWithheld = hasSecrets && !isAtTrusted;
  if (isWithheld) await reportWithheld(attempt, services, environment);
  const result =
    isAtTrusted && base !== null ? base : await headSetup(attempt, services, environment, { base, isWithheld });
  const paths = commandFoldersOf(attempt.session, services, repository.directory);
  await unpackSetup(attempt, services, paths, repository, result);
  return result.originalPaths;
}

/** The trusted commit's setup, with secrets: from the cache, or run now and cached. @throws SessionError setup_failed */
async function trustedSetup(
  attempt: Attempt,
  services: Services,
  clone: Clone,
  trusted: NonNullable<RepositoryEnvironment["trusted"]>,
): Promise<AppliedSetup> {
  const { environmentCache, folders } = services;
  const { session, logger } = attempt;
  const { repository } = clone;
  const paths = commandFoldersOf(session, services, repository.directory);
  const image = await pinnedImage(services, trusted.image);
  const key = setupKey(attempt, services, clone, { ...trusted, image });
  // A trial is there to see it run.
  const isTrial = session.setupTrial === true;
  const found = isTrial ? null : await environmentCache.find(key, () => folders.resultFolder(session.sessionId));
  if (found !== null) {
    const text = `Reused the result of an earlier setup of the same commit (${trusted.commit.sha.slice(0, 12)}) with the same settings.\n`;
    await emitOutput(attempt, repository, text, "completed");
    await reportLeftOut(attempt, repository, found.leftOut);
    return {
      ...found,
      commit: trusted.commit.sha,
      originalPaths: found.originalPaths.workspace === paths.workspace ? null : found.originalPaths,
    };
  }
  const secrets = secretsFor(attempt.secrets, "setup", repository.id);
  const { result, made } = await runSetupApart(attempt, services, { ...trusted, image, clone, secrets, base: null });
  if (made === null) throw setupFailed(attempt, services, repository, { ...result, isWithheld: false });
  await reportLeftOut(attempt, repository, made.leftOut);
  await environmentCache.keep(
    key,
    { ...made, originalPaths: { workspace: paths.workspace, home: paths.home } },
    logger,
  );
  return made;
}

/**
 * The setup of the commit that the session works on, without secrets. Its result is not cached.
 * @param options.base the trusted setup's result: unpacked before, and used instead if this setup fails
 * @throws SessionError setup_failed
 */
async function headSetup(
  attempt: Attempt,
  services: Services,
  environment: RepositoryEnvironment,
  options: { readonly base: AppliedSetup | null; readonly isWithheld: boolean },
): Promise<AppliedSetup> {
  const { clone } = environment;
  const { repository } = clone;
  const { base, isWithheld } = options;
  const commit = { sha: clone.headSha, branch: attempt.session.branchName };
  const { result, made } = await runSetupApart(attempt, services, { ...environment, commit, secrets: {}, base });
  if (made !== null) return made;
  const isTrial = attempt.session.setupTrial === true;
  if (base === null || isTrial) throw setupFailed(attempt, services, repository, { ...result, isWithheld });
  const text = `The setup of ${repository.name} failed there. The agent works with what the setup of ${environment.trusted?.commit.branch} made.`;
  await attempt.emit({ type: "notice", data: { level: "warning", text } });
  return base;
}

/** Runs a setup without a sandbox, in the session's own folders, which nothing isolates. @throws SessionError setup_failed */
async function setUpInPlace(attempt: Attempt, services: Services, environment: RepositoryEnvironment): Promise<null> {
  const { variables, script, trusted } = environment;
  const { repository } = environment.clone;
  const secrets = secretsFor(attempt.secrets, "setup", repository.id);
  const isWithheld = trusted === null && Object.keys(secrets).length > 0;
  if (isWithheld) await reportWithheld(attempt, services, environment);
  const folders = commandFoldersOf(attempt.session, services, repository.directory);
  const setupFolders = { ...folders, environment: setupVariables(folders.home, variables, isWithheld ? {} : secrets) };
  const result = await runRepositoryScript(attempt, services, {
    folders: setupFolders,
    script: script ?? "",
    repository,
  });
  if (hasFailed(result)) throw setupFailed(attempt, services, repository, { ...result, isWithheld });
  await settleSetup({ ...services, signal: attempt.signal }, folders);
  return null;
}

/** Reports on the session and in the step's log why the setup secrets are not used. */
async function reportWithheld(
  attempt: Attempt,
  { sandbox }: Pick<Services, "sandbox">,
  { clone, trusted }: RepositoryEnvironment,
): Promise<void> {
  const { repository, targetBranch } = clone;
  const { branchName } = attempt.session;
  const own = "its own branch (the configured one, or else the default one)";
  const why = !sandbox.isolates
    ? `without a sandbox, they are for sessions alone in which each repository is at the tip of ${own} and no agent has worked yet`
    : trusted === null
      ? `they are for ${own} alone, and the target branch ${targetBranch} is another commit`
      : `they are for ${trusted.commit.branch} alone, not for the commits of ${branchName}; what the setup of ${trusted.commit.branch} made is unpacked first`;
  const text = `The setup of ${repository.name} runs without its setup secrets: ${why}.`;
  await attempt.emit({ type: "notice", data: { level: "info", text } });
  await emitOutput(attempt, repository, `${text}\n`, "running");
}

/** Reports files that the agent may miss. */
async function reportLeftOut(
  attempt: Pick<Attempt, "emit">,
  { name }: SessionRepository,
  files: readonly string[],
): Promise<void> {
  if (files.length === 0) return;
  const text = `The setup of ${name} wrote a setup secret into ${firstOf(files, namedFiles)}: agents do not get that. For them to have the secret, an admin gives it the phase agent too.`;
  await attempt.emit({ type: "notice", data: { level: "warning", text } });
}

function emitOutput(
  { emit }: Pick<Attempt, "emit">,
  { id, name }: SessionRepository,
  text: string,
  state: "running" | "completed",
): Promise<void> {
  return emit({ type: "setup.output", data: { repositoryId: id, repository: name, text, state } });
}

function setupFailed(
  { session }: Pick<Attempt, "session">,
  { setupLimitMs }: Pick<Services, "setupLimitMs">,
  { name }: SessionRepository,
  { code, exceeded, timedOut, tail, isWithheld }: SetupResult & { readonly isWithheld: boolean },
): SessionError {
  const why = timedOut
    ? `took longer than ${Math.round(setupLimitMs / 60_000)} minutes`
    : exceeded === null
      ? `ended with ${code}`
      : `used more ${exceeded} than its sandbox allows`;
  const without = isWithheld ? "ran without its setup secrets, and " : "";
  return new SessionError({
    code: "setup_failed",
    reason: `The setup of ${name} ${without}${why}${tail === "" ? "." : `:\n${tail}`}`,
    retryable: true,
    // The servers that it installs from may be unavailable for a while. A trial of a setup is not retried: a person
    // waits for its result.
    passing: !timedOut && exceeded === null && session.setupTrial !== true,
    remedy: "Fix the repository's setup script (or its devcontainer file), then retry the session.",
  });
}

/**
 * Resolves an image's name to its content's id, since a name may be moved to another image at any time: so what runs is what
 * the cache key names.
 * @param image null for the server's own
 * @returns the id; the name if this machine does not know the image, null if the sandbox has none
 * @throws SessionError sandbox_unavailable if the engine does not say
 */
export async function pinnedImage(
  { sandbox, sandboxImage }: Pick<Services, "sandbox" | "sandboxImage">,
  image: string | null,
): Promise<string | null> {
  const name = image ?? sandboxImage;
  return name === null ? null : ((await sandbox.imageId(name)) ?? name);
}

/**
 * The cache key of a trusted setup (SHA-256): a hash over everything that its result depends on and that is known before it
 * runs. The image must be given by its id (`pinnedImage`).
 */
export function setupKey(
  attempt: Pick<Attempt, "secrets">,
  { sandbox }: Pick<Services, "sandbox">,
  { repository, sparse = [] }: Pick<Clone, "repository" | "sparse">,
  { commit, script, variables, image }: NonNullable<RepositoryEnvironment["trusted"]>,
): string {
  const inputs = {
    format: 3,
    repositoryId: repository.id,
    directory: repository.directory,
    commit: commit.sha,
    ...(sparse.length > 0 && { sparse: sparse.toSorted() }),
    script,
    variables: Object.entries(variables).toSorted(([a], [b]) => (a < b ? -1 : 1)),
    image,
    secrets: attempt.secrets
      .filter(({ phases }) => phases.includes("setup"))
      .filter(({ repositoryId }) => repositoryId === null || repositoryId === repository.id)
      .map(({ id, version, phases }) => [id, version, phases.toSorted()]),
    machine: [sandbox.kind, process.platform, process.arch, process.version],
  };
  return createHash("sha256").update(JSON.stringify(inputs)).digest("hex");
}
