import type { Provider } from "../agents/harness.ts";
import type { Config } from "../config/config.ts";
import type { Database } from "../database/database.ts";
import type { OrganizationForges } from "../forges/connections/organization-forges.ts";
import type { GuardedFetch } from "../gateway/egress/guarded-fetch.ts";
import type { Metrics } from "../metrics/metrics.ts";
import type { Logger } from "../observability.ts";
import type { Sandbox } from "../sandboxes/sandbox.ts";
import type { Vault } from "../store/secrets/vault.ts";
import type { Templates } from "../templates/templates.ts";
import type { Traces } from "../traces.ts";

/** Shared by the API and the worker of a process. */
export interface Dependencies {
  readonly config: Config;
  readonly logger: Logger;
  readonly metrics: Metrics;
  readonly traces: Traces;
  readonly database: Database;
  readonly vault: Vault;
  readonly sandbox: Sandbox;
  readonly providers: readonly Provider[];
  readonly forges: OrganizationForges;
  readonly forgeReach: GuardedFetch;
  readonly templates: Templates;
  /** Whether the process can serve requests: the database answers. */
  readonly ready: () => Promise<boolean>;
}
