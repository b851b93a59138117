import type { NewEvent } from "../domain/event.ts";
import type { Key, Scope } from "../domain/key.ts";

/** Flags that the commands on the server's machine share; each wins over its variable in docs/configuration.md. */
export interface ServerFlags {
  readonly data?: string;
  readonly host?: string;
  readonly port?: string;
  readonly sandbox?: string;
}

/** One line of `offstage doctor`. */
export interface Check {
  readonly name: string;
  readonly ok: boolean;
  /** What was found: a version, a path, how many. */
  readonly detail: string;
  /** What to do, as exact as it can be; null where nothing is needed. */
  readonly mend: string | null;
  /** True where the service runs without it; such a check never makes `doctor` fail. */
  readonly optional?: boolean;
}

/** What a backup, a restore or a move took along. */
export interface BackupReport {
  readonly tables: number;
  readonly rows: number;
  /** When the data was as it is in it. */
  readonly takenAt: string;
  /** The newest migration of its schema. */
  readonly migration: number;
  /** Which is never taken along. */
  readonly masterKey: {
    /** The file's path, or the variable's name. */
    readonly source: string;
    readonly inFile: boolean;
    /** Of the file. */
    readonly isThere: boolean;
  };
}

/**
 * What the commands need that only `main.ts` may wire: the server itself, its store, the basic agent.
 * A handler reports what the user did wrong or can mend as one of the errors of `domain/errors.ts`:
 * `InvalidInputError` ends the program with 2, every other error with 1.
 */
export interface Commands {
  /** Serves until `signal` aborts, then drains and resolves. It prints its own addresses. */
  start(flags: ServerFlags, signal: AbortSignal, role?: "all" | "api" | "worker"): Promise<void>;
  doctor(flags: ServerFlags): Promise<readonly Check[]>;
  createKey(
    flags: ServerFlags,
    key: { name: string; scopes: Scope[]; automationIds: string[] | null; expiresAt: string | null },
  ): Promise<{ record: Key; key: string }>;
  listKeys(flags: ServerFlags): Promise<readonly Key[]>;
  /** @throws NotFoundError where there is no such key */
  revokeKey(flags: ServerFlags, id: string): Promise<Key>;
  /** Carries a recorded session out once more. @throws NotFoundError where it was not recorded */
  replay(
    flags: ServerFlags,
    sessionId: string,
    options: { onEvent: (event: NewEvent) => void; signal: AbortSignal },
  ): Promise<{ different: readonly string[]; unused: number }>;
  /** Seals every secret with a new master key. @returns how many there were */
  rotateMasterKey(flags: ServerFlags): Promise<number>;
  /** Writes the database to a file, beside a server that may be running. */
  backUp(flags: ServerFlags, file: string, signal: AbortSignal): Promise<BackupReport & { bytes: number }>;
  /** Reads such a file into an empty database. */
  restore(flags: ServerFlags, file: string, signal: AbortSignal): Promise<BackupReport>;
  /** Copies the embedded database into an empty one at `url`. */
  move(flags: ServerFlags, url: string, signal: AbortSignal): Promise<BackupReport>;
  /** @returns the whole address to open, good once and for `ttlMs` milliseconds */
  createLoginLink(flags: ServerFlags, link: { scopes: Scope[]; ttlMs: number }): Promise<string>;
}

/** Where a command writes and what it may know of its surroundings, so that none reads them by itself. */
export interface Terminal {
  /** To stdout: the command's answer. */
  write(text: string): void;
  /** To stderr: what went wrong, and hints. */
  warn(text: string): void;
  /** Whether stdout shows colours. */
  readonly color: boolean;
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly workingDirectory: string;
  /** Aborts on Ctrl-C and SIGTERM. */
  readonly signal: AbortSignal;
}

/** What every command is built with; `finish` keeps the exit code that it ends with. */
export interface CommandContext {
  readonly commands: Commands;
  readonly terminal: Terminal;
  readonly finish: (exitCode: number) => void;
}
