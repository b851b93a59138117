import { allowsRepository } from "../../domain/repositories/repository-pattern.ts";
import { isAddressProblem, parseRepositoryUrl, type RepositoryAddress } from "../../domain/repositories/repository.ts";
import { allowedRepositories } from "../../store/people/organizations.ts";
import { isConnected } from "../../store/repositories/repositories.ts";
import type { RemoteRepository } from "../git/remote-repository.ts";
import type { Attempt, AttemptServices } from "./attempt.ts";

type Services = Pick<AttemptServices, "database" | "forgeOf" | "repositoryKeyOf">;

/**
 * How the submodules of a session's repository are reached. Anyone who may push to the repository can write
 * `.gitmodules`, so an address in it alone never makes the server use its credentials, a forge's token or its ssh keys:
 * they are used only if the submodule is connected to the organization, or has the repository's owner on the
 * repository's forge. Any other submodule is fetched without credentials.
 * @param superproject the session's repository, also for submodules of submodules
 */
export function submoduleAccess(
  { session, signal }: Pick<Attempt, "session" | "signal">,
  { database, forgeOf, repositoryKeyOf }: Services,
  superproject: RepositoryAddress,
): NonNullable<RemoteRepository["submodule"]> {
  const { organizationId } = session;
  return async (written) => {
    const address = parseRepositoryUrl(written);
    if (isAddressProblem(address)) return { problem: `its address ${address.problem}` };
    if (address.local && !superproject.local) return { problem: "its address is a path on the server's machine" };
    // How it is written does not count: it is reached by ssh only if the session's repository is, which was looked at before.
    const { patterns } = await allowedRepositories(database, organizationId);
    if (!allowsRepository(patterns, address)) {
      return { problem: "it is not on the list of repositories that this organization allows" };
    }
    const isTrusted =
      haveSameOwner(superproject, address, { forgeOf, repositoryKeyOf }) ||
      (await isConnected(database, organizationId, repositoryKeyOf(address)));
    const forge = forgeOf(address);
    const url = urlFor(address, forge.webUrl, isTrusted && isSsh(superproject) && address.host === superproject.host);
    const reached = parseRepositoryUrl(url);
    if (isAddressProblem(reached)) return { problem: `its address ${reached.problem}` };
    return {
      url: reached.cloneUrl,
      named: forge.webUrl !== null && forge.namedByOperator !== false,
      credentials: () => (isTrusted ? forge.credentials(reached, signal) : Promise.resolve(null)),
      hint: isTrusted
        ? ""
        : "It was asked for without credentials: connect it as a repository of the organization to have the server use its own.",
    };
  };
}

function isSsh({ cloneUrl, local }: RepositoryAddress): boolean {
  return !local && !/^https?:/u.test(cloneUrl);
}

/** Whether both are on one server and one owner's, which may be a group in a group. Case counts only if the server counts it. */
export function haveSameOwner(
  one: RepositoryAddress,
  other: RepositoryAddress,
  { forgeOf, repositoryKeyOf }: Pick<Services, "forgeOf" | "repositoryKeyOf">,
): boolean {
  if (one.local || other.local) return one.local && other.local;
  const ownerOf = (address: RepositoryAddress): string => repositoryKeyOf(address).replace(/\/[^/]*$/u, "");
  const forge = forgeOf(one);
  const isOneServer = forge.webUrl === null ? one.host === other.host : forge.id === forgeOf(other).id;
  return isOneServer && one.path.includes("/") && ownerOf(one) === ownerOf(other);
}

/** By ssh only with the server's keys; otherwise by https, also if the address is an ssh address of the same server. */
function urlFor(address: RepositoryAddress, webUrl: string | null, keepsSsh: boolean): string {
  if (keepsSsh || !isSsh(address)) return address.cloneUrl;
  const origin = webUrl === null ? `https://${address.host?.replace(/:\d+$/u, "") ?? ""}` : new URL(webUrl).origin;
  return `${origin}/${address.path}`;
}
