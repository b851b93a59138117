import type { NewEvent } from "../domain/event.ts";
import type { Mask } from "../domain/masking/mask.ts";
import type { ModelProviders } from "../domain/model.ts";
import type { SandboxedProcess } from "../sandboxes/sandbox.ts";

/** Everything that starting a harness takes; made by a provider's row. */
export interface HarnessLaunch {
  readonly command: string;
  readonly arguments: readonly string[];
  readonly environment: Readonly<Record<string, string>>;
  /** Folders that its program needs to read. */
  readonly readOnly: readonly string[];
  /** Files to write below the session's home before it starts, by relative path. */
  readonly files: Readonly<Record<string, string>>;
  /** Extensions of the protocol to ask it for: `_meta` of the client's capabilities. */
  readonly extensions?: Readonly<Record<string, unknown>>;
  /** Model as the harness names it, to set over the protocol where it lists it. */
  readonly model: string | null;
}

export interface LaunchOptions {
  readonly model: string | null;
  readonly home: string;
  /** The models as the harness reaches them: the gateway's address and the session's token. */
  readonly models: ModelProviders;
}

/** One row of the registry. */
export interface Provider {
  readonly id: string;
  readonly name: string;
  /** Null where it can run, else what is missing and the mend. */
  problem(): Promise<string | null>;
  readonly defaultModel: string | null;
  /** Folders and files below the session's home with what it keeps of conversations; none where it is not known. */
  readonly state: readonly string[];
  launch(options: LaunchOptions): HarnessLaunch;
}

export interface TurnRequest {
  readonly provider: Provider;
  readonly model: string | null;
  readonly launch: HarnessLaunch;
  /** Starts the harness; the driver speaks the protocol over its stdin and stdout. */
  readonly start: (launch: HarnessLaunch, signal: AbortSignal) => SandboxedProcess;
  readonly workingDirectory: string;
  /** The harness's own session to resume, where there was a turn before. */
  readonly resume: string | null;
  /** What to say. `transcript` is said before it where the harness could not resume. */
  readonly message: string;
  readonly transcript: string | null;
  /** Called in order; the driver waits for it, so that a slow store slows the agent and loses nothing. */
  readonly emit: (event: NewEvent) => Promise<void>;
  /** Applied to what is cut, before it is; `emit` applies it to everything. */
  readonly mask: Mask;
  /** The harness's session is known: store it before the turn starts, to resume after a crash. */
  readonly onSession: (harnessSessionId: string) => Promise<void>;
  /** A turn without any sign of life for so long fails with `agent_stalled`. */
  readonly stallMs: number;
  /** A turn that takes longer fails with `turn_too_long`. */
  readonly limitMs: number;
  readonly permission: "allow" | "deny";
  /** What the model gateway saw of this turn, which says more than the protocol. */
  readonly traffic?: () => Promise<{
    readonly lastActivity: number;
    readonly lastAnswer: number;
    readonly answered: number;
    readonly lastError: string | null;
  }>;
  readonly signal: AbortSignal;
}

export interface TurnResult {
  readonly stopReason: string;
  /** The agent's last message, whole: the pull request's body and the session's summary. */
  readonly finalMessage: string;
}
