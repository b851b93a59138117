import { execFile } from "node:child_process";
import { mkdir, mkdtemp, rm, symlink } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { handshakeCommand } from "../../src/sandboxes/container/handshake.ts";
import { forbiddenAddresses, requireNoNetwork, type NetworkProbe } from "../../src/sandboxes/container/network.ts";

const run = promisify(execFile);
const isRoot = process.getuid?.() === 0 && process.platform === "linux";

/** The trial itself, as the handshake runs it, in network namespaces of the test's own. */
describe.skipIf(!isRoot)("the trial of the network", () => {
  let folder = "";
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), "offstage-network-"));
    // A place without bash.
    await mkdir(join(folder, "bin"));
    await symlink(process.execPath, join(folder, "bin/node"));
  });
  afterAll(() => rm(folder, { recursive: true, force: true }));

  /** Each trial in a new namespace that was made so. */
  function within(setup: string, environment: Record<string, string> = {}) {
    const tried: NetworkProbe[] = [];
    const attempt = async (by: NetworkProbe): Promise<string[]> => {
      tried.push(by);
      const PATH = `${dirname(process.execPath)}:${process.env["PATH"]}`;
      const [, ...program] = handshakeCommand([]).Entrypoint;
      const trying = run("unshare", ["--net", "sh", "-c", `${setup}\n/bin/sh "$@"\ntrue`, "sh", ...program], {
        env: { PATH, ...environment },
      });
      trying.child.stdin?.end(`try-${by} ${forbiddenAddresses.join(" ")}\n`);
      return (await trying).stdout.split("\n");
    };
    return { tried, attempt };
  }

  const way = "ip link add d0 type dummy; ip address add 10.0.0.1/8 dev d0; ip link set d0 up";
  const networks: [what: string, setup: string, words: RegExp][] = [
    [
      "there is an address of the internet on loopback",
      "ip link set lo up; ip address add 1.1.1.1/32 dev lo",
      /1\.1\.1\.1 port 443 ended with "(?:Connection refused|ECONNREFUSED)"/u,
    ],
    [
      "there is a route without an answer",
      `${way}; ip route add unreachable 1.1.1.1; ip route add default via 10.0.0.2`,
      /1\.1\.1\.1 port 443 ended with "(?:No route to host|EHOSTUNREACH)"/u,
    ],
    [
      "only the address of a cloud's credentials can be reached",
      "ip link set lo up; ip address add 169.254.169.254/32 dev lo",
      /169\.254\.169\.254 port 80 ended with "(?:Connection refused|ECONNREFUSED)"/u,
    ],
    [
      "only the newer family of addresses has a network",
      "sysctl -qw net.ipv6.conf.lo.disable_ipv6=0; ip link set lo up; ip address add 2606:4700:4700::1111/128 dev lo nodad",
      /2606:4700:4700::1111 port 443 ended with "(?:Connection refused|ECONNREFUSED)"/u,
    ],
    [
      "connections are forbidden by a rule, and not for want of a way",
      `${way}; ip route add prohibit 1.1.1.1`,
      /1\.1\.1\.1 port 443 ended with "(?:Permission denied|EACCES)"/u,
    ],
  ];

  describe.each([
    ["bash", {}, ["bash"]],
    ["node, where there is no bash", "no bash", ["bash", "node"]],
  ] as const)("by %s", (_, where, expected) => {
    const environment = (): Record<string, string> => (where === "no bash" ? { PATH: join(folder, "bin") } : {});
    const inside = (setup: string) => {
      // What sets the namespace up needs its programs.
      const path = environment()["PATH"];
      return within(path === undefined ? setup : `${setup}\nPATH=${path}`);
    };

    it.each([
      ["there is nothing", "true"],
      ["there is loopback", "ip link set lo up"],
    ])("finds none where %s", async (_what, setup) => {
      const { tried, attempt } = inside(setup);
      await requireNoNetwork(attempt);
      expect(tried).toEqual(expected);
    });

    it.each(networks)("finds one if %s", async (_what, setup, words) => {
      const { attempt } = inside(setup);
      await expect(requireNoNetwork(attempt)).rejects.toThrow(words);
    });
  });

  it("is not led astray by variables of the command's environment", async () => {
    const refusal = "/dev/tcp/1.1.1.1/443: Network is unreachable";
    const { attempt } = within("ip link set lo up; ip address add 1.1.1.1/32 dev lo", {
      BASH_ENV: "/dev/stdin",
      "BASH_FUNC_echo%%": `() { builtin echo "${refusal}"; }`,
      NODE_OPTIONS: "--require /nowhere",
      LC_ALL: "de_DE.UTF-8",
    });
    await expect(requireNoNetwork(attempt)).rejects.toThrow('"Connection refused"');
  });

  it.each([
    ["nothing could be tried", []],
    ["only some of it was tried", ["bash: line 1: /dev/tcp/1.1.1.1/443: Network is unreachable"]],
    ["something else was said", ["sh: node: not found", "", "/dev/tcp/: "]],
  ])("believes nothing where %s", async (_, lines) => {
    await expect(requireNoNetwork(() => Promise.resolve(lines))).rejects.toThrow(
      "no program in it could probe the network",
    );
  });

  it("asks node if bash was built without connections", async () => {
    const said = (by: NetworkProbe): string[] =>
      ["1.1.1.1/443", "169.254.169.254/80", "2606:4700:4700::1111/443"].map(
        (at) => `/dev/tcp/${at}: ${by === "bash" ? "No such file or directory" : "ENETUNREACH"}`,
      );
    await requireNoNetwork((by) => Promise.resolve(said(by)));
    await expect(requireNoNetwork(() => Promise.resolve(said("bash")))).rejects.toThrow("No such file");
  });
});
