import { createLiveMask } from "../../domain/masking/live-mask.ts";
import type { RepositoryAddress } from "../../domain/repositories/repository.ts";
import type { Forge } from "../../forges/forge.ts";
import type { ClaimedSession } from "../../store/queue/claims.ts";
import type { AttemptServices } from "./attempt.ts";

/**
 * The services with the forges of the session's organization, and with a mask that knows the credentials of its
 * connections. Before each call of a forge the connections are read again, so that a token that was replaced while an
 * agent worked is used to read, push and open the pull request. The mask learns of it at once, and keeps those before.
 */
export async function withOwnForges<Services extends Pick<AttemptServices, "forgesOf" | "forgeOf" | "mask">>(
  services: Services,
  { organizationId }: Pick<ClaimedSession, "organizationId">,
): Promise<Services> {
  let latest = await services.forgesOf(organizationId);
  async function refresh(): Promise<void> {
    latest = await services.forgesOf(organizationId);
  }
  return {
    ...services,
    mask: createLiveMask(services.mask, () => latest.secrets()),
    repositoryKeyOf: latest.keyOf,
    // Whatever address a call is about, as that of a fork, the forge is the one that serves the repository.
    forgeOf: (address: RepositoryAddress) => refreshed(refresh, () => latest.forgeOf(address)),
  };
}

/** All of a forge: facts as of the attempt's beginning, and calls by its current connection. */
const members: Readonly<Record<keyof Forge, "said" | "asked">> = {
  kind: "said",
  id: "said",
  name: "said",
  webUrl: "said",
  namedByOperator: "said",
  serves: "said",
  issuedTokens: "said",
  opensPullRequests: "said",
  pullRequestRef: "said",
  filePages: "said",
  commitPage: "said",
  within: "said",
  browse: "asked",
  credentials: "asked",
  call: "asked",
  as: "asked",
  findPullRequest: "asked",
  openPullRequest: "asked",
  readPullRequest: "asked",
  editPullRequest: "asked",
  readAccess: "asked",
  readApprovalRules: "asked",
  fork: "asked",
  feedback: "asked",
};

/** The methods, also of objects in it, each called of what `now` gives after a refresh. */
function refreshed<Methods extends object>(refresh: () => Promise<void>, now: () => Methods): Methods {
  const wrap = ([name, value]: [string, unknown]): [string, unknown] => {
    if (name in members && members[name as keyof Forge] === "said") return [name, value];
    // Another forge may serve the address by then, which may have less, as plain git has no feedback.
    const current = (): unknown => (now() as Readonly<Record<string, unknown>> | null)?.[name] ?? value;
    if (typeof value === "object" && value !== null) return [name, refreshed(refresh, current as () => object)];
    if (typeof value !== "function") return [name, value];
    const call = async (...given: unknown[]): Promise<unknown> => {
      await refresh();
      return (current() as (...all: unknown[]) => unknown)(...given);
    };
    return [name, call];
  };
  return Object.fromEntries(Object.entries(now()).map(wrap)) as Methods;
}
