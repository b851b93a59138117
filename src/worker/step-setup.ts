import { createHash } from "node:crypto";
import { RunError } from "../domain/errors.ts";
import type { SecretPhase } from "../domain/secret.ts";
import { devcontainerPaths, readDevcontainer, type Devcontainer } from "./devcontainer.ts";
import type { Run } from "./run.ts";
import { archiveSetup, runSetupScript, settleSetup, unpackSetup, type SetupPlace } from "./setup-script.ts";
import { openSetupGateway } from "./session-gateway.ts";
import { placeOf, workspaceRepository, type SessionRepository } from "./session-repositories.ts";
import type { PreparedRepository } from "./workspace-repository.ts";

/** What one repository's clone needs beside its files. */
export interface RepositoryEnvironment {
  readonly repository: SessionRepository;
  readonly prepared: PreparedRepository;
  readonly script: string | null;
  readonly variables: Readonly<Record<string, string>>;
  readonly image: string | null;
}

/** As the repository's settings say and, where they are silent, its devcontainer file on the branch that it goes back to. */
export async function readEnvironments(
  run: Run,
  prepared: readonly PreparedRepository[],
): Promise<RepositoryEnvironment[]> {
  const environments: RepositoryEnvironment[] = [];
  for (const [index, repository] of run.session.repositories.entries()) {
    const start = prepared[index];
    if (start === undefined) continue;
    const file = await devcontainerOf(run, repository, start);
    const image = await imageOf(run, repository, file);
    environments.push({
      repository,
      prepared: start,
      script: repository.setupScript ?? file.script,
      variables: { ...file.variables, ...repository.variables },
      image,
    });
  }
  return environments;
}

const none: Devcontainer = { image: null, script: null, variables: {} };

/** Of the base, never of the work branch: setup secrets are for code that was accepted. */
async function devcontainerOf(run: Run, repository: SessionRepository, start: PreparedRepository) {
  const wanted = workspaceRepository(run, repository);
  for (const path of devcontainerPaths) {
    const text = await run.dependencies.workspaces.readFile(wanted, start.baseSha, path, run.signal);
    if (text === null) continue;
    try {
      return readDevcontainer(text, placeOf(run, repository.directory).workingDirectory);
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error);
      await run.emit({
        type: "notice",
        data: { level: "warning", text: `${repository.name}: ${path} is not used: ${reason}` },
      });
    }
  }
  return none;
}

/** Only an image that is on this machine: a repository's file makes nobody fetch anything. */
async function imageOf(run: Run, { name }: SessionRepository, { image }: Devcontainer): Promise<string | null> {
  const { sandbox } = run.dependencies;
  if (image === null || sandbox.kind !== "container") return null;
  if (await sandbox.hasImage(image)) return image;
  const text = `${name}: this server does not have the image ${image} of its devcontainer file (docker pull ${image}), so it uses its own.`;
  await run.emit({ type: "notice", data: { level: "warning", text } });
  return null;
}

/** Those whose script has not been run in this session's clone yet. */
export async function withoutSetup(run: Run, environments: readonly RepositoryEnvironment[]) {
  const missing: RepositoryEnvironment[] = [];
  for (const environment of environments) {
    if (environment.script === null || environment.script.trim() === "") continue;
    const { directory } = environment.repository;
    if (!(await run.dependencies.workspaces.isSetUp(run.session.sessionId, directory))) missing.push(environment);
  }
  return missing;
}

