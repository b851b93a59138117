import type { Duplex } from "node:stream";
import { z } from "zod";
import { ConflictError } from "../../domain/errors/errors.ts";
import { askEngineSocket, EngineError, openEngineStream, type EngineRequest } from "./socket.ts";

/**
 * The calls of Docker's API that Offstage needs (https://docs.docker.com/reference/api/engine/), on the socket of any
 * engine that implements it. Only the fields that are used are parsed. Each call throws EngineError if the engine
 * refuses or its answer can't be parsed, and the system's error if there is no connection. No call has a time limit but
 * the signal that it is given.
 */
export interface EngineApi {
  version(signal: AbortSignal): Promise<EngineVersion>;
  info(signal: AbortSignal): Promise<EngineInfo>;
  /** @returns content id of the image that has the name now; null if there is none */
  imageId(name: string, signal: AbortSignal): Promise<string | null>;
  /** @returns the container's id */
  create(name: string, options: CreateContainerOptions, signal: AbortSignal): Promise<string>;
  start(id: string, signal: AbortSignal): Promise<void>;
  /** The container's input and output; the output is in frames (frames.ts). */
  attach(id: string, signal: AbortSignal): Promise<Duplex>;
  /** Waits for the container's next exit. @returns its exit code */
  nextExit(id: string, signal: AbortSignal): Promise<number>;
  kill(id: string, signal: AbortSignal): Promise<void>;
  /** Ends and removes the container with its anonymous volumes. */
  remove(id: string, signal: AbortSignal): Promise<void>;
  inspect(id: string, signal: AbortSignal): Promise<Inspected>;
  stats(id: string, signal: AbortSignal): Promise<Stats>;
  /** Lists containers that carry the label, running or not. @param label `name=value` */
  list(label: string, signal: AbortSignal): Promise<Listed[]>;
}

const versionSchema = z.object({
  ApiVersion: z.string(),
  MinAPIVersion: z.string().nullish(),
  Components: z.array(z.object({ Name: z.string() })).nullish(),
});
/** Versions of its API that an engine supports. */
export type EngineVersion = z.infer<typeof versionSchema>;

const infoSchema = z.object({ SecurityOptions: z.array(z.string()).nullish() });
/** What an engine says of itself and its machine. */
export type EngineInfo = z.infer<typeof infoSchema>;

const inspectedSchema = z.object({
  Id: z.string(),
  State: z.object({
    Pid: z.number(),
    Running: z.boolean().nullish(),
    ExitCode: z.number().nullish(),
    OOMKilled: z.boolean().nullish(),
  }),
  HostConfig: z.object({
    NetworkMode: z.string().nullish(),
    Privileged: z.boolean().nullish(),
    ReadonlyRootfs: z.boolean().nullish(),
    Memory: z.number().nullish(),
    PidsLimit: z.number().nullish(),
    NanoCpus: z.number().nullish(),
  }),
});
/** An engine's description of a container. */
export type Inspected = z.infer<typeof inspectedSchema>;

const statsSchema = z.object({
  pids_stats: z.object({ current: z.number().nullish() }).nullish(),
  memory_stats: z
    .object({
      failcnt: z.number().nullish(),
      usage: z.number().nullish(),
      stats: z.object({ inactive_file: z.number().nullish(), total_inactive_file: z.number().nullish() }).nullish(),
    })
    .nullish(),
  /** In ns. */
  cpu_stats: z.object({ cpu_usage: z.object({ total_usage: z.number().nullish() }).nullish() }).nullish(),
});
/** A container's present use of resources, and how often the kernel refused memory to it. */
export type Stats = z.infer<typeof statsSchema>;

const listedSchema = z.object({
  Id: z.string(),
  Names: z.array(z.string()).nullish(),
  Labels: z.record(z.string(), z.string()).nullish(),
});
/** A container in a list. */
export type Listed = z.infer<typeof listedSchema>;

/** How to create a container, in the fields of the engine's API. */
export interface CreateContainerOptions {
  readonly Image: string;
  readonly Entrypoint: readonly string[];
  readonly Cmd: readonly string[];
  readonly Env: readonly string[];
  readonly WorkingDir: string;
  readonly User: string;
  readonly Hostname: string;
  readonly OpenStdin: boolean;
  readonly StdinOnce: boolean;
  readonly AttachStdin: boolean;
  readonly AttachStdout: boolean;
  readonly AttachStderr: boolean;
  readonly Labels?: Readonly<Record<string, string>>;
  readonly HostConfig: {
    readonly NetworkMode: string;
    readonly IpcMode: string;
    readonly ReadonlyRootfs: boolean;
    readonly CapDrop: readonly string[];
    readonly SecurityOpt: readonly string[];
    readonly LogConfig: { readonly Type: string; readonly Config: object };
    readonly Init: boolean;
    readonly Runtime?: string;
    readonly Tmpfs: Readonly<Record<string, string>>;
    readonly Ulimits: readonly Ulimit[];
    readonly Memory?: number;
    readonly MemorySwap?: number;
    readonly PidsLimit?: number;
    readonly NanoCpus?: number;
    readonly Mounts: readonly BindMount[];
  };
}

/** A limit of each process (getrlimit(2)). */
export interface Ulimit {
  readonly Name: string;
  readonly Soft: number;
  readonly Hard: number;
}

