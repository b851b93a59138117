import { randomBytes, randomInt } from "node:crypto";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { mkdir } from "node:fs/promises";
import { createServer, type AddressInfo, type Server } from "node:net";
import { join } from "node:path";
import { createClient, type Client } from "../src/client.ts";
import { callApi } from "./call.ts";
import { startServerProcess, type ServerProcess } from "./server-process.ts";
import { adminKey, type World } from "./world.ts";

/** API nodes and workers as processes of their own, which share the database and nothing else. */
export interface Fleet {
  /** Settings that every node has. */
  readonly shared: Readonly<Record<string, string>>;
  /** Of the node with this number, around. */
  api(index: number): Client;
  /** One call of the first node's API by its path. @throws Error with the answer's sentence */
  // oxlint-disable-next-line typescript/no-explicit-any -- what a test expects of a body is the test's to say
  call(path: string, body?: unknown): Promise<any>;
  /** A worker with a folder of its own; started again under the same name it has that folder again. */
  startWorker(name: string, variables?: Record<string, string>): Promise<ServerProcess>;
  close(): Promise<void>;
}

/** @param options.apis how many API nodes */
export async function startFleet(
  world: World,
  options: { readonly apis: number; readonly variables?: Record<string, string> },
): Promise<Fleet> {
  const nodes: ServerProcess[] = [];
  const clients: Client[] = [];
  const ports = await freePorts(options.apis);
  const shared = {
    OFFSTAGE_DEFAULT_AGENT: "basic:scripted",
    OFFSTAGE_MASTER_KEY: randomBytes(32).toString("base64"),
    OFFSTAGE_PUBLIC_URL: `http://127.0.0.1:${ports[0]}`,
    ...options.variables,
  };

  async function startNode(command: "api" | "worker", name: string, variables: Record<string, string>) {
    const data = join(world.data, name);
    await mkdir(data, { recursive: true });
    const node = await startServerProcess(world, { ...variables, OFFSTAGE_DATA: data }, command);
    nodes.push(node);
    return node;
  }

  for (const [index, port] of ports.entries()) {
    await startNode("api", `api-${index}`, { ...shared, OFFSTAGE_PORT: String(port) });
    clients.push(createClient({ baseUrl: `http://127.0.0.1:${port}`, key: adminKey }));
  }
  return {
    shared,
    api: (index) => clients[index % clients.length] as Client,
    call: (path, body) => callApi(`http://127.0.0.1:${ports[0]}`, path, body),
    startWorker: (name, variables) => startNode("worker", name, { ...shared, ...variables }),
    async close() {
      for (const node of nodes) await node.kill("SIGKILL");
    },
  };
}

/** Held all at once, so that they are different ones; none that the kernel gives to others before they are used. */
export async function freePorts(count: number): Promise<number[]> {
  const held: Server[] = [];
  while (held.length < count) {
    const server = createServer().listen(portToTry(), "127.0.0.1");
    // Another process may have it.
    await once(server, "listening").then(
      () => held.push(server),
      () => undefined,
    );
  }
  const ports = held.map((server) => (server.address() as AddressInfo).port);
  await Promise.all(held.map((server) => new Promise((resolve) => server.close(resolve))));
  return ports;
}

/** A random port below those that the kernel gives to whoever connects, or listens on any; 0, that is any, if there are few. */
function portToTry(): number {
  const lowest = 10_000;
  const given = firstGivenPort();
  return given >= lowest + 1_000 ? randomInt(lowest, given) : 0;
}

function firstGivenPort(): number {
  try {
    return Number.parseInt(readFileSync("/proc/sys/net/ipv4/ip_local_port_range", "utf8"), 10);
  } catch {
    return 32_768;
  }
}
