import type { Failure } from "../../domain/errors/errors.ts";
import type { NewEvent } from "../../domain/sessions/event.ts";
import type { HarnessLaunch, TurnRequest, TurnResult } from "../harness.ts";

/** What a thread needs before its turn is known. */
export type HarnessTask = Pick<HarnessLaunch, "extensions">;

/** The turn that the thread is to take: the serialisable part of its request. */
export type TurnTask = Pick<
  TurnRequest,
  "model" | "workingDirectory" | "toolServers" | "resume" | "message" | "transcript" | "permission"
> & {
  readonly providerId: string;
  readonly launch: Pick<HarnessLaunch, "model" | "reasoning">;
  /** Secrets from which the thread creates the turn's mask. */
  readonly secrets: readonly string[];
};

/**
 * A call from the thread to the server, answered by `done`; the thread waits for the answer before the next call of the
 * same kind.
 */
export type TurnCall =
  | { readonly kind: "emit"; readonly event: NewEvent }
  | { readonly kind: "write"; readonly bytes: Uint8Array }
  | { readonly kind: "session"; readonly id: string };

/** A message from the server to the thread. */
export type ToThread =
  /** Has the harness open a session there and answer one message, of which nothing is reported. Answered by `warmed`. */
  | { readonly kind: "warmUp"; readonly workingDirectory: string }
  | { readonly kind: "turn"; readonly task: TurnTask }
  | { readonly kind: "output"; readonly bytes: Uint8Array }
  | { readonly kind: "outputEnded" }
  | { readonly kind: "cancel" }
  | { readonly kind: "ping" }
  | { readonly kind: "done"; readonly call: number; readonly succeeded: boolean };

/** Progress of the turn, as the thread knows it. */
export interface TurnState {
  /** Number of signs of life from the harness. */
  readonly signs: number;
  /** Whether the harness's session is open, so that its updates are new, not replayed. */
  readonly started: boolean;
  readonly toolRuns: boolean;
}

/** Result of the conversation with the harness. */
export type ConversationResult =
  | {
      readonly kind: "ended";
      readonly result: TurnResult;
      /** Whether there was any message, thought or tool call. */
      readonly anything: boolean;
      /** Error of the model's server, if the harness passed it on as its answer. */
      readonly modelError: string | null;
    }
  | { readonly kind: "failed"; readonly failure: Failure }
  /** The harness closed its output before the turn was over: its exit gives the reason. */
  | { readonly kind: "closed" };

/** A message from the thread to the server. */
export type FromThread =
  /** The last bytes were read: send the next. */
  | { readonly kind: "taken"; readonly state: TurnState }
  | { readonly kind: "pong"; readonly state: TurnState }
  /** @see ToThread `warmUp`; problem: why it failed, null if it did not */
  | { readonly kind: "warmed"; readonly problem: string | null; readonly state: TurnState }
  | { readonly kind: "call"; readonly call: number; readonly request: TurnCall; readonly state: TurnState }
  | { readonly kind: "verdict"; readonly verdict: ConversationResult; readonly state: TurnState };
