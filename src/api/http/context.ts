import type {
  FastifyBaseLogger,
  FastifyInstance,
  RawReplyDefaultExpression,
  RawRequestDefaultExpression,
  RawServerDefault,
} from "fastify";
import type { ZodTypeProvider } from "fastify-type-provider-zod";
import type { Database } from "../../database/database.ts";
import type { Agent } from "../../domain/agent.ts";
import type { Principal, Scope } from "../../domain/key.ts";
import type { Repository, RepositoryAddress } from "../../domain/repository.ts";
import type { SignInMethod, SignInPolicy } from "../../domain/user.ts";
import type { Metrics } from "../../metrics/metrics.ts";
import type { Logger } from "../../observability.ts";
import type { Vault } from "../../store/secrets/vault.ts";
import type { Intake } from "../../store/sessions/intake.ts";
import type { Templates } from "../../templates/templates.ts";
import type { OpenSpan, Traces } from "../../traces.ts";

/** What the operations need; handed in by the program, so that none reaches for a global. */
export interface ApiOptions {
  readonly database: Database;
  readonly intake: Intake;
  readonly vault: Vault;
  readonly logger: Logger;
  readonly metrics: Metrics;
  /** Shown by who may read the metrics; null: this machine alone may. */
  readonly metricsToken: string | null;
  readonly traces: Traces;
  /** The web app's address, without a trailing slash; known once the server listens. */
  readonly publicUrl: () => string;
  /** False where the operator runs agents without a sandbox. */
  readonly sandboxed: boolean;
  /** What tells that two addresses are the same repository. */
  readonly repositoryKeyOf: (address: RepositoryAddress) => string;
  readonly allowLocalRepositories: boolean;
  readonly rateLimitPerMinute: number;
  /** Sessions of an organization that run at the same time where it has no limit of its own. */
  readonly maxRunningPerOrganization: number;
  /** Sessions and jobs of one organization that may wait at once. */
  readonly queueLimit: number;
  /** Whether the database has room for more. */
  readonly hasRoom: () => Promise<boolean>;
  /** Names by which the server is reached, beside its public URL's. */
  readonly hosts: readonly string[];
  /** Addresses and networks of proxies whose word on who asks is taken. */
  readonly trustedProxies: readonly string[];
  readonly signInMethods: readonly SignInMethod[];
  readonly signInPolicy: SignInPolicy;
  /** How long a browser stays signed in. */
  readonly signInDays: number;
  readonly defaultAgent: () => Promise<string | null>;
  readonly agents: () => Promise<Agent[]>;
  readonly integrationOf: (url: string) => Repository["integration"];
  readonly templates: Templates;
  /** The built web app, or null to serve the API alone. */
  readonly webDirectory: string | null;
  readonly ready: () => Promise<boolean>;
  /** Between two comments on a quiet event stream; 15 s where it is not given. */
  readonly heartbeatMs?: number;
}

export type App = FastifyInstance<
  RawServerDefault,
  RawRequestDefaultExpression,
  RawReplyDefaultExpression,
  FastifyBaseLogger,
  ZodTypeProvider
>;

/** How an operation is guarded, beside its schema. */
export interface OperationConfig {
  /** Needed of the key; null where no key is needed. */
  readonly scope: Scope | null;
  /** Creates something, so that an Idempotency-Key is honoured. */
  readonly creates?: boolean;
  /** Status for a request without any key: 401, but 400 where the specification says so. */
  readonly missingKey?: 400 | 401;
  /** Puts something into the queue, and is refused while that is full. */
  readonly queues?: boolean;
  /** Starts an automation: the ledger knows of it, and of its repetitions. */
  readonly ledger?: boolean;
  /** No body is taken for an empty object. */
  readonly optionalBody?: boolean;
  /** What its body holds must not be found out from its hash, not even by trying. */
  readonly secretBody?: boolean;
  /** Answers with Server-Sent Events where they are asked for. */
  readonly streams?: boolean;
  /** A GET that changes something all the same, for the audit log. */
  readonly changes?: boolean;
}

declare module "fastify" {
  interface FastifyContextConfig {
    operation?: OperationConfig;
  }
  interface FastifyRequest {
    principal: Principal | null;
    /** Null where traces are off, and of what is no operation. */
    span: OpenSpan | null;
    /** Its answer goes on for as long as it is watched. */
    isStream: boolean;
    /** Id of what the first request under the same Idempotency-Key made. */
    duplicateOf: string | null;
    idempotency: { readonly organizationId: string; readonly key: string; readonly createdId: string } | null;
  }
}
