import type { Provider } from "../../agents/harness.ts";
import type { Database } from "../../database/database.ts";
import type { ModelProviders } from "../../domain/agents/model.ts";
import type { EgressPolicy } from "../../domain/environments/egress.ts";
import { OffstageError, SessionError } from "../../domain/errors/errors.ts";
import type { Mask } from "../../domain/masking/mask.ts";
import type { RepositoryAddress } from "../../domain/repositories/repository.ts";
import type { NewEvent } from "../../domain/sessions/event.ts";
import type { Forge } from "../../forges/forge.ts";
import type { OwnForges } from "../../forges/connections/organization-forges.ts";
import type { Prices } from "../../gateway/costs/prices.ts";
import type { GatewayProcesses } from "../../gateway/process/process.ts";
import type { Metrics } from "../../metrics/metrics.ts";
import type { ObjectStore } from "../../objects/object-store.ts";
import { maskErrors, type Logger } from "../../observability.ts";
import type { ResourceLimits, Sandbox } from "../../sandboxes/sandbox.ts";
import type { ClaimedSession } from "../../store/queue/claims.ts";
import type { Claim } from "../../store/queue/lease.ts";
import { appendClaimEvents } from "../../store/queue/progress.ts";
import { openRegistries, type OpenedRegistry } from "../../store/secrets/registries.ts";
import { openSecrets, type OpenedSecret } from "../../store/secrets/secrets.ts";
import type { Vault } from "../../store/secrets/vault.ts";
import type { Traces } from "../../traces.ts";
import type { SharedCheckouts } from "../checkouts/shared-checkouts.ts";
import type { EnvironmentCache } from "../disk/environment-cache.ts";
import type { SessionFolders } from "../disk/session-folders.ts";
import type { Mirrors } from "../git/mirrors/mirrors.ts";
import type { Identity } from "../git/git.ts";
import type { Signer } from "../git/signer.ts";

/**
 * What attempts need of their worker: the same for all sessions. Nothing takes all of it but `runAttempt` and a replay: a
 * step's parameter picks what the step uses.
 */
export interface AttemptServices {
  /** Id of this worker, the same over restarts; it says on which worker's disk a session's folders are. */
  readonly workerId: string;
  readonly database: Database;
  readonly vault: Vault;
  /** Store of checkpoints' large parts; null: they are in the database. */
  readonly objects: ObjectStore | null;
  readonly logger: Logger;
  readonly metrics: Metrics;
  readonly traces: Traces;
  /** The sessions' folders on this worker's disk. */
  readonly folders: SessionFolders;
  readonly mirrors: Mirrors;
  /** The bases of clones. */
  readonly checkouts: SharedCheckouts;
  /** Author of the commits that Offstage makes. */
  readonly author: Identity;
  /** Committer of the commits that Offstage makes or signs. */
  readonly committer: Identity;
  /** Signs commits with the operator's key; null: they are not signed. */
  readonly signer: Signer | null;
  readonly environmentCache: EnvironmentCache;
  readonly sandbox: Sandbox;
  /** Root file system of containers, unless a repository names its own; null if the sandbox has none. */
  readonly sandboxImage: string | null;
  /** Patterns of images that a repository's devcontainer file may choose. */
  readonly devcontainerImages: readonly string[];
  readonly providers: readonly Provider[];
  /** The agent of a session that names none; null if no agent can run on this server. */
  readonly defaultAgent: () => Promise<string | null>;
  /** The forges of an organization, whose credentials no other organization's sessions get. */
  readonly forgesOf: (organizationId: string) => Promise<OwnForges>;
  /** The forges of the session's organization once its attempt has begun; before, the operator's. */
  readonly forgeOf: (address: RepositoryAddress) => Forge;
  /** A key that is equal for all addresses of one repository. */
  readonly repositoryKeyOf: (address: RepositoryAddress) => string;
  /** Whether work on a repository that the forge's token may not push to is pushed to a fork. */
  readonly forks: boolean;
  /** Masks the server's own secrets. */
  readonly mask: Mask;
  /** Addresses and keys of the model providers; only the gateway gets them. */
  readonly models: ModelProviders;
  readonly egress: EgressPolicy;
  /** Hosts in private networks that registries may name. */
  readonly registryHosts: readonly string[];
  /** Certificates of the operator's that sandboxes trust too, each as PEM. */
  readonly sandboxAuthorities: readonly string[];
  readonly limits: ResourceLimits;
  /** Patterns of models that the server allows. */
  readonly allowedModels: readonly string[];
  /** Permitted requests of agents to providers in addition to answers (OFFSTAGE_MODEL_ALLOW). */
  readonly modelPermits: readonly string[];
  /** Starts the sandboxes' gateways, each in its own process. */
  readonly gateways: GatewayProcesses;
  /** The operator's prices, which go before the list prices. */
  readonly prices: Prices;
  /** Folder of the recordings of model traffic; null if it is not recorded. */
  readonly recordingsDirectory: string | null;
  /** Folder of the gateways' sockets. */
  readonly socketDirectory: string;
  /** Whether the disk of the worker's folders has no room at all. */
  readonly diskIsFull: () => Promise<boolean>;
  /** Whether a session's folders are on a separate disk that is full; the worker's own disk may have room meanwhile. */
  readonly ownDiskIsFull: (sessionId: string) => Promise<boolean>;
  /** Most bytes of one part of a checkpoint; 0: no checkpoints are taken. */
  readonly checkpointBytes: number;
  readonly publicUrl: () => string;
  /** How long, in ms, an agent may be silent before its turn fails. */
  readonly stallMs: number;
  /** Most time of one turn, in ms. */
  readonly turnLimitMs: number;
  /** Most time of one setup script, in ms. */
  readonly setupLimitMs: number;
  /** How long, in ms, a session is tried again that fails for a reason that passes by itself; 0: it fails at once. */
  readonly retryForMs: number;
  /** The answer to a harness that asks for permission. */
  readonly permissions: "allow" | "deny";
}

