import type { SecretPhase } from "../../domain/environments/secret.ts";
import { messageOf } from "../../domain/errors/errors.ts";
import { matchesGlob } from "../../domain/fields/glob.ts";
import { firstOf } from "../../domain/fields/text.ts";
import type { OpenedSecret } from "../../store/secrets/secrets.ts";
import type { Attempt, AttemptServices } from "../attempt/attempt.ts";
import { commandFoldersOf } from "../attempt/session-repositories.ts";
import type { Clone } from "../clones/clone.ts";
import { committedFiles, readCommittedFile } from "../clones/commit-contents.ts";
import type { TrustedCommit } from "../git/remote-repository.ts";
import { devcontainerPathsOf, isForChoice, readDevcontainer, type Devcontainer } from "./devcontainer.ts";

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
  readonly clone: Clone;
  /**
   * The parts of the devcontainer file that are not followed, for people; null: none, or the repository's settings say
   * how to set up.
   */
  readonly notFollowed: string | null;
  /** The same of the trusted commit, whose setup may use secrets; null if this session has none. */
  readonly trusted: (Preparation & { readonly commit: TrustedCommit }) | null;
}

type Services = Pick<AttemptServices, "workerId" | "folders" | "mirrors" | "sandbox" | "devcontainerImages">;

/** Reads how each clone is set up: from its repository's settings or, for what they leave out, from its base's devcontainer file. */
export async function readEnvironments(
  attempt: Attempt,
  services: Services,
  clones: readonly Clone[],
): Promise<RepositoryEnvironment[]> {
  const environments: RepositoryEnvironment[] = [];
  for (const clone of clones) {
    // Read from the base, never from the work branch.
    const own = await preparationAt(attempt, services, clone, clone.baseSha);
    const commit = stillConfigured(clone);
    const same = commit?.sha === clone.baseSha ? own : null;
    const trusted = commit && { commit, ...(same ?? (await preparationAt(attempt, services, clone, commit.sha))) };
    environments.push({ clone, ...own, trusted });
  }
  return keepsSecretsApart(attempt, services, environments)
    ? environments
    : environments.map((each) => ({ ...each, trusted: null }));
}

/** The trusted commit, unless an admin configured another branch since the folders were made. */
function stillConfigured({ repository, trusted = null }: Clone): TrustedCommit | null {
  if (trusted === null) return null;
  return repository.branch === (trusted.isDefault ? null : trusted.branch) ? trusted : null;
}

/**
 * Whether setup secrets can be kept from other code. Without a sandbox all setups run in the session's one home and workspace:
 * no secrets are used if anything else was there, that is, a commit that is not trusted, or an agent.
 */
function keepsSecretsApart(
  { session }: Pick<Attempt, "session">,
  { sandbox, workerId }: Pick<Services, "sandbox" | "workerId">,
  environments: readonly RepositoryEnvironment[],
): boolean {
  if (sandbox.isolates) return true;
  const hadAgent = session.workspaceWorker === workerId;
  return !hadAgent && environments.every(({ clone, trusted }) => clone.headSha === trusted?.commit.sha);
}

async function preparationAt(
  attempt: Attempt,
  services: Services,
  clone: Clone,
  sha: string,
): Promise<Preparation & Pick<RepositoryEnvironment, "notFollowed">> {
  const { repository } = clone;
  const file = await devcontainerAt(attempt, services, clone, sha);
  return {
    script: repository.setupScript ?? file.script,
    variables: { ...file.variables, ...repository.variables },
    image: await imageOf(attempt, services, repository.name, file),
    notFollowed: repository.setupScript === null ? notFollowed(services, repository.name, file) : null,
  };
}

const none: FoundDevcontainer = { image: null, script: null, variables: {}, ignored: [], choice: [] };

/** A commit's devcontainer file. */
interface FoundDevcontainer extends Devcontainer {
  /** Paths of several files, of which none is taken. */
  readonly choice: readonly string[];
}

/** Most files that a notice names. */
const namedFiles = 5;

