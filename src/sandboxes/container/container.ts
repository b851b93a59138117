import { messageOf, OffstageError } from "../../domain/errors.ts";
import { joinServices } from "../../lifecycle/service.ts";
import type { Logger } from "../../observability.ts";
import { giveToSandbox } from "../process/ownership.ts";
import { UidClaims, usualUids, type UidRange } from "../process/uids.ts";
import type { Sandbox, SandboxedProcess, SandboxRequest } from "../sandbox.ts";
import { createEngineApi } from "./api.ts";
import { callEngine, usualPatience, type Patience } from "./call.ts";
import { askEngine, type Engine } from "./engine.ts";
import { createMaker } from "./maker.ts";
import { optionsOf } from "./options.ts";
import { runContainer } from "./run.ts";
import type { ContainerSettings } from "./settings.ts";
import { tryContainer } from "./trial.ts";
import { createTurns, type TurnLimits } from "./turns.ts";
import { createUpkeep, usualRetries, type Retries } from "./upkeep.ts";

/** What the container sandbox needs beside its settings. */
export interface ContainerOptions {
  /** Id of this server: unique, and constant over restarts. Containers carry it in a label. */
  readonly serverId: () => Promise<string>;
  /** Folder in the server's data folder in which its processes show each other that they live. Created if missing. */
  readonly makersFolder: string;
  readonly logger?: Logger | null;
  /** User ids for sessions if the server runs as root; default: see `usualUids`. */
  readonly uids?: UidRange | null;
  readonly patience?: Patience;
  readonly retries?: Retries;
  /** Limits on concurrent starts, and separately on concurrent removals. */
  readonly turns?: TurnLimits;
}

/** Default limits of concurrent starts and removals. Each start occupies about one core for a fifth of a second. */
const usualTurns: TurnLimits = { atOnce: 8, waiting: 256, waitMs: 60_000 };

/** Runtimes that run a container's processes on the machine's own kernel; null: the engine's default runtime. */
const sameKernel: ReadonlySet<string | null> = new Set([null, "runc", "crun", "io.containerd.runc.v2"]);

/**
 * Starts each command in a container of its own, by Docker's API (https://docs.docker.com/reference/api/engine/): a
 * read-only root image, no network, no capabilities, no new privileges, limited by the engine's control groups. The
 * command runs only after all of this was verified at the kernel; every call of the engine has a time limit.
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

  /** The engine's properties, asked for once; asked again after a failure. */
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

  /** @throws OffstageError or the engine's error if the engine does not answer */
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
        // Check again after a failure: it may have been fixed.
        if (problem !== null) known = null;
      }
      return problem;
    },
    imageId,
    start,
    makeWritable,
    giveBack,
    upkeep: joinServices([upkeep.sweeps, ...(process.getuid?.() === 0 ? [claims.upkeep] : [])]),
  };
}
