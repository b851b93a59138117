import type {
  FastifyBaseLogger,
  FastifyInstance,
  RawReplyDefaultExpression,
  RawRequestDefaultExpression,
  RawServerDefault,
} from "fastify";
import type { ZodTypeProvider } from "fastify-type-provider-zod";
import type { Database } from "../../database/database.ts";
import type { Agent } from "../../domain/agents/agent.ts";
import type { Mask } from "../../domain/masking/mask.ts";
import type { Account } from "../../domain/people/account.ts";
import type { Resource } from "../../domain/people/grant.ts";
import type { Principal, Scope } from "../../domain/people/key.ts";
import type { SignInMethod, SignInPolicy } from "../../domain/people/user.ts";
import type { Connection, ConnectionCheck, ConnectionCredential } from "../../domain/repositories/connection.ts";
import type { OfferedBranches, OfferedFiles, OfferedRepositories } from "../../domain/repositories/choice.ts";
import type { Repository, RepositoryAddress } from "../../domain/repositories/repository.ts";
import type { DiskHealth } from "../../domain/system/health.ts";
import type { Metrics } from "../../metrics/metrics.ts";
import type { Logger } from "../../observability.ts";
import type { HeldRequest } from "../../store/requests/idempotency.ts";
import type { Vault } from "../../store/secrets/vault.ts";
import type { FindPrincipal } from "../../store/people/principals.ts";
import type { BatchedInserts } from "../../store/sessions/batched-inserts.ts";
import type { Templates } from "../../templates/templates.ts";
import type { OpenSpan, Traces } from "../../traces.ts";

/** The server's functions for connections of forges: it has the forges. */
export interface ForgeConnections {
  /** Asks the forge whose a credential is, and what it may. @param credential an error: it can't be opened */
  check(
    connection: Pick<Connection, "kind" | "webUrl" | "apiUrl">,
    credential: ConnectionCredential | Error,
  ): Promise<ConnectionCheck>;
  /** The manifest of a GitHub App that is to be registered. */
  appManifest(app: {
    readonly name: string;
    readonly publicUrl: string;
    readonly hookUrl: string;
    readonly redirectUrl: string;
  }): Record<string, unknown>;
  /** Takes over the App that was registered from a manifest. @throws SessionError if the forge does not hand it over */
  convertAppManifest(
    connection: Pick<Connection, "kind" | "webUrl" | "apiUrl">,
    code: string,
  ): Promise<{
    readonly appId: string;
    readonly privateKey: string;
    readonly hookSecret: string;
    readonly htmlUrl: string;
  }>;
  /** Notifies all users of an organization's connections of a change. */
  changed(organizationId: string): Promise<void>;
}

/** The forge of an account, and the address to which its credential is sent. */
export type AccountPlace = Pick<Account, "kind" | "webUrl" | "apiUrl">;

/** The server's functions for people's own accounts at forges: it has the forges. */
export interface ForgeAccounts {
  /** The place of an account at an address of a forge that is known. @returns why there is none, as a part of a sentence */
  placeOf(organizationId: string, webUrl: string): Promise<AccountPlace | string>;
  /** Asks the forge whose a token is, and what it lacks for opening pull requests. @param credential an error: it can't be opened */
  check(
    place: AccountPlace,
    credential: { readonly token: string; readonly username?: string | undefined } | Error,
  ): Promise<ConnectionCheck>;
}

/** The server's lists for people who write a session: it has the forges. */
export interface ForgeChoices {
  /** Repositories of the organization's forges whose names have the query. */
  repositories(organizationId: string, query: string): Promise<OfferedRepositories>;
  /** @throws NotFoundError, InvalidInputError, UnavailableError as the forge refuses */
  branches(organizationId: string, address: RepositoryAddress, query: string): Promise<OfferedBranches>;
  /** @throws NotFoundError, InvalidInputError, UnavailableError as the forge refuses */
  files(
    organizationId: string,
    address: RepositoryAddress,
    wanted: { readonly branch: string; readonly query: string },
  ): Promise<OfferedFiles>;
}

