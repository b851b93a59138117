import { spawn, spawnSync, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import type { DatabaseLink } from "./database-link.ts";

/** Addresses that are used for nothing else (RFC 2544, benchmarking). */
const network = "198.18";
const port = 5432;

/** Whether this machine lets us make network namespaces: as root, with iproute2. */
export function canCutNetworks(): boolean {
  const name = namespaceOf(0);
  if (process.getuid?.() !== 0 || spawnSync("ip", ["netns", "add", name], { stdio: "ignore" }).status !== 0)
    return false;
  return spawnSync("ip", ["netns", "delete", name], { stdio: "ignore" }).status === 0;
}

const namespaceOf = (index: number): string => `offstage-${process.pid}-${index}`;

/** @throws Error with what it said */
function ip(...command: string[]): void {
  const { status, stderr } = spawnSync("ip", command, { encoding: "utf8" });
  if (status !== 0) throw new Error(`ip ${command.join(" ")}: ${stderr}`);
}

/**
 * One node's way to the database over a network of its own: two ends of a cable, of which the far one is in a
 * namespace, where all that comes is handed on to PostgreSQL. Cut, the kernel drops every packet: no end gets an error,
 * connections last until TCP times out, and new ones get no answer.
 * @param index from 0, of its own for each link of a process
 * @param server folder of PostgreSQL's own socket
 */
export async function createNetworkLink(index: number, server: string): Promise<DatabaseLink> {
  const namespace = namespaceOf(index);
  const [near, far] = [`offn${index}`, `offf${index}`];
  const [nearAddress, farAddress] = [`${network}.${index}.1`, `${network}.${index}.2`];
  ip("netns", "add", namespace);
  let handingOn: ChildProcess | null = null;
  async function close(): Promise<void> {
    const exited = handingOn === null ? null : once(handingOn, "exit");
    handingOn?.kill("SIGKILL");
    await exited;
    // The cable goes with it.
    ip("netns", "delete", namespace);
  }
  try {
    ip("link", "add", near, "type", "veth", "peer", "name", far, "netns", namespace);
    ip("address", "add", `${nearAddress}/30`, "dev", near);
    ip("link", "set", near, "up");
    ip("-n", namespace, "address", "add", `${farAddress}/30`, "dev", far);
    ip("-n", namespace, "link", "set", far, "up");
    handingOn = spawn(
      "ip",
      ["netns", "exec", namespace, process.execPath, "-e", handOn, farAddress, join(server, ".s.PGSQL.5432")],
      {
        stdio: ["ignore", "pipe", "inherit"],
      },
    );
    await once(handingOn.stdout as NodeJS.ReadableStream, "data");
  } catch (error) {
    await close();
    throw error;
  }
  let isCut = false;
  const set = (state: "up" | "down"): void => {
    ip("-n", namespace, "link", "set", far, state);
    isCut = state === "down";
  };
  return {
    url: `postgres://offstage@${farAddress}:${port}/postgres`,
    cut: () => set("down"),
    repair: () => set("up"),
    isCut: () => isCut,
    close,
  };
}

const handOn = `
const net = require("node:net");
const [address, socket] = process.argv.slice(1);
net.createServer((node) => {
  const server = net.connect(socket);
  for (const [from, to] of [[node, server], [server, node]]) {
    from.on("error", () => to.destroy()).on("close", () => to.destroy());
    from.pipe(to);
  }
}).listen(${port}, address, () => console.log("ready"));
`;