/** Runs each repository's script, or unpacks what the same script made before of the same inputs. */
export async function setupStep(run: Run, environments: readonly RepositoryEnvironment[]): Promise<void> {
  const { environmentCache, workspaces } = run.dependencies;
  for (const environment of environments) {
    const { repository, prepared } = environment;
    const place = setupPlaceOf(run, environment);
    // A branch that an agent has worked on could leave something for later sessions: only accepted code is kept or reused.
    // Without a sandbox what was made in one folder would be used there.
    const shared = run.dependencies.sandbox.isolates && prepared.headSha === prepared.baseSha;
    const key = shared ? await keyOf(run, environment) : null;
    const found = key === null ? null : await environmentCache.find(key);
    if (found !== null) {
      await unpackSetup(run, place, found);
      await workspaces.markSetUp(run.session.sessionId, repository.directory, found.madeAt);
      await tell(
        run,
        environment,
        "Reused the result of an earlier setup with the same script, lock files and settings.\n",
      );
    } else {
      await runScript(run, environment, place);
      await settleSetup(run, place);
      if (key !== null) {
        await environmentCache.keep(
          key,
          place,
          (archives, maximumBytes) => archiveSetup(run, place, archives, maximumBytes),
          run.dependencies.logger,
        );
      }
      await workspaces.markSetUp(run.session.sessionId, repository.directory, null);
    }
  }
}

function tell(run: Run, { repository }: RepositoryEnvironment, text: string): Promise<void> {
  const { id: repositoryId, name } = repository;
  return run.emit({ type: "setup.output", data: { repositoryId, repository: name, text, state: "completed" } });
}

async function runScript(run: Run, environment: RepositoryEnvironment, place: SetupPlace): Promise<void> {
  const { repository } = environment;
  const gateway = await openSetupGateway(run);
  try {
    const { code, exceeded, timedOut, tail } = await runSetupScript(run, {
      place,
      script: environment.script ?? "",
      gateway: gateway.socket,
      limits: run.dependencies.limits,
      limitMs: run.dependencies.setupLimitMs,
      repository: { id: repository.id, name: repository.name },
    });
    if (code === 0 && exceeded === null && !timedOut) return;
    const why = timedOut
      ? `took longer than ${Math.round(run.dependencies.setupLimitMs / 60_000)} minutes`
      : exceeded === null
        ? `ended with ${code}`
        : `used more ${exceeded} than its sandbox allows`;
    throw new RunError({
      code: "setup_failed",
      reason: `The setup of ${repository.name} ${why}${tail === "" ? "." : `:\n${tail}`}`,
      retryable: true,
      mend: "Fix the repository's setup script (or its devcontainer file), then retry the session.",
    });
  } finally {
    await gateway.close();
  }
}

function setupPlaceOf(run: Run, { repository, variables, image }: RepositoryEnvironment): SetupPlace {
  const place = placeOf(run, repository.directory);
  return {
    ...place,
    ...(image !== null && { image }),
    environment: {
      HOME: place.home,
      LANG: "C.UTF-8",
      TERM: "dumb",
      CI: "true",
      ...variables,
      ...secretsFor(run, "setup", repository.id),
    },
  };
}

/** Variables of the secrets for a phase; a repository's own win over the organization's. */
export function secretsFor(run: Run, phase: SecretPhase, repositoryId: string): Record<string, string> {
  return Object.fromEntries(
    run.secrets
      .filter((secret) => secret.phases.includes(phase))
      .filter((secret) => secret.repositoryId === null || secret.repositoryId === repositoryId)
      .map(({ name, value }) => [name, value]),
  );
}

/** Everything that the result depends on and that can be known before. */
async function keyOf(run: Run, environment: RepositoryEnvironment): Promise<string> {
  const { repository, prepared, script, variables, image } = environment;
  const { workspaces, sandbox } = run.dependencies;
  const inputs = {
    format: 1,
    repositoryId: repository.id,
    directory: repository.directory,
    script,
    variables: Object.entries(variables).toSorted(([a], [b]) => a.localeCompare(b)),
    image,
    secrets: run.secrets
      .filter(
        ({ phases, repositoryId }) => phases.includes("setup") && (repositoryId ?? repository.id) === repository.id,
      )
      .map(({ id, version }) => [id, version]),
    lockFiles: await workspaces.lockFiles(workspaceRepository(run, repository), prepared.baseSha, run.signal),
    machine: [sandbox.kind, process.platform, process.arch, process.version],
  };
  return createHash("sha256").update(JSON.stringify(inputs)).digest("hex");
}
