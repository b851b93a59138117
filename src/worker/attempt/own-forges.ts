import type { RepositoryAddress } from "../../domain/repositories/repository.ts";
import type { ClaimedSession } from "../../store/queue/claims.ts";
import type { AttemptServices } from "./attempt.ts";

/**
 * The services with the forges of the session's organization, and with a mask that knows the credentials of its connections. Before
 * each use of a credential the connections are looked at again, so that a token that was replaced while an agent worked is the one
 * that pushes.
 */
export async function withOwnForges<Services extends Pick<AttemptServices, "forgesOf" | "forgeOf" | "mask">>(
  services: Services,
  { organizationId }: Pick<ClaimedSession, "organizationId">,
): Promise<Services> {
  let latest = await services.forgesOf(organizationId);
  return {
    ...services,
    mask: services.mask.with(latest.secrets),
    repositoryKeyOf: latest.keyOf,
    forgeOf: (address: RepositoryAddress) => ({
      ...latest.forgeOf(address),
      credentials: async (of: RepositoryAddress, signal: AbortSignal) => {
        latest = await services.forgesOf(organizationId);
        // A fork is outside the address that the connection serves.
        return latest.forgeOf(address).credentials(of, signal);
      },
    }),
  };
}
