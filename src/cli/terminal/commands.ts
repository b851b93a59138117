import type { Key, Scope } from "../../domain/people/key.ts";
import type { CreateOrganization, ListedOrganization } from "../../domain/people/organization.ts";
import type { NewEvent } from "../../domain/sessions/event.ts";

/** Flags that the commands on the server's machine share. Each overrides its variable in docs/configuration.md. */
export interface ServerFlags {
  readonly data?: string;
  readonly host?: string;
  readonly port?: string;
  readonly sandbox?: string;
}

/** Which organization a command on the server's machine is about, by its name; omitted: the server's own. */
export interface OrganizationFlag {
  readonly organization?: string;
}

/** An organization as a command makes it. */
export interface MadeOrganization {
  readonly name: string;
  /** Its first admin's link, and the address to which it is mailed, if it is; null: there is a key instead. */
  readonly invitation: { readonly url: string; readonly expiresAt: string; readonly mailedTo: string | null } | null;
  readonly adminKey: string | null;
}

/** One line of `offstage doctor`. */
export interface Check {
  readonly name: string;
  readonly ok: boolean;
  /** The finding, for example a version, a path or a number. */
  readonly detail: string;
  /** What to do, as precisely as possible; null if nothing is needed. */
  readonly remedy: string | null;
  /** True if the service runs without it. Such a check never makes `doctor` fail. */
  readonly optional?: boolean;
}

/** The result of a backup, a restore or a move. */
export interface BackupReport {
  readonly tables: number;
  readonly rows: number;
  /** ISO 8601 time of the data's snapshot. */
  readonly takenAt: string;
  /** Number of the schema's newest migration. */
  readonly migration: number;
  /** The master key, which is never copied. */
  readonly masterKey: {
    /** The file's path, or the variable's name. */
    readonly source: string;
    readonly inFile: boolean;
    /** Whether the file exists. */
    readonly isThere: boolean;
  };
}

/**
 * The handlers of the commands. Only `command-line.ts` may wire them, because they need the server, its database and an
 * agent. A handler reports an error that the user can fix as one of the errors of `domain/errors/errors.ts`:
 * InvalidInputError ends the program with exit code 2, every other error with 1.
 */
export interface Commands {
  /** Runs the service until `signal` aborts, then drains and resolves. It prints its own addresses. */
  start(flags: ServerFlags, signal: AbortSignal, role?: "all" | "api" | "worker"): Promise<void>;
  /** Checks this machine. A problem of the machine is a failed check, not an error. */
  doctor(flags: ServerFlags): Promise<readonly Check[]>;
  createKey(
    flags: ServerFlags & OrganizationFlag,
    key: {
      name: string;
      scopes: Scope[];
      automationIds: string[] | null;
      expiresAt: string | null;
      /** Id or e-mail address of the user who owns its sessions; null: none. */
      owner: string | null;
    },
  ): Promise<{ record: Key; key: string }>;
  listKeys(flags: ServerFlags & OrganizationFlag): Promise<readonly Key[]>;
  /** @throws NotFoundError if there is no such key */
  revokeKey(flags: ServerFlags & OrganizationFlag, id: string): Promise<Key>;
  /**
   * Runs a recorded session again.
   * @returns the repositories whose changes differ from the session's, and how many recorded answers were not used
   * @throws NotFoundError if it was not recorded
   */
  replay(
    flags: ServerFlags,
    sessionId: string,
    options: { onEvent: (event: NewEvent) => void; signal: AbortSignal },
  ): Promise<{ different: readonly string[]; unused: number }>;
  /**
   * Encrypts every secret with a new master key.
   * @returns how many secrets
   */
  rotateMasterKey(flags: ServerFlags): Promise<number>;
  /** Writes the database to a file; a server may be running. */
  backUp(flags: ServerFlags, file: string, signal: AbortSignal): Promise<BackupReport & { bytes: number }>;
  /** Reads a file of `backUp` into an empty database. */
  restore(flags: ServerFlags, file: string, signal: AbortSignal): Promise<BackupReport>;
  /** Copies the embedded database into the empty one at `url`. */
  move(flags: ServerFlags, url: string, signal: AbortSignal): Promise<BackupReport>;
  /** Writes all data of an organization to a file. */
  exportOrganization(
    flags: ServerFlags,
    target: { readonly name: string; readonly file: string },
    signal: AbortSignal,
  ): Promise<{ readonly bytes: number }>;
  /** @throws ConflictError if there is one of the name */
  createOrganization(flags: ServerFlags, body: CreateOrganization): Promise<MadeOrganization>;
  listOrganizations(flags: ServerFlags): Promise<readonly ListedOrganization[]>;
  /** Erases the organization of this name. @returns false if there was none, and erasures that had begun were continued */
  eraseOrganization(flags: ServerFlags, name: string, signal: AbortSignal): Promise<boolean>;
  /** @returns the address to open, which works once and for `ttlMs` milliseconds */
  createLoginLink(flags: ServerFlags & OrganizationFlag, link: { scopes: Scope[]; ttlMs: number }): Promise<string>;
}

/**
 * A command's output and environment. It is passed in, so that no command uses globals.
 */
export interface Terminal {
  /** Writes to stdout: the command's output. */
  write(text: string): void;
  /** Writes to stderr: errors and hints. */
  warn(text: string): void;
  /** Whether stdout shows colours. */
  readonly color: boolean;
  /** Places of a line of the terminal that stdout is; null: it is none. */
  readonly columns: number | null;
  /** All of stdin as text. */
  readInput(): Promise<string>;
  /** Asks a person for something that is not shown while it is typed; without a terminal, reads all of stdin. */
  readSecret(question: string): Promise<string>;
  /** Opens a page in the person's browser. @returns false if this machine can't */
  openPage(url: string): Promise<boolean>;
  /** Whether a person types: stdin is a terminal. */
  readonly isInteractive: boolean;
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly workingDirectory: string;
  /** Aborts on Ctrl-C and SIGTERM. */
  readonly signal: AbortSignal;
}

/** The context of every command. `finish` sets the program's exit code. */
export interface CommandContext {
  readonly commands: Commands;
  readonly terminal: Terminal;
  readonly finish: (exitCode: number) => void;
}
