/** Fields used of what Azure DevOps says of a connection: its user, who is known by an account or by a name. */
interface ConnectionData {
  readonly authenticatedUser?: {
    readonly id?: unknown;
    readonly providerDisplayName?: unknown;
    /** The display name that the user chose instead. */
    readonly customDisplayName?: unknown;
    readonly properties?: { readonly Account?: { readonly $value?: unknown } };
  };
}

/** The id that Azure DevOps gives to a request without a valid token. */
const anonymous = "aaaaaaaa-aaaa-aaaa-aaaa-aaaaaaaaaaaa";

/** The id of the user in an answer of `_apis/connectionData`. */
export function userIdOf(body: unknown): unknown {
  return ((body ?? {}) as ConnectionData).authenticatedUser?.id;
}

/** The name of the user in an answer of `_apis/connectionData`; null if there is none. */
export function accountOf(body: unknown): string | null {
  const { authenticatedUser: user } = (body ?? {}) as ConnectionData;
  if (typeof user?.id !== "string" || user.id === anonymous) return null;
  const names = [user.properties?.Account?.$value, user.providerDisplayName, user.id];
  return names.find((name): name is string => typeof name === "string" && name !== "") ?? null;
}

/** By which name people see the user in an answer of `_apis/connectionData`; null if it has none. */
export function shownNameOf(body: unknown): string | null {
  const { authenticatedUser: user } = (body ?? {}) as ConnectionData;
  const names = [user?.customDisplayName, user?.providerDisplayName];
  return names.find((name): name is string => typeof name === "string" && name !== "") ?? null;
}
