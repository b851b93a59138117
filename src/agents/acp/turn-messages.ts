import type { Failure } from "../../domain/errors.ts";
import type { NewEvent } from "../../domain/event.ts";
import type { HarnessLaunch, TurnRequest, TurnResult } from "../harness.ts";

/** What the thread of a turn is started with: all of a turn's request that is no function. */
export type TurnTask = Pick<
  TurnRequest,
  "model" | "workingDirectory" | "resume" | "message" | "transcript" | "permission"
> & {
  readonly providerId: string;
  readonly launch: Pick<HarnessLaunch, "model" | "extensions">;
  /** By which it makes itself the mask of the turn. */
  readonly secrets: readonly string[];
};

/** What the thread asks the server for; answered by `done`, and until then it asks for no other of the kind. */
export type TurnCall =
  | { readonly kind: "emit"; readonly event: NewEvent }
  | { readonly kind: "write"; readonly bytes: Uint8Array }
  | { readonly kind: "session"; readonly id: string };

export type ToThread =
  | { readonly kind: "output"; readonly bytes: Uint8Array }
  | { readonly kind: "outputEnded" }
  | { readonly kind: "cancel" }
  | { readonly kind: "ping" }
  | { readonly kind: "done"; readonly call: number; readonly succeeded: boolean };

/** How far the turn is, as the thread knows it. */
export interface TurnState {
  /** Counts what the harness let hear of itself. */
  readonly signs: number;
  /** Whether the harness's session is open and its updates are news. */
  readonly started: boolean;
  readonly toolRuns: boolean;
}

/** What the thread has to say when the conversation is over. */
export type Verdict =
  | {
      readonly kind: "ended";
      readonly result: TurnResult;
      /** Whether there was any message, thought or tool call. */
      readonly anything: boolean;
      /** What the model's server said, if the harness passed that on as its answer. */
      readonly modelError: string | null;
    }
  | { readonly kind: "failed"; readonly failure: Failure }
  /** The harness closed its output before the turn was over: its exit says why. */
  | { readonly kind: "closed" };

export type FromThread =
  /** The bytes given last were looked at: the next may come. */
  | { readonly kind: "taken"; readonly state: TurnState }
  | { readonly kind: "pong"; readonly state: TurnState }
  | { readonly kind: "call"; readonly call: number; readonly wanted: TurnCall; readonly state: TurnState }
  | { readonly kind: "verdict"; readonly verdict: Verdict; readonly state: TurnState };
