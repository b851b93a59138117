import { fitsGlob } from "../../domain/glob.ts";
import type { SecretPhase } from "../../domain/secret.ts";
import type { Run } from "../attempt/run.ts";
import { placeOf, workspaceRepository, type SessionRepository } from "../attempt/session-repositories.ts";
import type { PreparedRepository, TrustedCommit } from "../git/workspace-repository.ts";
import { devcontainerPaths, readDevcontainer, type Devcontainer } from "./devcontainer.ts";

/** How a clone of a commit is set up. */
export interface Preparation {
  /** The setup script; null if there is none. */
  readonly script: string | null;
  readonly variables: Readonly<Record<string, string>>;
  /** Root file system of the sandbox; null: the server's own. */
  readonly image: string | null;
}

/** How one repository's clone is set up, as its base commit has it: for the agent, and for a setup without secrets. */
export interface RepositoryEnvironment extends Preparation {
  readonly repository: SessionRepository;
  readonly prepared: PreparedRepository;
  /** The same of the trusted commit, whose setup may use secrets; null if this session has none. */
  readonly trusted: (Preparation & { readonly commit: TrustedCommit }) | null;
}

/**
 * Reads how each repository is set up: from its settings or, for what they leave out, from the devcontainer file of its base.
 * @param prepared what each repository started from, in the session's order
 */
export async function readEnvironments(
  run: Run,
  prepared: readonly PreparedRepository[],
): Promise<RepositoryEnvironment[]> {
  const environments: RepositoryEnvironment[] = [];
  for (const [index, repository] of run.session.repositories.entries()) {
    const start = prepared[index];
    if (start === undefined) continue;
    // Read from the base, never from the work branch.
    const own = await preparationAt(run, repository, start.baseSha);
    const commit = stillConfigured(repository, start.trusted ?? null);
    const same = commit?.sha === start.baseSha ? own : null;
    const trusted = commit && { commit, ...(same ?? (await preparationAt(run, repository, commit.sha))) };
    environments.push({ repository, prepared: start, ...own, trusted });
  }
  return keepsSecretsApart(run, environments) ? environments : environments.map((each) => ({ ...each, trusted: null }));
}

/** The trusted commit, unless an admin configured another branch since the folders were made. */
function stillConfigured({ branch }: SessionRepository, trusted: TrustedCommit | null): TrustedCommit | null {
  if (trusted === null) return null;
  return branch === (trusted.isDefault ? null : trusted.branch) ? trusted : null;
}

/**
 * Whether setup secrets can be kept from other code. Without a sandbox all setups run in the session's one home and workspace:
 * no secrets are used if anything else was there, that is, a commit that is not trusted, or an agent.
 */
function keepsSecretsApart(run: Run, environments: readonly RepositoryEnvironment[]): boolean {
  const { sandbox, workerId } = run.dependencies;
  if (sandbox.isolates) return true;
  const hadAgent = run.session.workspaceWorker === workerId;
  return !hadAgent && environments.every(({ prepared, trusted }) => prepared.headSha === trusted?.commit.sha);
}

async function preparationAt(run: Run, repository: SessionRepository, sha: string): Promise<Preparation> {
  const file = await devcontainerAt(run, repository, sha);
  return {
    script: repository.setupScript ?? file.script,
    variables: { ...file.variables, ...repository.variables },
    image: await imageOf(run, repository, file),
  };
}

const none: Devcontainer = { image: null, script: null, variables: {} };

async function devcontainerAt(run: Run, repository: SessionRepository, sha: string): Promise<Devcontainer> {
  const wanted = workspaceRepository(run, repository);
  for (const path of devcontainerPaths) {
    const text = await run.dependencies.workspaces.readFile(wanted, sha, path, run.signal);
    if (text === null) continue;
    try {
      return readDevcontainer(text, placeOf(run, repository.directory).workingDirectory);
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error);
      await warn(run, `${repository.name}: ${path} is not used: ${reason}`);
    }
  }
  return none;
}

/**
 * The image that a devcontainer file names, if the operator's list allows it and it is on this machine: a repository's file
 * must not cause a download, nor show other users' images.
 */
async function imageOf(run: Run, { name }: SessionRepository, { image }: Devcontainer): Promise<string | null> {
  const { sandbox, devcontainerImages } = run.dependencies;
  if (image === null || sandbox.kind !== "container") return null;
  if (!devcontainerImages.some((pattern) => fitsGlob(pattern, image))) {
    await warn(
      run,
      `${name}: the image ${image} of its devcontainer file is not used, because OFFSTAGE_DEVCONTAINER_IMAGES does not allow it; this server uses its own.`,
    );
    return null;
  }
  if ((await sandbox.imageId(image)) !== null) return image;
  await warn(
    run,
    `${name}: this server does not have the image ${image} of its devcontainer file (docker pull ${image}), so it uses its own.`,
  );
  return null;
}

function warn(run: Run, text: string): Promise<void> {
  return run.emit({ type: "notice", data: { level: "warning", text } });
}

/**
 * Values of the secrets for a phase, by variable name; a repository's own override the organization's.
 * @param repositoryId empty for the organization's alone
 */
export function secretsFor(run: Run, phase: SecretPhase, repositoryId: string): Record<string, string> {
  const secrets = run.secrets.filter((secret) => secret.phases.includes(phase) && isFor(secret, repositoryId));
  return Object.fromEntries(secrets.map(({ name, value }) => [name, value]));
}

/** Values of the secrets that a repository's setup gets and its agents do not. */
export function setupOnlyValues(run: Run, repositoryId: string): string[] {
  return run.secrets
    .filter((secret) => isFor(secret, repositoryId))
    .flatMap(({ phases, value }) => (phases.includes("setup") && !phases.includes("agent") ? [value] : []));
}

function isFor(secret: Run["secrets"][number], repositoryId: string): boolean {
  return secret.repositoryId === null || secret.repositoryId === repositoryId;
}