/** A folder of the machine mounted into a container. */
export interface BindMount {
  readonly Type: "bind";
  readonly Target: string;
  readonly Source: string;
  readonly ReadOnly: boolean;
}

/** Version of the API in which all of these calls exist with the fields used (Docker 20.10, Podman 4). */
const oldestVersion = "1.41";
const newestVersion = "1.47";

/** @returns the newest version of the API that both sides support @throws ConflictError if there is none */
export function agreeOnVersion({ ApiVersion, MinAPIVersion }: EngineVersion): string {
  const agreed = isBefore(ApiVersion, newestVersion) ? ApiVersion : newestVersion;
  if (isBefore(agreed, oldestVersion)) {
    throw new ConflictError(
      `the container engine speaks version ${ApiVersion} of Docker's API, and Offstage needs ${oldestVersion}: use Docker 20.10, Podman 4, or newer`,
    );
  }
  if (MinAPIVersion != null && MinAPIVersion !== "" && isBefore(agreed, MinAPIVersion)) {
    throw new ConflictError(
      `the container engine speaks version ${MinAPIVersion} and newer of Docker's API, and Offstage ${newestVersion} at most: use an older engine`,
    );
  }
  return agreed;
}

/** Compares versions written `major.minor`. */
function isBefore(one: string, other: string): boolean {
  const [major = 0, minor = 0] = one.split(".").map(Number);
  const [otherMajor = 0, otherMinor = 0] = other.split(".").map(Number);
  return major === otherMajor ? minor < otherMinor : major < otherMajor;
}

/** Creates a client of an engine's API. @param socketPath path of the engine's unix socket */
export function createEngineApi(socketPath: string): EngineApi {
  let agreed: string | null = null;

  async function ask(engineRequest: EngineRequest): Promise<string> {
    try {
      return await askEngineSocket(socketPath, engineRequest);
    } catch (error) {
      // Another engine may listen by now that does not support the version.
      if (error instanceof EngineError && error.status === 400) agreed = null;
      throw error;
    }
  }

  async function version(signal: AbortSignal): Promise<EngineVersion> {
    return read(versionSchema, await ask({ method: "GET", path: "/version", signal }));
  }

  /** Adds the version that both sides support; asks the engine for it first. */
  async function versioned(engineRequest: EngineRequest): Promise<EngineRequest> {
    agreed ??= agreeOnVersion(await version(engineRequest.signal));
    return { ...engineRequest, path: `/v${agreed}${engineRequest.path}` };
  }

  async function call(engineRequest: EngineRequest): Promise<string> {
    return ask(await versioned(engineRequest));
  }

  const at = (id: string, action = ""): string => `/containers/${encodeURIComponent(id)}${action}`;
  return {
    version,
    info: async (signal) => read(infoSchema, await call({ method: "GET", path: "/info", signal })),
    async imageId(name, signal) {
      try {
        const answer = await call({ method: "GET", path: `/images/${encodeURIComponent(name)}/json`, signal });
        return read(z.object({ Id: z.string().min(1) }), answer).Id;
      } catch (error) {
        // 400: the text can't be an image's name.
        if (error instanceof EngineError && [400, 404].includes(error.status)) return null;
        throw error;
      }
    },
    async create(name, body, signal) {
      // The command's environment must be in the body: an engine may log the address.
      const answer = await call({ method: "POST", path: "/containers/create", query: { name }, body, signal });
      return read(z.object({ Id: z.string().min(1) }), answer).Id;
    },
    async start(id, signal) {
      await call({ method: "POST", path: at(id, "/start"), signal });
    },
    async attach(id, signal) {
      const query = { stream: "true", stdin: "true", stdout: "true", stderr: "true" };
      return openEngineStream(socketPath, await versioned({ method: "POST", path: at(id, "/attach"), query, signal }));
    },
    async nextExit(id, signal) {
      const query = { condition: "next-exit" };
      const answer = await call({ method: "POST", path: at(id, "/wait"), query, signal });
      return read(z.object({ StatusCode: z.number() }), answer).StatusCode;
    },
    async kill(id, signal) {
      await call({ method: "POST", path: at(id, "/kill"), signal });
    },
    async remove(id, signal) {
      await call({ method: "DELETE", path: at(id), query: { force: "true", v: "true" }, signal });
    },
    inspect: async (id, signal) => read(inspectedSchema, await call({ method: "GET", path: at(id, "/json"), signal })),
    async stats(id, signal) {
      const query = { stream: "false", "one-shot": "true" };
      return read(statsSchema, await call({ method: "GET", path: at(id, "/stats"), query, signal }));
    },
    async list(label, signal) {
      const query = { all: "true", filters: JSON.stringify({ label: [label] }) };
      return read(z.array(listedSchema), await call({ method: "GET", path: "/containers/json", query, signal }));
    },
  };
}

function read<T>(schema: z.ZodType<T>, answer: string): T {
  let parsed: unknown;
  try {
    parsed = JSON.parse(answer);
  } catch (error) {
    throw new EngineError("the container engine's answer is not JSON", 200, { cause: error });
  }
  const result = schema.safeParse(parsed);
  if (result.success) return result.data;
  throw new EngineError(`the container engine's answer is not as expected: ${z.prettifyError(result.error)}`, 200);
}
