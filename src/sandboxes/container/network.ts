import { ConflictError } from "../../domain/errors/errors.ts";

/**
 * Addresses that no container may reach: a host of the internet by IPv4 and by IPv6, and the metadata address of
 * clouds, which gives out credentials. Written as bash takes them after `/dev/tcp/`.
 */
export const forbiddenAddresses = ["1.1.1.1/443", "169.254.169.254/80", "2606:4700:4700::1111/443"] as const;

/** Program that tries the network: `try-network.sh` in the image's bash, or `try-network.cjs` in its Node. */
export type NetworkProbe = "bash" | "node";

/** The kernel has no route to the address: the only outcome that proves that there is no network. */
const noRoute = /^(?:Network is unreachable|ENETUNREACH)$/u;
/** The same from a kernel or namespace that does not support the address family. */
const noFamily =
  /^(?:Cannot assign requested address|EADDRNOTAVAIL|Address family not supported by protocol|EAFNOSUPPORT)$/u;

/**
 * Requires that a container has no network, by trying it. Only an immediate refusal by the kernel for lack of a route
 * counts: a connection, a refusal by another machine or a timeout means that packets left.
 * @param attempt runs one of the trials in the container, and returns its output's lines
 * @throws ConflictError that names the first reachable address, or says that nothing could be tried
 */
export async function requireNoNetwork(attempt: (by: NetworkProbe) => Promise<string[]>): Promise<void> {
  const byBash = outcomesIn(await attempt("bash"));
  // A bash built without network redirections tries to open a file of that name.
  const bashCan = byBash.size > 0 && ![...byBash.values()].includes("No such file or directory");
  const outcomes = bashCan ? byBash : outcomesIn(await attempt("node"));
  for (const address of forbiddenAddresses) {
    const outcome = outcomes.get(address);
    if (outcome === undefined) {
      throw new ConflictError(
        "the container was not started, because no program in it could probe the network: choose an image that has bash or node (OFFSTAGE_CONTAINER_IMAGE)",
      );
    }
    if (noRoute.test(outcome) || (address.includes(":") && noFamily.test(outcome))) continue;
    throw new ConflictError(
      `the container was not started, because it has a network and must have none: to connect to ${address.replace("/", " port ")} ended with ${JSON.stringify(outcome)}, but the kernel must have no route`,
    );
  }
}

/** The outcome of each address. */
function outcomesIn(lines: readonly string[]): Map<string, string> {
  return new Map(
    lines.flatMap((line): [string, string][] => {
      const [, address, outcome] = /\/dev\/tcp\/(\S+): (.*)$/u.exec(line) ?? [];
      return address === undefined || outcome === undefined ? [] : [[address, outcome]];
    }),
  );
}
