import { OffstageError } from "../../domain/errors.ts";
import type { Logger } from "../../observability.ts";
import { giveToSandbox } from "../process/ownership.ts";
import { UidClaims, usualUids, type UidRange } from "../process/uids.ts";
import type { Sandbox, SandboxedProcess, SandboxRequest } from "../sandbox.ts";
import { createEngineApi } from "./api.ts";
import { callEngine, usualPatience, type Patience } from "./call.ts";
import { askEngine, messageOf, type Engine } from "./engine.ts";
import { createMaker } from "./maker.ts";
import { optionsOf } from "./options.ts";
import { runContainer } from "./run.ts";
import type { ContainerSettings } from "./settings.ts";
import { tryContainer } from "./trial.ts";
import { createTurns, type TurnLimits } from "./turns.ts";
import { createUpkeep, usualRetries, type Retries } from "./upkeep.ts";

export interface ContainerOptions {
  /** The same over restarts of the server, and no other's: by it is known whose a container is. */
  readonly serverId: () => Promise<string>;
  /** In the server's data folder: there its processes show each other that they live. Made if it is not there. */
  readonly makersFolder: string;
  readonly logger?: Logger | null;
  /** Users of sessions under root; without it those that nobody else has. */
  readonly uids?: UidRange | null;
  readonly patience?: Patience;
  readonly retries?: Retries;
  /** Of starts and of removals, each. */
  readonly turns?: TurnLimits;
}

/**
 * What an engine is given to do at once. Each start keeps about one core of the machine busy for a fifth of a second; who
 * waits longer than a minute would rather be told.
 */
const usualTurns: TurnLimits = { atOnce: 8, waiting: 256, waitMs: 60_000 };

/** Those that run a container's processes on the machine's own kernel, as an engine's own usual one does. */
const sameKernel: ReadonlySet<string | null> = new Set([null, "runc", "crun", "io.containerd.runc.v2"]);

/**
 * A container for each start, by Docker's API (https://docs.docker.com/reference/api/engine/): its own root image,
 * read-only, without a network, capabilities or new privileges, bound by the engine's control groups. Its command is not
 * run before the kernel was seen to have all that; no call of the engine is waited for without an end.
 */
export function createContainerSandbox(settings: ContainerSettings, options: ContainerOptions): Sandbox {
  const { serverId, logger = null, patience = usualPatience, retries = usualRetries, turns = usualTurns } = options;
  const claims = new UidClaims(options.uids ?? usualUids());
  const makeWritable = (directory: string): Promise<void> => giveToSandbox(directory, claims);
  const giveBack = (folder: string): Promise<void> => claims.giveBack(folder);
  const api = createEngineApi(settings.socket);
  const maker = createMaker(options.makersFolder);
  const removals = createTurns("remove a container", turns);
  const starts = createTurns("make a container", turns);
  const upkeep = createUpkeep({ engine: api, serverId, maker, removals, patience, retries, logger });
  let asked: Promise<Engine> | null = null;
  let known: Promise<string | null> | null = null;

  function start(request: SandboxRequest): SandboxedProcess {
    request.signal.throwIfAborted();
    return runContainer({
      api,
      request,
      engine,
      options: (asking) => optionsOf(request, settings, asking),
      sameKernel: sameKernel.has(settings.runtime),
      upkeep,
      starts,
      patience,
      logger,
    });
  }

  /** What kind it is, asked once; again where it did not answer. */
  async function engine(): Promise<Engine> {
    try {
      return await (asked ??= askEngine(api, settings, patience));
    } catch (error) {
      asked = null;
      throw error;
    }
  }

  async function check(): Promise<string | null> {
    try {
      await engine();
      await upkeep.sweep();
      if ((await imageId(settings.image)) === null) {
        return `the image ${settings.image} is not on this machine: docker pull ${settings.image}, or set OFFSTAGE_CONTAINER_IMAGE`;
      }
    } catch (error) {
      if (error instanceof OffstageError) return error.message;
      return `the container engine at ${settings.socket} does not answer (${messageOf(error)}): start it, or set OFFSTAGE_CONTAINER_SOCKET`;
    }
    return tryContainer({ start, makeWritable, giveBack });
  }

  /** @throws OffstageError, or the engine's, where it does not say */
  async function imageId(image: string): Promise<string | null> {
    return callEngine({ toDo: "say whether an image is there", limitMs: patience.answerMs }, (signal) =>
      api.imageId(image, signal),
    );
  }

  return {
    kind: "container",
    isolates: true,
    keepsLimits: "kernel",
    check: async () => {
      let problem: string | null = "not known";
      try {
        problem = await (known ??= check());
      } finally {
        // Looked at again where something was wrong, which may be mended by then.
        if (problem !== null) known = null;
      }
      return problem;
    },
    imageId,
    start,
    makeWritable,
    giveBack,
    tend() {
      const stops = [upkeep.tend(), ...(process.getuid?.() === 0 ? [claims.tend()] : [])];
      return async () => {
        await Promise.all(stops.map((stop) => stop()));
      };
    },
  };
}
