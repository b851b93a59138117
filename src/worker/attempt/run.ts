import type { Provider } from "../../agents/harness.ts";
import type { Database } from "../../database/database.ts";
import type { EgressPolicy } from "../../domain/egress.ts";
import { OffstageError, RunError } from "../../domain/errors.ts";
import type { NewEvent } from "../../domain/event.ts";
import type { Mask } from "../../domain/masking/mask.ts";
import type { ModelProviders } from "../../domain/model.ts";
import type { RepositoryAddress } from "../../domain/repository.ts";
import type { Forge } from "../../forges/forge.ts";
import type { Prices } from "../../gateway/costs/prices.ts";
import type { GatewayProcesses } from "../../gateway/process/process.ts";
import type { Metrics } from "../../metrics/metrics.ts";
import type { ObjectStore } from "../../objects/object-store.ts";
import { maskErrors, type Logger } from "../../observability.ts";
import type { Limits, Sandbox } from "../../sandboxes/sandbox.ts";
import type { ClaimedSession } from "../../store/queue/claims.ts";
import type { Claim } from "../../store/queue/lease.ts";
import { appendClaimEvents } from "../../store/queue/progress.ts";
import { openSecrets, type OpenedSecret } from "../../store/secrets/secrets.ts";
import type { Vault } from "../../store/secrets/vault.ts";
import type { Traces } from "../../traces.ts";
import type { Workspaces } from "../clones/workspace.ts";
import type { EnvironmentCache } from "../disk/environment-cache.ts";

export interface RunDependencies {
  /** Of this worker, the same over restarts: whose disk a session's folders are on. */
  readonly workerId: string;
  readonly database: Database;
  readonly vault: Vault;
  /** Where large parts of checkpoints are; null: in the database. */
  readonly objects: ObjectStore | null;
  readonly logger: Logger;
  readonly metrics: Metrics;
  readonly traces: Traces;
  readonly workspaces: Workspaces;
  readonly environmentCache: EnvironmentCache;
  readonly sandbox: Sandbox;
  /** Root file system of containers, unless a repository's is used; null if the sandbox has none. */
  readonly sandboxImage: string | null;
  /** Patterns of images that a repository's devcontainer file may choose. */
  readonly devcontainerImages: readonly string[];
  readonly providers: readonly Provider[];
  /** The agent where the session names none; null where nothing is installed. */
  readonly defaultAgent: () => Promise<string | null>;
  readonly forgeOf: (address: RepositoryAddress) => Forge;
  /** Of the server's own secrets. */
  readonly mask: Mask;
  /** Where models really are, with their keys: for the gateway alone. */
  readonly models: ModelProviders;
  readonly egress: EgressPolicy;
  readonly limits: Limits;
  /** Patterns of models that the server allows. */
  readonly allowedModels: readonly string[];
  /** What agents may have of providers beside answers, by name. */
  readonly modelPermits: readonly string[];
  /** The ways out of sandboxes, each in a process of its own. */
  readonly gateways: GatewayProcesses;
  /** The operator's own, before the list prices. */
  readonly prices: Prices;
  /** Where models' traffic is recorded; null where it is not. */
  readonly recordingsDirectory: string | null;
  /** Folder of the gateways' sockets. */
  readonly socketDirectory: string;
  /** Whether the disk with the worker's folders has no room at all. */
  readonly diskIsFull: () => Promise<boolean>;
  /** Whether each session's folders are on a disk of its own, which alone may be full. */
  readonly ownDisks: boolean;
  /** How large a checkpoint's pieces may be; 0: none are taken. */
  readonly checkpointBytes: number;
  readonly publicUrl: () => string;
  readonly stallMs: number;
  readonly turnLimitMs: number;
  readonly setupLimitMs: number;
  readonly permissions: "allow" | "deny";
}

/** One session being carried out under one claim: what every step gets. */
export interface Run {
  readonly dependencies: RunDependencies;
  readonly session: ClaimedSession;
  readonly signal: AbortSignal;
  readonly secrets: readonly OpenedSecret[];
  /** Of the server's secrets and the session's. */
  readonly mask: Mask;
  /** Masks, then stores. @throws LeaseLostError when another worker holds the session */
  readonly emit: (event: NewEvent) => Promise<void>;
}

/** @param secrets of the session, opened: what is stored from here on is masked of them */
export function beginRun(
  dependencies: RunDependencies,
  session: ClaimedSession,
  signal: AbortSignal,
  secrets: readonly OpenedSecret[],
): Run {
  const mask = dependencies.mask.with(secrets.map(({ value }) => value));
  const emit = (event: NewEvent): Promise<void> =>
    appendClaimEvents(dependencies.database, session, [mask.event(event)]);
  const logger = maskErrors(dependencies.logger, mask.text);
  return { dependencies: { ...dependencies, logger }, session, signal, secrets, mask, emit };
}

/** A log of which each line says whose run it is of. */
export function runLogger(logger: Logger, claim: Claim, traceId?: string): Logger {
  const { sessionId, organizationId, attempt } = claim;
  return logger.child({ sessionId, organizationId, attempt, ...(traceId !== undefined && { traceId }) });
}

/** @throws RunError secret_unavailable */
export async function secretsOf(
  { database, vault }: RunDependencies,
  { organizationId, repositories }: ClaimedSession,
): Promise<OpenedSecret[]> {
  try {
    return await openSecrets(
      database,
      vault,
      organizationId,
      repositories.map(({ id }) => id),
    );
  } catch (error) {
    if (!(error instanceof OffstageError)) throw error;
    throw new RunError(
      {
        code: "secret_unavailable",
        reason: `A secret of this session can't be opened: ${error.message}.`,
        retryable: true,
        mend: "Put the master key back, or set the secret's value again, then retry.",
      },
      { cause: error },
    );
  }
}
