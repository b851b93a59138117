import { ConflictError } from "../../domain/errors.ts";

/**
 * Addresses that no container may reach: a host of the internet by IPv4 and by IPv6, and the metadata address of
 * clouds, which gives out credentials. Written as bash takes them after `/dev/tcp/`.
 */
const forbidden = ["1.1.1.1/443", "169.254.169.254/80", "2606:4700:4700::1111/443"] as const;

/** By bash alone, without another process: bash prints an error if an address can't be reached. */
const bashTrial = `exec 2>&1
for at; do if : 3<> "/dev/tcp/$at"; then echo "/dev/tcp/$at: connected"; fi; done`;

/** The same by Node, if the image's bash can't connect: takes thirty times as long. */
const nodeTrial = `for (const at of process.argv.slice(1)) {
  const [host, port] = at.split("/");
  const tell = (said) => { console.log("/dev/tcp/" + at + ": " + said); socket.destroy(); };
  const socket = require("node:net").connect({ host, port: Number(port) }, () => tell("connected"));
  socket.on("error", ({ code }) => tell(code));
}`;

const tellNothing = "< /dev/null 2> /dev/null";

/**
 * Shell code that tries to connect to each forbidden address and prints the outcome. It reads no input, and no variable
 * of the command's environment can change what bash or Node execute.
 */
export const networkTrials = {
  bash: `LD_PRELOAD= LC_ALL=C bash -p -c '${bashTrial}' bash ${forbidden.join(" ")} ${tellNothing}`,
  node: `LD_PRELOAD= NODE_OPTIONS= node -e '${nodeTrial}' ${forbidden.join(" ")} ${tellNothing}`,
} as const;
/** Program that tries the network. */
export type NetworkTrial = keyof typeof networkTrials;

/** The kernel has no route to the address: the only outcome that proves that there is no network. */
const noWay = /^(?:Network is unreachable|ENETUNREACH)$/u;
/** The same from a kernel or namespace that does not support the address family. */
const noFamily =
  /^(?:Cannot assign requested address|EADDRNOTAVAIL|Address family not supported by protocol|EAFNOSUPPORT)$/u;

/**
 * Requires that a container has no network, by trying it. Only an immediate refusal by the kernel for lack of a route
 * counts: a connection, a refusal by another machine or a timeout means that packets left.
 * @param attempt runs one of the trials in the container, and returns its output's lines
 * @throws ConflictError that names the first reachable address, or says that nothing could be tried
 */
export async function requireNoNetwork(attempt: (by: NetworkTrial) => Promise<string[]>): Promise<void> {
  const byBash = outcomesIn(await attempt("bash"));
  // A bash built without network redirections tries to open a file of that name.
  const bashCan = byBash.size > 0 && ![...byBash.values()].includes("No such file or directory");
  const outcomes = bashCan ? byBash : outcomesIn(await attempt("node"));
  for (const address of forbidden) {
    const said = outcomes.get(address);
    if (said === undefined) {
      throw new ConflictError(
        "the container was not started, because nothing in it could try the network: choose an image that has bash or node (OFFSTAGE_CONTAINER_IMAGE)",
      );
    }
    if (noWay.test(said) || (address.includes(":") && noFamily.test(said))) continue;
    throw new ConflictError(
      `the container was not started, because it has a network and must have none: to connect to ${address.replace("/", " port ")} ended with ${JSON.stringify(said)}, where the kernel must know no way`,
    );
  }
}

/** The outcome of each address. */
function outcomesIn(lines: readonly string[]): Map<string, string> {
  return new Map(
    lines.flatMap((line): [string, string][] => {
      const [, address, said] = /\/dev\/tcp\/(\S+): (.*)$/u.exec(line) ?? [];
      return address === undefined || said === undefined ? [] : [[address, said]];
    }),
  );
}
