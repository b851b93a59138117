import type { Provider } from "../agents/harness.ts";
import type { Database } from "../database/database.ts";
import type { NewEvent } from "../domain/event.ts";
import type { Mask } from "../domain/mask.ts";
import type { ModelProviders } from "../domain/model.ts";
import type { RepositoryAddress } from "../domain/repository.ts";
import type { EgressPolicy } from "../gateway/egress.ts";
import type { Prices } from "../gateway/prices.ts";
import type { Forge } from "../forges/forge.ts";
import type { Logger } from "../observability.ts";
import type { Limits, Sandbox } from "../sandboxes/sandbox.ts";
import type { ClaimedSession } from "../store/claims.ts";
import type { OpenedSecret } from "../store/secrets.ts";
import type { Vault } from "../store/vault.ts";
import type { EnvironmentCache } from "./environment-cache.ts";
import type { Workspaces } from "./workspace.ts";

export interface RunDependencies {
  readonly database: Database;
  readonly vault: Vault;
  readonly logger: Logger;
  readonly workspaces: Workspaces;
  readonly environmentCache: EnvironmentCache;
  readonly sandbox: Sandbox;
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
  /** The operator's own, before the list prices. */
  readonly prices: Prices;
  /** Where models' traffic is recorded; null where it is not. */
  readonly recordingsDirectory: string | null;
  /** Folder of the gateways' sockets. */
  readonly socketDirectory: string;
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
