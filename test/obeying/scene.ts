import { randomInt } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import { rm } from "node:fs/promises";
import { connect } from "node:net";
import type { Client } from "../../src/client.ts";
import { callApi } from "../call.ts";
import { freePorts } from "../fleet.ts";
import { DidNotRunError } from "../sandboxes/did-run.ts";
import { uniqueMark } from "../sandboxes/sandbox-folders.ts";
import { startServerProcess, type ServerProcess } from "../server-process.ts";
import { waitFor } from "../wait-for.ts";
import { createWorld, type World } from "../world.ts";
import { plantCanaries, type Canaries } from "./canaries.ts";
import { obey } from "./model.ts";
import { attemptIn, type Attempt } from "./orders.ts";

/** Offstage as an operator runs it, with everything around it that an agent could want. */
export interface Scene {
  /** False in the open world, in which the same attempts are made without the boundary. */
  readonly sealed: boolean;
  readonly world: World;
  readonly client: Client;
  readonly server: ServerProcess;
  readonly canaries: Canaries;
  /** Another session, of another repository, that runs all the while. */
  readonly neighbour: Neighbour;
  /** A random id for one attempt at a goal. */
  orderId(goal: string): string;
  /** What the attempt of this id printed, as it came to the model; null if no shell ran it to its end. */
  attempt(orderId: string): Attempt | null;
  /** In the open world: the mistake that the boundary makes up for. Nothing in the sealed one. */
  inOpen(text: string): string;
  /** In the sealed world: more of the machine's own places, which the open one leaves alone. */
  inSealed(text: string): string;
  /** A number that nothing else on the machine has: for what an attempt leaves. */
  markOf(name: string): string;
  /** A port of the machine to which a visitor connects again and again. */
  readonly doorPort: number;
  call(path: string, body?: unknown): ReturnType<typeof callApi>;
  close(): Promise<void>;
}

export interface Neighbour {
  readonly sessionId: string;
  /** Name and value of a secret that only this session has. */
  readonly secretName: string;
  readonly secret: string;
  /** What stands in the files that it made, and in a file of its repository. */
  readonly content: string;
  readonly workspaceFile: string;
  readonly homeFile: string;
}

/**
 * Starts a world. The open one has no sandbox; what else is open there is each goal's own to say.
 * @param variables settings of the server, in both worlds
 */
export async function startScene(sealed: boolean, variables: Record<string, string> = {}): Promise<Scene> {
  const [world, canaries] = await Promise.all([createWorld(obey), plantCanaries()]);
  const server = await startServerProcess(world, {
    OFFSTAGE_DEFAULT_AGENT: "basic:scripted",
    OFFSTAGE_CONCURRENCY: "3",
    OFFSTAGE_LEASE_SECONDS: "30",
    ANTHROPIC_API_KEY: "anthropic-key-that-must-not-leak",
    ANTHROPIC_BASE_URL: world.model.url,
    // The test's own forge, models and canaries are all on loopback, which stays refused under any preset.
    OFFSTAGE_EGRESS: "open",
    ...variables,
    ...(!sealed && { OFFSTAGE_SANDBOX: "none" }),
  });
  const call = (path: string, body?: unknown) => callApi(server.url, path, body);
  const neighbour = await settleNeighbour(world, server.client, call).catch(async (error: unknown) => {
    await server.kill("SIGKILL");
    await world.close();
    await canaries.close();
    throw error;
  });
  const visitor = await startVisitor();
  const marks = new Map<string, string>();
  const markOf = (name: string): string => {
    const mark = marks.get(name) ?? uniqueMark();
    marks.set(name, mark);
    return mark;
  };
  return {
    sealed,
    world,
    client: server.client,
    server,
    canaries,
    neighbour,
    orderId: (goal) => `${goal}.${randomInt(1_000_000_000)}`,
    attempt(orderId) {
      for (const { conversation } of world.model.requests.toReversed()) {
        const found = attemptIn(conversation.everything, orderId);
        if (found !== null) return found;
      }
      return null;
    },
    inOpen: (text) => (sealed ? "" : text),
    inSealed: (text) => (sealed ? text : ""),
    markOf,
    doorPort: visitor.port,
    call,
    async close() {
      visitor.stop();
      await server.kill("SIGTERM");
      await removeLeftovers(marks);
      await world.close();
      await canaries.close();
    },
  };
}

/** For the neighbour that hangs, in ms. Another harness uses half a minute of processor time until its first command, twice at once here. */
const neighbourLimitMs = 900_000;

/** A session that made files and now waits, with a secret in the environment of all its processes. */
async function settleNeighbour(
  world: World,
  client: Client,
  call: (path: string, body?: unknown) => ReturnType<typeof callApi>,
): Promise<Neighbour> {
  const content = `neighbour-content-${randomInt(1_000_000_000)}`;
  const secret = `neighbour-secret-${randomInt(1_000_000_000)}`;
  const { url } = await world.forge.createRepository("acme", "neighbour", { "private.txt": `${content}\n` });
  const { id: repositoryId } = await call("/repository/create", { url });
  await call("/secret/create", { name: "NEIGHBOUR_TOKEN", value: secret, phases: ["agent"], repositoryId });
  // The agent ends each command after two minutes: an hour in all.
  const waits = Array.from({ length: 30 }, (_, index) => `run \`sleep ${3_000 + index}\``);
  const waiting = `neighbour waits ${randomInt(1_000_000_000)}`;
  const { id } = await client.session.create({
    prompt: `Please run \`echo ${content} > made.txt; cp made.txt $HOME/made.txt; echo "${waiting}"\` and ${waits.join(" and ")}`,
    repositories: [url],
  });
  await waitFor(
    async () => {
      const { status, failure } = await client.session.get(id);
      if (["failed", "completed", "cancelled"].includes(status)) {
        throw new DidNotRunError(`did not run: the other session is ${status}: ${failure?.reason ?? ""}`);
      }
      return world.model.requests.some(({ conversation }) => conversation.toolResults.join("").includes(waiting));
    },
    "the neighbour made its files",
    neighbourLimitMs,
  );
  const folder = `${world.data}/sessions/${id}`;
  return {
    sessionId: id,
    secretName: "NEIGHBOUR_TOKEN",
    secret,
    content,
    workspaceFile: `${folder}/workspace/neighbour/made.txt`,
    homeFile: `${folder}/home/made.txt`,
  };
}

/** Connects to one port of loopback again and again, to see whether it was opened. */
async function startVisitor(): Promise<{ readonly port: number; stop(): void }> {
  const [port = 0] = await freePorts(1);
  const timer = setInterval(() => {
    const visit = connect(port, "127.0.0.1");
    visit.on("error", () => undefined);
    visit.on("connect", () => visit.end());
  }, 50);
  return { port, stop: () => clearInterval(timer) };
}

/** What the attempts of the open world left on the machine. */
async function removeLeftovers(marks: ReadonlyMap<string, string>): Promise<void> {
  for (const mark of marks.values()) {
    await rm(`/tmp/offstage-obeying-${mark}`, { force: true });
    await rm(`/dev/shm/offstage-obeying-${mark}`, { force: true });
    for (const pid of processesNamed(`sleep ${mark}`)) process.kill(pid, "SIGKILL");
  }
}

function processesNamed(commandLine: string): number[] {
  return readdirSync("/proc")
    .filter((name) => /^\d+$/u.test(name))
    .filter((pid) => {
      try {
        return readFileSync(`/proc/${pid}/cmdline`, "utf8").replaceAll("\0", " ").trim() === commandLine;
      } catch {
        // It ended meanwhile.
        return false;
      }
    })
    .map(Number);
}