/** One attempt at a session, under one claim: what every step gets. */
export interface Attempt {
  readonly session: ClaimedSession;
  /** Ends the attempt; its reason is a class of `stop-reasons.ts`. */
  readonly signal: AbortSignal;
  readonly secrets: readonly OpenedSecret[];
  /** Private package registries, with tokens that only the gateway gets. */
  readonly registries: readonly OpenedRegistry[];
  /** Masks the server's secrets and the session's. */
  readonly mask: Mask;
  /** Possible secrets found in the session's work so far: its diffs don't show them. */
  readonly found: Set<string>;
  /** Masks each line with the same. */
  readonly logger: Logger;
  /** Masks an event, then stores it. @throws LeaseLostError if another worker holds the session */
  readonly emit: (event: NewEvent) => Promise<void>;
}

/**
 * Begins an attempt. Its events and its log are masked with the secrets given here.
 * @param logger adds the session to each line
 * @param secrets of the session, opened; none until `withSecrets` has opened them
 * @param registries the same
 */
export function beginAttempt(
  { session, signal, logger }: Pick<Attempt, "session" | "signal" | "logger">,
  { database, mask: serverMask }: Pick<AttemptServices, "database" | "mask">,
  secrets: readonly OpenedSecret[] = [],
  registries: readonly OpenedRegistry[] = [],
): Attempt {
  const mask = serverMask.with([...secrets.map(({ value }) => value), ...registries.map(({ token }) => token)]);
  const emit = (event: NewEvent): Promise<void> => appendClaimEvents(database, session, [mask.event(event)]);
  const masked = maskErrors(logger, mask.text);
  return { session, signal, secrets, registries, mask, found: new Set(), logger: masked, emit };
}

/** A logger that adds the session, organization, attempt and, if given, trace to each line. */
export function attemptLogger(logger: Logger, claim: Claim, traceId?: string): Logger {
  const { sessionId, organizationId, attempt } = claim;
  return logger.child({ sessionId, organizationId, attempt, ...(traceId !== undefined && { traceId }) });
}

/**
 * Decrypts the secrets of a session's organization and repositories, and the tokens of its registries.
 * @returns the attempt with them, and with masks that know them
 * @throws SessionError secret_unavailable if one can't be opened
 */
export async function withSecrets(
  attempt: Attempt,
  services: Pick<AttemptServices, "database" | "vault" | "mask">,
): Promise<Attempt> {
  const { organizationId, repositories } = attempt.session;
  try {
    const ids = repositories.map(({ id }) => id);
    const secrets = await openSecrets(services.database, services.vault, organizationId, ids);
    const registries = await openRegistries(services.database, services.vault, organizationId);
    return beginAttempt(attempt, services, secrets, registries);
  } catch (error) {
    if (!(error instanceof OffstageError)) throw error;
    throw new SessionError(
      {
        code: "secret_unavailable",
        reason: `A secret of this session can't be opened: ${error.message}.`,
        retryable: true,
        remedy: "Put the master key back, or set the secret's value again, then retry.",
      },
      { cause: error },
    );
  }
}