function notFollowed(
  { sandbox }: Pick<Services, "sandbox">,
  name: string,
  { choice, ignored, image }: FoundDevcontainer,
): string | null {
  const say = "a setup script in the repository's settings says what to install.";
  if (choice.length > 0) {
    return `${name} has several devcontainer files, of which none is used: ${firstOf(choice, namedFiles)}; ${say}`;
  }
  const all = image === null || sandbox.kind === "container" ? ignored : ["image", ...ignored];
  return all.length === 0 ? null : `${name}: its devcontainer file has ${all.join(", ")}, not followed here; ${say}`;
}

/**
 * Reports on the session the parts of devcontainer files that are not followed: programs that the agent or the setup
 * needs may be missing.
 */
export async function reportNotFollowed(
  { emit }: Pick<Attempt, "emit">,
  environments: readonly RepositoryEnvironment[],
): Promise<void> {
  for (const { notFollowed: text } of environments) {
    if (text !== null) await emit({ type: "notice", data: { level: "info", text: text.slice(0, 2_000) } });
  }
}

async function devcontainerAt(
  attempt: Attempt,
  services: Services,
  { repository, mirror }: Clone,
  sha: string,
): Promise<FoundDevcontainer> {
  const committed = await committedFiles(mirror.path, sha, [".devcontainer.json", ".devcontainer"], attempt.signal);
  const paths = devcontainerPathsOf(committed);
  if (isForChoice(paths)) return { ...none, choice: paths };
  for (const path of paths) {
    const text = await readCommittedFile(mirror.path, sha, path, attempt.signal);
    if (text === null) continue;
    try {
      const { workingDirectory } = commandFoldersOf(attempt.session, services, repository.directory);
      return { ...none, ...readDevcontainer(text, workingDirectory) };
    } catch (error) {
      const reason = messageOf(error);
      await warn(attempt, `${repository.name}: ${path} is not used: ${reason}`);
    }
  }
  return none;
}

/**
 * The image that a devcontainer file names, if the operator's list allows it and it is on this machine: a repository's file
 * must not cause a download, nor show other users' images.
 */
async function imageOf(
  attempt: Attempt,
  { sandbox, devcontainerImages }: Pick<Services, "sandbox" | "devcontainerImages">,
  name: string,
  { image }: Devcontainer,
): Promise<string | null> {
  if (image === null || sandbox.kind !== "container") return null;
  if (!devcontainerImages.some((pattern) => matchesGlob(pattern, image))) {
    await warn(
      attempt,
      `${name}: the image ${image} of its devcontainer file is not used, because OFFSTAGE_DEVCONTAINER_IMAGES does not allow it; this server uses its own.`,
    );
    return null;
  }
  if ((await sandbox.imageId(image)) !== null) return image;
  await warn(
    attempt,
    `${name}: this server does not have the image ${image} of its devcontainer file (docker pull ${image}), so it uses its own.`,
  );
  return null;
}

function warn({ emit }: Pick<Attempt, "emit">, text: string): Promise<void> {
  return emit({ type: "notice", data: { level: "warning", text } });
}

/**
 * Values of the secrets for a phase, by variable name; a repository's own override the organization's.
 * @param repositoryId empty for the organization's alone
 */
export function secretsFor(
  secrets: readonly OpenedSecret[],
  phase: SecretPhase,
  repositoryId: string,
): Record<string, string> {
  const fitting = secrets.filter((secret) => secret.phases.includes(phase) && isFor(secret, repositoryId));
  return Object.fromEntries(fitting.map(({ name, value }) => [name, value]));
}

/** Values of the secrets that a repository's setup gets and its agents do not. */
export function setupOnlyValues(secrets: readonly OpenedSecret[], repositoryId: string): string[] {
  return secrets
    .filter((secret) => isFor(secret, repositoryId))
    .flatMap(({ phases, value }) => (phases.includes("setup") && !phases.includes("agent") ? [value] : []));
}

function isFor(secret: OpenedSecret, repositoryId: string): boolean {
  return secret.repositoryId === null || secret.repositoryId === repositoryId;
}
