import { messageOf, OffstageError } from "../../domain/errors/errors.ts";
import { sandboxLost } from "../../domain/errors/sandbox-lost.ts";
import { joinServices } from "../../lifecycle/service.ts";
import type { Logger } from "../../observability.ts";
import { giveToSandbox } from "../process/ownership.ts";
import { UidClaims, defaultUids, type UidRange } from "../process/uids.ts";
import type { Sandbox, SandboxedProcess, SandboxRequest } from "../sandbox.ts";
import { createEngineApi } from "./api.ts";
import { callEngine, defaultCallLimits, type CallLimits } from "./call.ts";
import { askEngine, type Engine } from "./engine.ts";
import { containerOptions } from "./options.ts";
import { createOwnerProcess } from "./owner-process.ts";
import { createReaper, defaultRetries, type Retries } from "./reaper.ts";
import { mayPass, runContainer } from "./run.ts";
import { testContainers } from "./self-test.ts";
import type { ContainerSettings } from "./settings.ts";
import { createWorkLimiter, type WorkLimits } from "./work-limiter.ts";

/** Dependencies of the container sandbox in addition to its settings. */
export interface ContainerOptions {
  /** Id of this server: unique, and constant over restarts. Containers carry it in a label. */
  readonly serverId: () => Promise<string>;
  /** Folder in the server's data folder in which its processes show each other that they live. Created if missing. */
  readonly makersFolder: string;
  readonly logger?: Logger | null;
  /** User ids for sessions if the server runs as root; default: see `defaultUids`. */
  readonly uids?: UidRange | null;
  readonly patience?: CallLimits;
  readonly retries?: Retries;
  /** Limits on concurrent starts, and separately on concurrent removals. */
  readonly turns?: WorkLimits;
}

/** Default limits of concurrent starts and removals. Each start occupies about one core for a fifth of a second. */
const defaultWorkLimits: WorkLimits = { atOnce: 8, waiting: 256, waitMs: 60_000 };

/** Runtimes that run a container's processes on the machine's own kernel; null: the engine's default runtime. */
const sameKernel: ReadonlySet<string | null> = new Set([null, "runc", "crun", "io.containerd.runc.v2"]);

/**
 * Starts each command in its own container, by Docker's API (https://docs.docker.com/reference/api/engine/): a
 * read-only root image, no network, no capabilities, no new privileges, limited by the engine's control groups. The
 * command runs only after all of this was verified at the kernel; every call of the engine has a time limit.
 */
export function createContainerSandbox(settings: ContainerSettings, options: ContainerOptions): Sandbox {
  const {
    serverId,
    logger = null,
    patience = defaultCallLimits,
    retries = defaultRetries,
    turns = defaultWorkLimits,
  } = options;
  const claims = new UidClaims(options.uids ?? defaultUids());
  const makeWritable = (directory: string): Promise<void> => giveToSandbox(directory, claims);
  const giveBack = (folder: string): Promise<void> => claims.giveBack(folder);
  const api = createEngineApi(settings.socket);
  const maker = createOwnerProcess(options.makersFolder);
  const removals = createWorkLimiter("remove a container", turns);
  const starts = createWorkLimiter("make a container", turns);
  const reaper = createReaper({ engine: api, serverId, maker, removals, patience, retries, logger });
  let connecting: Promise<Engine> | null = null;
  let tested: Promise<string | null> | null = null;

  function start(request: SandboxRequest): SandboxedProcess {
    request.signal.throwIfAborted();
    return runContainer({
      api,
      request,
      engine,
      options: (asking) => containerOptions(request, settings, asking),
      sameKernel: sameKernel.has(settings.runtime),
      reaper,
      starts,
      patience,
      logger,
    });
  }

  /** The engine's properties, asked for once; asked again after a failure. */
  async function engine(): Promise<Engine> {
    try {
      return await (connecting ??= askEngine(api, settings, patience));
    } catch (error) {
      connecting = null;
      throw error;
    }
  }

  /** @returns why the engine or its image can't be used; null if they can */
  async function problemOf(connect: () => Promise<unknown>): Promise<string | null> {
    try {
      await connect();
      if ((await findImage(settings.image)) !== null) return null;
      return `the image ${settings.image} is not on this machine: docker pull ${settings.image}, or set OFFSTAGE_CONTAINER_IMAGE`;
    } catch (error) {
      if (error instanceof OffstageError) return error.message;
      return `the container engine at ${settings.socket} does not answer (${messageOf(error)}): start it, or set OFFSTAGE_CONTAINER_SOCKET`;
    }
  }

  async function test(): Promise<string | null> {
    const problem = await problemOf(async () => {
      await engine();
      await reaper.sweep();
    });
    return problem ?? testContainers({ start, makeWritable, releaseOwner: giveBack });
  }

  /** Tests once for each time that the engine was away, and asks it each time whether it is there. */
  async function check(): Promise<string | null> {
    let problem: string | null = "not known";
    const isNew = tested === null;
    try {
      problem = await (tested ??= test());
      if (problem === null && !isNew) problem = await problemOf(() => Promise.resolve());
    } finally {
      // It may be another engine when it is back.
      if (problem !== null) tested = connecting = null;
    }
    return problem;
  }

  /** @throws UnavailableError, EngineError or the system's error if the engine does not answer */
  async function findImage(image: string): Promise<string | null> {
    return callEngine({ action: "say whether an image is there", limitMs: patience.answerMs }, (signal) =>
      api.imageId(image, signal),
    );
  }

  return {
    kind: "container",
    isolates: true,
    enforcesLimits: "kernel",
    check,
    imageId: (image) =>
      findImage(image).catch((error: unknown) => {
        throw sandboxLost({ why: messageOf(error), passes: mayPass(error) });
      }),
    start,
    makeWritable,
    attachProblem: () => Promise.resolve("a container gets its folders when it is made"),
    moveOwner: () => Promise.resolve(),
    releaseOwner: giveBack,
    sweeper: joinServices([reaper.sweeps, ...(process.getuid?.() === 0 ? [claims.sweeper] : [])]),
  };
}
