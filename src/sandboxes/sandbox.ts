import type { Readable, Writable } from "node:stream";
import type { SandboxFault } from "../domain/errors/sandbox-lost.ts";
import type { Service } from "../lifecycle/service.ts";

/** Limits on what all processes of one sandbox may use together. */
export interface ResourceLimits {
  readonly memoryBytes: number;
  /** Processes; each thread counts as one. */
  readonly processes: number;
  /** Bytes below the request's `disk`; also the maximum size of one file. */
  readonly diskBytes: number;
  /** Files and folders below the request's `disk`; unlimited if omitted. */
  readonly files?: number;
  /** Processor cores; may be a fraction. */
  readonly cpus: number;
}

/** The limit that ended a sandbox. */
export type Exceeded = "memory" | "processes" | "disk" | "files";

/** The usage of all processes of a sandbox together. */
export interface SandboxUsage {
  readonly memoryBytes: number;
  /** Processor time since the start, in ms. Without a control group, processes that have ended no longer count. */
  readonly cpuMs: number;
}

/** The command to start in a sandbox, and what it sees of the machine. A path means the same inside and outside. */
export interface SandboxRequest {
  readonly command: string;
  readonly arguments: readonly string[];
  /** The whole environment of the process: of the server's own only PATH is added. */
  readonly environment: Readonly<Record<string, string>>;
  /** Folder that the process may read and write; the working directory unless `workingDirectory` names another. */
  readonly workspace: string;
  readonly workingDirectory?: string;
  /** The session's private home folder, kept between turns; read-write. */
  readonly home: string;
  /**
   * The session's folder whose contents the disk limits apply to, which may be a separate file system. Default: the
   * workspace and the home.
   */
  readonly disk?: string;
  /**
   * Further paths at which folders are visible: a program that was set up at another path still finds its files there.
   */
  readonly aliases?: readonly { readonly path: string; readonly folder: string }[];
  /** Read-only folders in addition to the system's own: the mirrors, the harness's programs. */
  readonly readOnly: readonly string[];
  /**
   * The gateway's unix socket, the only way to the network. Inside, a relay listens on loopback for it; its address
   * replaces `gatewayOrigin` in the environment and the arguments. If omitted, there is no network.
   */
  readonly gateway?: string;
  /** Limits on all processes inside together, as far as the machine can enforce them. */
  readonly limits?: ResourceLimits;
  /** Whether other sandboxes go first if both want the processor, until folders are attached to it. */
  readonly standsBack?: boolean;
  /** Root file system, if the sandbox supports images; default: the sandbox's own. */
  readonly image?: string | undefined;
  /** Aborting kills every process inside. */
  readonly signal: AbortSignal;
}

/** Folders that a sandbox gets while it runs. */
export interface LaterFolders {
  /** Each is visible at its place from then on. */
  readonly mounts: readonly { readonly folder: string; readonly place: string; readonly isReadOnly: boolean }[];
  /** The current path of the sandbox's home, and the folder to which the disk limits apply. */
  readonly home: string;
  readonly disk: string;
}

/** A process in a sandbox. */
export interface SandboxedProcess {
  readonly stdin: Writable;
  readonly stdout: Readable;
  readonly stderr: Readable;
  /** Settles when every process inside has ended; never rejects. */
  readonly exited: Promise<{ readonly code: number | null; readonly signal: NodeJS.Signals | null }>;
  /** Ends every process inside; may be called twice. */
  kill(): void;
  /**
   * The limit that was exceeded, so that every process inside was ended; null if the sandbox ended for another reason.
   */
  exceeded(): Exceeded | null;
  /** Its usage now; null if it does not run, or that is unknown. */
  usage(): SandboxUsage | null;
  /** Why the sandbox did not start the command, or lost it; null if the command ended by itself or was ended, or has not yet. */
  fault(): SandboxFault | null;
  /**
   * Makes further folders visible inside, as if they had been there from the start. Omitted if the sandbox can't.
   * @throws Error with the reason; what is visible then is unknown
   */
  readonly attach?: (later: LaterFolders) => Promise<void>;
}

/** A way to run a session's commands isolated from the server. */
export interface Sandbox {
  readonly kind: "bubblewrap" | "container" | "none";
  /** False for `none`. */
  readonly isolates: boolean;
  /** The enforcement of `limits`: the kernel, a measurement twice a second (`polling`), or nothing. */
  readonly enforcesLimits: "kernel" | "polling" | "no";
  /** Starts a trial sandbox. @returns null if it works, else what is missing, with the remedy */
  check(): Promise<string | null>;
  /**
   * Resolves an image's name to its content id, by which the image can be named too; null if this machine has no image
   * of that name, or the sandbox has no images.
   * @throws SessionError sandbox_unavailable if the engine does not say
   */
  imageId(image: string): Promise<string | null>;
  start(request: SandboxRequest): SandboxedProcess;
  /** Tries to attach a folder to a running sandbox. @returns why that is not possible here; null if it is */
  attachProblem(): Promise<string | null>;
  /**
   * Creates a directory (recursively) that a session's sandboxed processes may write to. Directories with the same
   * parent belong to one session; no process of the session may run meanwhile.
   */
  makeWritable(directory: string): Promise<void>;
  /** Must be called after the parent of such directories was renamed: the session's user id stays theirs. */
  moveOwner(from: string, to: string): Promise<void>;
  /**
   * Must be called after such directories were deleted, with their parent: releases the session's user id, if it had
   * one, once no process has it.
   */
  releaseOwner(folder: string): Promise<void>;
  /** Removes what killed servers left behind, at its start and now and then. */
  readonly sweeper: Service;
}
