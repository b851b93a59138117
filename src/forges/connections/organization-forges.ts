import { SessionError } from "../../domain/errors/errors.ts";
import type { ConnectionCredential } from "../../domain/repositories/connection.ts";
import type { ForgeKind, RepositoryAddress } from "../../domain/repositories/repository.ts";
import { reachOf, secretsIn } from "../http/credential-reach.ts";
import { createForge, forgesOf, type Forges, type NamedForge } from "../forges.ts";
import type { Forge, ForgeSettings } from "../forge.ts";
import { withReach, type Reach } from "../http/reach.ts";
import { serverUrl } from "../serves.ts";

/** A forge that an organization connected. */
export interface ForgeConnection {
  readonly id: string;
  readonly kind: ForgeKind;
  readonly webUrl: string;
  readonly apiUrl: string | null;
  /** Changes if the credential does. */
  readonly revision: string;
  /** An error: it can't be opened, which is no reason to use another one. */
  readonly credential: ConnectionCredential | Error;
}

/** How servers are reached that organizations name. */
export interface GuardedReach {
  /** As `Reach.fetch`. */
  readonly fetch: Reach["fetch"];
  /** Whether the operator named the host, so that it may be in a private network and without encryption. */
  mayBePrivate(url: string): boolean;
}

/** The forges of one organization. */
export interface OwnForges extends Forges {
  /** The credentials of its connections, and the tokens that forges gave out for credentials by now, for masks. */
  secrets(): readonly string[];
}

/** The forges of each organization: those that it connected itself, then the operator's. */
export interface OrganizationForges {
  /**
   * The forges of an organization as they were at most ten seconds ago. An address is served by the longest that fits; of two of the
   * same length by the organization's own.
   */
  of(organizationId: string): Promise<OwnForges>;
  /**
   * Drops the cached connections of the organization, so that the next call reads them again. @param organizationId "":
   * those of all
   */
  forget(organizationId: string): void;
}

/** Options of the forges of organizations. */
export interface OrganizationForgesOptions {
  /** The operator's. */
  readonly configured: readonly ForgeSettings[];
  readonly load: (organizationId: string) => Promise<readonly ForgeConnection[]>;
  /** Whether an organization may use the operator's credentials; if not, it reaches the operator's forges without any. */
  readonly usesConfigured: (organizationId: string) => Promise<boolean>;
  readonly reach: GuardedReach;
  /** Called if a forge refuses a connection's credential, or a right of it. */
  readonly refused: (connectionId: string) => void;
}

/** For processes that miss a notification. */
const keptMs = 10_000;
const mostKept = 2_000;

/** Makes the forges of each organization. An adapter lives as long as its credential: it keeps tokens of an App's installations. */
export function createOrganizationForges(options: OrganizationForgesOptions): OrganizationForges {
  const { configured, load, usesConfigured } = options;
  const operators = configured.map((settings) => ({ settings, forge: createForge(settings) }));
  const withoutCredentials = configured.map((each) => {
    const settings = withoutCredential(each);
    return { settings, forge: createForge(settings) };
  });
  const kept = new Map<string, { readonly until: number; readonly forges: Promise<OwnForges> }>();
  /** Adapters by connection. */
  const adapters = new Map<string, { readonly revision: string; readonly forge: NamedForge }>();

  async function read(organizationId: string): Promise<OwnForges> {
    const [connections, uses] = await Promise.all([load(organizationId), usesConfigured(organizationId)]);
    const own = connections
      .filter(({ credential }) => credential instanceof Error || credential.type !== "configured")
      .map((connection) => {
        const known = adapters.get(connection.id);
        if (known?.revision === connection.revision) return known.forge;
        const forge = connectedForge(connection, options);
        // A credential that could not be decrypted may be once the master key is back, with the same revision.
        if (!(connection.credential instanceof Error)) {
          adapters.set(connection.id, { revision: connection.revision, forge });
        }
        return forge;
      });
    const named = [...own, ...(uses ? operators : withoutCredentials)];
    const given = connections.flatMap(({ credential }) => secretsIn(credential));
    const issued = () => named.flatMap(({ forge }) => forge.issuedTokens?.() ?? []);
    return { ...forgesOf(named), secrets: () => [...given, ...issued()] };
  }

  function trim(): void {
    if (kept.size < mostKept) return;
    kept.clear();
    adapters.clear();
  }

  return {
    async of(organizationId) {
      const known = kept.get(organizationId);
      if (known !== undefined && performance.now() < known.until) return known.forges;
      trim();
      const fresh = { until: performance.now() + keptMs, forges: read(organizationId) };
      kept.set(organizationId, fresh);
      fresh.forges.catch(() => {
        if (kept.get(organizationId) === fresh) kept.delete(organizationId);
      });
      return fresh.forges;
    },
    forget(organizationId) {
      if (organizationId === "") kept.clear();
      else kept.delete(organizationId);
    },
  };
}

