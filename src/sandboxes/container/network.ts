import { ConflictError } from "../../domain/errors.ts";

/**
 * What no container may reach: a host of the internet by both families of addresses, and the address at which clouds tell
 * machines their credentials. Written as bash takes them after `/dev/tcp/`.
 */
const forbidden = ["1.1.1.1/443", "169.254.169.254/80", "2606:4700:4700::1111/443"] as const;

/** By bash itself, without another process: an address that can't be reached is an error that it tells. */
const bashTrial = `exec 2>&1
for at; do if : 3<> "/dev/tcp/$at"; then echo "/dev/tcp/$at: connected"; fi; done`;

/** The same by node, for an image without a bash that can: it takes thirty times as long. */
const nodeTrial = `for (const at of process.argv.slice(1)) {
  const [host, port] = at.split("/");
  const tell = (said) => { console.log("/dev/tcp/" + at + ": " + said); socket.destroy(); };
  const socket = require("node:net").connect({ host, port: Number(port) }, () => tell("connected"));
  socket.on("error", ({ code }) => tell(code));
}`;

const tellNothing = "< /dev/null 2> /dev/null";

/**
 * Lines of a shell that try to connect to each forbidden address and tell what came of it. No input is read, and no variable
 * of the command's environment says what bash or node run.
 */
export const networkTrials = {
  bash: `LD_PRELOAD= LC_ALL=C bash -p -c '${bashTrial}' bash ${forbidden.join(" ")} ${tellNothing}`,
  node: `LD_PRELOAD= NODE_OPTIONS= node -e '${nodeTrial}' ${forbidden.join(" ")} ${tellNothing}`,
} as const;
export type NetworkTrial = keyof typeof networkTrials;

/** The kernel has no way to any such address: the only answer that shows that there is no network. */
const noWay = /^(?:Network is unreachable|ENETUNREACH)$/u;
/** The same of a kernel, or of a namespace, that has no such addresses at all. */
const noFamily =
  /^(?:Cannot assign requested address|EADDRNOTAVAIL|Address family not supported by protocol|EAFNOSUPPORT)$/u;

/**
 * Holds a container to having no network, by trying it. Only a kernel that refuses at once, for want of a way, is believed: what
 * was answered, refused by another machine, or lost on its way, went out.
 * @param attempt runs one of the trials in the container, and gives the lines that it said
 * @throws ConflictError that names the first address that is not out of reach, or says that nothing could be tried
 */
export async function requireNoNetwork(attempt: (by: NetworkTrial) => Promise<string[]>): Promise<void> {
  const byBash = outcomesIn(await attempt("bash"));
  // A bash that was built without connections looks for a file of that name.
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

/** What came of each address, by the address. */
function outcomesIn(lines: readonly string[]): Map<string, string> {
  return new Map(
    lines.flatMap((line): [string, string][] => {
      const [, address, said] = /\/dev\/tcp\/(\S+): (.*)$/u.exec(line) ?? [];
      return address === undefined || said === undefined ? [] : [[address, said]];
    }),
  );
}
