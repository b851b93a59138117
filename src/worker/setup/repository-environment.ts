import { fitsGlob } from "../../domain/glob.ts";
import type { SecretPhase } from "../../domain/secret.ts";
import type { Run } from "../attempt/run.ts";
import { placeOf, workspaceRepository, type SessionRepository } from "../attempt/session-repositories.ts";
import type { PreparedRepository, TrustedCommit } from "../git/workspace-repository.ts";
import { devcontainerPaths, readDevcontainer, type Devcontainer } from "./devcontainer.ts";

/** How a clone of a commit is made ready. */
export interface Preparation {
  readonly script: string | null;
  readonly variables: Readonly<Record<string, string>>;
  readonly image: string | null;
}

/** What one repository's clone needs beside its files: as its base has it, for the agent and for what has no secrets. */
export interface RepositoryEnvironment extends Preparation {
  readonly repository: SessionRepository;
  readonly prepared: PreparedRepository;
  /** The same of the one commit whose setup may have secrets; null if this session has none. */
  readonly trusted: (Preparation & { readonly commit: TrustedCommit }) | null;
}

/** As the repository's settings say and, if they are silent, its devcontainer file. */
export async function readEnvironments(
  run: Run,
  prepared: readonly PreparedRepository[],
): Promise<RepositoryEnvironment[]> {
  const environments: RepositoryEnvironment[] = [];
  for (const [index, repository] of run.session.repositories.entries()) {
    const start = prepared[index];
    if (start === undefined) continue;
    // Of the base, never of the work branch.
    const own = await preparationAt(run, repository, start.baseSha);
    const commit = stillConfigured(repository, start.trusted ?? null);
    const same = commit?.sha === start.baseSha ? own : null;
    const trusted = commit && { commit, ...(same ?? (await preparationAt(run, repository, commit.sha))) };
    environments.push({ repository, prepared: start, ...own, trusted });
  }
  return keepsSecretsApart(run, environments) ? environments : environments.map((each) => ({ ...each, trusted: null }));
}

/** The folders may have been laid out before an admin configured another branch. */
function stillConfigured({ branch }: SessionRepository, trusted: TrustedCommit | null): TrustedCommit | null {
  if (trusted === null) return null;
  return branch === (trusted.isDefault ? null : trusted.branch) ? trusted : null;
}

/**
 * Without a sandbox all setups run in the session's one home and workspace. Secrets are kept out of it if anything else was
 * there, or will be: commits that are not trusted, or an agent.
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

/** One of the operator's list that is on this machine: a repository's file makes nobody fetch anything, nor show others' images. */
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

/** Variables of the secrets for a phase; a repository's own win over the organization's. */
export function secretsFor(run: Run, phase: SecretPhase, repositoryId: string): Record<string, string> {
  const secrets = run.secrets.filter((secret) => secret.phases.includes(phase) && isFor(secret, repositoryId));
  return Object.fromEntries(secrets.map(({ name, value }) => [name, value]));
}

/** Values of a repository's secrets for its setup that are not for its agents. */
export function setupOnlyValues(run: Run, repositoryId: string): string[] {
  return run.secrets
    .filter((secret) => isFor(secret, repositoryId))
    .flatMap(({ phases, value }) => (phases.includes("setup") && !phases.includes("agent") ? [value] : []));
}

function isFor(secret: Run["secrets"][number], repositoryId: string): boolean {
  return secret.repositoryId === null || secret.repositoryId === repositoryId;
}
