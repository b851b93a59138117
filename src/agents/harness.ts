import type { ModelProviders } from "../domain/agents/model.ts";
import type { Mask } from "../domain/masking/mask.ts";
import type { NewEvent } from "../domain/sessions/event.ts";
import type { SandboxedProcess } from "../sandboxes/sandbox.ts";

/** How to start a harness, as its provider describes it. */
export interface HarnessLaunch {
  readonly command: string;
  readonly arguments: readonly string[];
  readonly environment: Readonly<Record<string, string>>;
  /** Folders that its program must read. */
  readonly readOnly: readonly string[];
  /** Files to write in the session's home before the start, by relative path. */
  readonly files: Readonly<Record<string, string>>;
  /** Extensions of the protocol to request: `_meta` of the client's capabilities. */
  readonly extensions?: Readonly<Record<string, unknown>>;
  /** The harness's name of the model, to set over the protocol if the harness lists it. */
  readonly model: string | null;
  /** Level of reasoning to set over the protocol. Null: none is wanted, or the harness was given it in another way. */
  readonly reasoning?: string | null;
}

/** The session's part of a launch. */
export interface LaunchOptions {
  readonly model: string | null;
  /** One of the provider's `reasoningLevels`; null: the harness's own. */
  readonly reasoning: string | null;
  readonly home: string;
  /** Model providers as the harness reaches them: the gateway's address and the session's token. */
  readonly models: ModelProviders;
}

/** An agent provider: a harness that can be started for a session. */
export interface Provider {
  readonly id: string;
  readonly name: string;
  /** @returns null if it can run, else what is missing, with the remedy */
  problem(): Promise<string | null>;
  readonly defaultModel: string | null;
  /** Levels of reasoning that a session may name after the model; empty if it has none. */
  readonly reasoningLevels: readonly string[];
  /** Folders and files in the session's home in which it keeps conversations; empty if unknown. */
  readonly statePaths: readonly string[];
  launch(options: LaunchOptions): HarnessLaunch;
}

/** One turn of an agent. */
export interface TurnRequest {
  readonly provider: Provider;
  readonly model: string | null;
  readonly launch: HarnessLaunch;
  /** Starts the harness; the driver speaks the protocol over its stdin and stdout. */
  readonly start: (launch: HarnessLaunch, signal: AbortSignal) => SandboxedProcess;
  readonly workingDirectory: string;
  /** Programs that offer tools by the Model Context Protocol (stdio), which the harness starts. */
  readonly toolServers?: readonly {
    readonly name: string;
    readonly command: string;
    readonly args: readonly string[];
    readonly env: readonly { readonly name: string; readonly value: string }[];
  }[];
  /** Harness's session id of an earlier turn; null if there was none. */
  readonly resume: string | null;
  /** The user's message. `transcript` is sent before it if the harness could not resume. */
  readonly message: string;
  readonly transcript: string | null;
  /** Called in order; the driver waits for each call, so that a slow database slows the agent and no event is lost. */
  readonly emit: (event: NewEvent) => Promise<void>;
  /** Applied before a text is cut; `emit` applies it to everything. */
  readonly mask: Mask;
  /** Stores the harness's session id before the turn starts, so that it can be resumed after a crash. */
  readonly onSession: (harnessSessionId: string) => Promise<void>;
  /** Time without a sign of life, in ms, after which the turn fails with `agent_stalled`. */
  readonly stallMs: number;
  /** Time, in ms, after which the turn fails with `turn_too_long`. */
  readonly limitMs: number;
  readonly permission: "allow" | "deny";
  /** The gateway's record of this turn's requests to models, which has more than the protocol. */
  readonly traffic?: () => Promise<{
    readonly lastActivity: number;
    readonly lastAnswer: number;
    readonly answered: number;
    readonly lastError: string | null;
    readonly lastErrorPasses: boolean;
    readonly retryAfterMs: number | null;
    readonly unanswered: number;
  }>;
  readonly signal: AbortSignal;
}

/** Result of a turn that completed. */
export interface TurnResult {
  readonly stopReason: string;
  /** The agent's last message: the pull request's body and the session's summary. */
  readonly finalMessage: string;
}