/** The dependencies of all operations. They are passed in, so that no operation uses globals. */
export interface ApiOptions {
  readonly database: Database;
  readonly inserts: BatchedInserts;
  readonly findPrincipal: FindPrincipal;
  readonly vault: Vault;
  readonly logger: Logger;
  readonly metrics: Metrics;
  /** Token that a reader of the metrics must send; null: only this machine may read them. */
  readonly metricsToken: string | null;
  readonly traces: Traces;
  /** The web app's address without a trailing slash. Call it only once the server listens. */
  readonly publicUrl: () => string;
  /** False if the operator runs agents without a sandbox. */
  readonly sandboxed: boolean;
  /** Normalizes an address: two addresses of the same repository of an organization have the same key. */
  readonly repositoryKeyOf: (address: RepositoryAddress, organizationId: string) => string | Promise<string>;
  /** The server's functions for connections of forges. */
  readonly connections: ForgeConnections;
  /** The server's functions for people's own accounts at forges. */
  readonly accounts: ForgeAccounts;
  /** Lists of the forges, for people who choose. */
  readonly choices: ForgeChoices;
  /** The key by which browsers know this installation's web push. */
  readonly pushPublicKey: () => Promise<string>;
  /** Whether the operator named a mail server. */
  readonly sendsMail: boolean;
  readonly allowLocalRepositories: boolean;
  /** The word that calls Offstage in comments, without `@`. */
  readonly mention: string;
  /** Requests per minute of one key or user. */
  readonly rateLimitPerMinute: number;
  /** Signed deliveries per minute to one address. */
  readonly deliveriesPerMinute: number;
  /** Default limit of an organization's running sessions. */
  readonly maxRunningPerOrganization: number;
  /** Limit of sessions and jobs of one organization that wait. */
  readonly queueLimit: number;
  /** Whether the database's disk has room for more rows. */
  readonly hasRoom: () => Promise<boolean>;
  /** Host names of the server, in addition to that of its public URL. */
  readonly hosts: readonly string[];
  /** Addresses and networks of proxies whose forwarding headers are trusted. */
  readonly trustedProxies: readonly string[];
  /** Reads the document in which a program describes itself, at an untrusted address. @returns its JSON */
  readonly readClientDocument: (url: string) => Promise<unknown>;
  readonly signInMethods: readonly SignInMethod[];
  readonly signInPolicy: SignInPolicy;
  /** Days that a browser stays signed in. */
  readonly signInDays: number;
  readonly defaultAgent: () => Promise<string | null>;
  readonly agents: () => Promise<Agent[]>;
  /** The forge of a repository's address, as an organization reaches it. */
  readonly integrationOf: (
    url: string,
    organizationId: string,
  ) => Repository["integration"] | Promise<Repository["integration"]>;
  /** Takes out of texts what the server keeps secret: its own secrets, and the credentials of an organization's forges. */
  readonly maskOf: (organizationId: string) => Promise<Mask>;
  readonly templates: Templates;
  /** Folder of the built web app; null: serve only the API. */
  readonly webDirectory: string | null;
  readonly ready: () => Promise<boolean>;
  /** Of this Offstage. */
  readonly version: string;
  /** The space of the disk of this server's data folder, and how much of it has to be free. */
  readonly diskSpace: () => Promise<DiskHealth>;
  /** Id of the worker in this process; null or omitted: it runs no sessions. */
  readonly workerId?: string | null;
  /** Folder of recordings on this machine; null or omitted: it has none. */
  readonly recordingsDirectory?: string | null;
  /** Milliseconds between two comments on a quiet event stream; default 15,000. */
  readonly heartbeatMs?: number;
  /** Milliseconds between two polls of running sessions that clients watch; default 30,000. */
  readonly lookAgainMs?: number;
}

/** The HTTP server, with schemas in Zod. */
export type App = FastifyInstance<
  RawServerDefault,
  RawRequestDefaultExpression,
  RawReplyDefaultExpression,
  FastifyBaseLogger,
  ZodTypeProvider
>;

/** How an operation is protected and observed, beyond its schema. */
export interface OperationConfig {
  /** Scope that the key must have; null if no key is needed. */
  readonly scope: Scope | null;
  /** It creates something, so an Idempotency-Key is honoured. */
  readonly creates?: boolean;
  /** It shows one session, the one that its path names: a request by a share link to that session is allowed. */
  readonly isShared?: boolean;
  /** Status for a request without a key: 401 unless the specification demands 400. */
  readonly missingKey?: 400 | 401;
  /** It puts work into the queue, so it is rejected while the queue is full. */
  readonly queues?: boolean;
  /** It takes deliveries, whose outcomes are in the ledger: its entry in the audit log is not waited for. */
  readonly delivers?: boolean;
  /** It triggers an automation, so repeated requests are recorded in the ledger. */
  readonly ledger?: boolean;
  /** A request without a body counts as one with an empty object. */
  readonly optionalBody?: boolean;
  /** The body is an event of others, or has one: a number that JavaScript can't hold is kept as a text of its digits. */
  readonly hasEvent?: boolean;
  /** The body is secret: only a keyed hash of it may be stored, which can't be found by guessing. */
  readonly secretBody?: boolean;
  /**
   * The answer has a secret that is shown once, always or to such a body: under an Idempotency-Key it is kept sealed, and given again to
   * nobody but who asked first.
   */
  readonly secretAnswer?: true | ((body: unknown) => boolean);
  /** It answers with Server-Sent Events: if the client accepts them, or `alone`, with nothing else. */
  readonly streams?: true | "alone";
  /** It only passes on to other operations, which are in the audit log themselves: of it only what is refused is there. */
  readonly passesOn?: boolean;
  /** For the audit log: a GET that nevertheless changes something. */
  readonly changes?: boolean;
}

declare module "fastify" {
  interface FastifyContextConfig {
    operation?: OperationConfig;
  }
  interface FastifyRequest {
    principal: Principal | null;
    /** The resource of the request: a program's token is valid for one of them. */
    resource: Resource;
    /** Null if tracing is off, or the request is not for an operation. */
    span: OpenSpan | null;
    /** Measures the request, once; null until its first hook. */
    endMeasured: (() => void) | null;
    /** The answer is an event stream, which lasts as long as the client reads it. */
    isStream: boolean;
    /** Id of what the first request with the same Idempotency-Key created. */
    duplicateOf: string | null;
    /** Its place under its Idempotency-Key. `isSealed`: the answer has a secret. */
    idempotency: (HeldRequest & { readonly isSealed: boolean }) | null;
  }
}