/** The settings of an adapter, which are the same for the operator's forges. */
export function settingsOf(
  { kind, webUrl, apiUrl }: Pick<ForgeConnection, "kind" | "webUrl" | "apiUrl">,
  credential: ConnectionCredential | null,
): ForgeSettings {
  // Each kind has its own fields, of which the schema of connections allows no others.
  return {
    kind,
    webUrl,
    ...(apiUrl !== null && { apiUrl }),
    ...(credential?.type === "token" && {
      token: credential.token,
      ...(credential.username !== undefined && { username: credential.username }),
    }),
    ...(credential?.type === "app" && { app: { id: credential.appId, privateKey: credential.privateKey } }),
  } as ForgeSettings;
}

/** The settings of the same forge as somebody has it who has no account there. */
function withoutCredential(settings: ForgeSettings): ForgeSettings {
  const { kind, webUrl } = settings;
  return kind === "git" ? { kind, webUrl } : { kind, webUrl, apiUrl: settings.apiUrl };
}

function connectedForge(connection: ForgeConnection, { reach, refused }: OrganizationForgesOptions): NamedForge {
  const { id, webUrl, credential } = connection;
  const settings = settingsOf(connection, credential instanceof Error ? null : credential);
  const guarded = reachOf(reach, credential, () => refused(id));
  const made = createForge(settings, serverUrl(webUrl, connection.apiUrl), reach.fetch);
  const forge = everyCall(made, (call) => {
    if (credential instanceof Error) return Promise.reject(notOpened(webUrl, credential));
    return withReach(guarded, call);
  });
  const named: Forge = {
    ...forge,
    namedByOperator: reach.mayBePrivate(webUrl),
    serves: made.serves,
    ...(made.issuedTokens !== undefined && { issuedTokens: made.issuedTokens }),
    credentials: (address, signal) =>
      isInTheClear(address) && !reach.mayBePrivate(address.cloneUrl)
        ? Promise.reject(notEncrypted(address))
        : forge.credentials(address, signal),
  };
  return { settings, forge: named, isOwn: true };
}

const isInTheClear = ({ cloneUrl }: RepositoryAddress): boolean => cloneUrl.startsWith("http:");

/** The operator may have taken the host off the list since the connection was made. */
function notEncrypted({ cloneUrl }: RepositoryAddress): SessionError {
  return new SessionError({
    code: "repository_access_denied",
    reason: `The repository's address ${cloneUrl} is not encrypted: the network could read the credential.`,
    retryable: false,
    remedy:
      "Connect the address that begins with https://. The operator of this server can allow the host with OFFSTAGE_FORGE_HOSTS.",
  });
}

function notOpened(webUrl: string, cause: Error): SessionError {
  return new SessionError(
    {
      code: "secret_unavailable",
      reason: `The credential of the connection with ${webUrl} can't be opened: ${cause.message}.`,
      retryable: true,
      remedy: "Put the master key back, or set the connection's credential again, then retry.",
    },
    { cause },
  );
}

/**
 * The forge with each of its methods called by `around`, those included that adapters get later, and those of objects in it, as
 * `feedback`.
 */
function everyCall<Methods extends object>(methods: Methods, around: (call: () => unknown) => unknown): Methods {
  const wrap = (value: unknown): unknown => {
    if (typeof value === "function") {
      return (...given: unknown[]) => around(() => (value as (...all: unknown[]) => unknown)(...given));
    }
    return typeof value === "object" && value !== null ? everyCall(value, around) : value;
  };
  const wrapped = Object.entries(methods).map(([name, value]: [string, unknown]) => [name, wrap(value)]);
  return Object.fromEntries(wrapped) as Methods;
}
