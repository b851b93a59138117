import type { RepositoryAddress } from "../../domain/repositories/repository.ts";
import type { Person } from "../feedback/feedback.ts";
import type { ForgeAnswer } from "../http/http.ts";
import { refusedBy } from "../http/refusal.ts";
import { gitNamespace, permissions, repositoryToken } from "./access.ts";
import { identitiesUrl, type AzureApi, type AzureSettings } from "./api.ts";
import { readRepository } from "./repository.ts";

/** Fields used of an identity (https://learn.microsoft.com/rest/api/azure/devops/ims/identities/read-identities). */
interface Identity {
  readonly id?: string;
  /** By which permissions name it, as `Microsoft.IdentityModel.Claims.ClaimsIdentity;…`. */
  readonly descriptor?: string;
  readonly isActive?: boolean;
  readonly properties?: Readonly<Record<"Account" | "Mail", { readonly $value?: unknown } | undefined>>;
}

/** Fields used of an access control list (https://learn.microsoft.com/rest/api/azure/devops/security/access-control-lists/query). */
interface AccessControlList {
  readonly acesDictionary?: Readonly<
    Record<
      string,
      {
        readonly extendedInfo?: { readonly effectiveAllow?: number; readonly effectiveDeny?: number };
      }
    >
  >;
}

const uuid = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/iu;

/**
 * Whether a person may contribute to a repository, by the permissions that Azure DevOps computes of all groups for it.
 * @param person by the id that deliveries and comments have, or by the unique name alone, as deliveries of work items name people
 * @returns null if it does not show it to the token: that takes the scope Identity (Read), and the right to see
 *   permissions
 * @throws SessionError if the token may not see the repository
 */
export async function mayWriteOnAzure(
  api: AzureApi,
  settings: AzureSettings,
  address: RepositoryAddress,
  person: Person,
  signal: AbortSignal,
): Promise<boolean | null> {
  const repository = await readRepository(api, address, signal);
  // No account has such an id.
  if (person.id !== "" && !uuid.test(person.id)) return false;
  const { collection } = api.repositoryOf(address);
  const by =
    person.id === ""
      ? `searchFilter=General&filterValue=${encodeURIComponent(person.login)}`
      : `identityIds=${encodeURIComponent(person.id)}`;
  const found = await listOf(api, identitiesUrl(settings, collection, by), signal);
  if (found === null) return null;
  const identity = onlyOne(found as readonly (Identity | null)[], person);
  if (identity?.descriptor === undefined || identity.isActive === false) return false;
  const query = new URLSearchParams({
    token: repositoryToken(repository),
    descriptors: identity.descriptor,
    includeExtendedInfo: "true",
  });
  const path = `/_apis/accesscontrollists/${gitNamespace}?${query.toString()}`;
  const lists = await listOf(api, api.urlOf(collection, path), signal);
  const [list] = (lists ?? []) as readonly AccessControlList[];
  const { extendedInfo } = Object.values(list?.acesDictionary ?? {})[0] ?? {};
  if (extendedInfo === undefined) return null;
  const { effectiveAllow = 0, effectiveDeny = 0 } = extendedInfo;
  return (effectiveAllow & permissions.contribute) !== 0 && (effectiveDeny & permissions.contribute) === 0;
}

/**
 * Of several accounts that a search finds by a part of their names, the one with the unique name; none if that is
 * ambiguous.
 */
function onlyOne(found: readonly (Identity | null)[], { id, login }: Person): Identity | null {
  if (id !== "") return found[0] ?? null;
  const wanted = login.toLowerCase();
  const isNamedSo = (identity: Identity | null): boolean =>
    [identity?.properties?.Account, identity?.properties?.Mail].some(
      (name) => typeof name?.$value === "string" && name.$value.toLowerCase() === wanted,
    );
  const [one = null, ...others] = found.filter((identity) => identity?.isActive !== false && isNamedSo(identity));
  return others.length === 0 ? one : null;
}

/** The items of a list; null if the token may not ask for it. */
async function listOf(api: AzureApi, url: string, signal: AbortSignal): Promise<readonly unknown[] | null> {
  const answer: ForgeAnswer = await api.call(url, "GET", signal);
  if (answer.status === 401 || answer.status === 403) return null;
  if (answer.status !== 200) throw refusedBy(api.host, answer, "question for a person's rights");
  return Array.isArray(answer.body) ? answer.body : null;
}
