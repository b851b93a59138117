import type { Readable, Writable } from "node:stream";

/** What one sandbox may use. */
export interface Limits {
  readonly memoryBytes: number;
  /** Threads count too. */
  readonly processes: number;
  /** Of the request's `disk`; no file may be larger either. */
  readonly diskBytes: number;
  /** Files and folders of the request's `disk`; any number without it. */
  readonly files?: number;
  /** Processor cores: more are not given. */
  readonly cpus: number;
}

export type Exceeded = "memory" | "processes" | "disk" | "files";

/** What a process sees of the machine. Paths are the same inside and outside, so that locations mean the same. */
export interface SandboxRequest {
  readonly command: string;
  readonly arguments: readonly string[];
  /** The whole environment of the process; nothing of the server's own is added but PATH. */
  readonly environment: Readonly<Record<string, string>>;
  /** Read-write, and working directory unless `workingDirectory` says otherwise. */
  readonly workspace: string;
  readonly workingDirectory?: string;
  /** The session's private home, kept between turns; read-write. */
  readonly home: string;
  /**
   * The folder of the session's that bounds of disk are for, with all that is in it, which may be a file system of its own; the
   * workspace and the home without it.
   */
  readonly disk?: string;
  /** Further places at which folders are seen: what was set up elsewhere finds itself where it was made. */
  readonly aliases?: readonly { readonly path: string; readonly folder: string }[];
  /** Read-only beside the system's own folders: the mirrors, the harness's programs. */
  readonly readOnly: readonly string[];
  /**
   * The gateway's unix socket, the only way out. Inside, a relay listens on loopback for it; `gatewayOrigin` in the
   * environment and the arguments becomes its address. Without it there is no network at all.
   */
  readonly gateway?: string;
  /** Bounds of everything inside together, where the machine can set them. */
  readonly limits?: Limits;
  /** Root file system, where the sandbox has images; its own without it. */
  readonly image?: string | undefined;
  /** Aborting kills every process inside. */
  readonly signal: AbortSignal;
}

export interface SandboxedProcess {
  readonly stdin: Writable;
  readonly stdout: Readable;
  readonly stderr: Readable;
  /** Settles once every process inside is gone; never rejects. */
  readonly exited: Promise<{ readonly code: number | null; readonly signal: NodeJS.Signals | null }>;
  /** Ends every process inside; safe to call twice. */
  kill(): void;
  /** The bound that was run into, for which everything inside was ended; null for any other end. */
  exceeded(): Exceeded | null;
}

export interface Sandbox {
  readonly kind: "bubblewrap" | "container" | "none";
  /** False for `none`. */
  readonly isolates: boolean;
  /** Who keeps `limits` here: the kernel, a look twice a second, or nobody. */
  readonly keepsLimits: "kernel" | "looking" | "no";
  /** Null where it works here, else what is missing and the exact mend. Really starts one to find out. */
  check(): Promise<string | null>;
  /**
   * What the root file system that has this name now is by its content, which can be named by that too; null if none of the name
   * is on this machine, or if the sandbox has no such.
   */
  imageId(image: string): Promise<string | null>;
  start(request: SandboxRequest): SandboxedProcess;
  /**
   * Makes a directory (recursively) that a session's sandboxed processes may write to. Directories that lie side by side are
   * of one session; nothing of it may run meanwhile.
   */
  makeWritable(directory: string): Promise<void>;
  /**
   * To be called once such directories are gone, with the folder in which they lay side by side: what was that session's alone,
   * as its user, may become another's when no process of it lives.
   */
  giveBack(folder: string): Promise<void>;
  /** Removes now and then what was left behind, where it can leave something. @returns what stops that, safe to call twice */
  tend?(): () => Promise<void>;
}
