import type { ReplyTarget } from "../domain/automations/reply-target.ts";
import { OffstageError } from "../domain/errors/errors.ts";

/** The credential and signal of a reply. */
export interface ReplyCall {
  /** Ours of this text, a UUID of version 4: the same each time that it is tried. */
  readonly id: string;
  /** Of the service; never in an error. */
  readonly token: string;
  /**
   * Whether an attempt began before, however it ended: its text may have arrived. Then existing texts are searched
   * first, so that nothing is written twice.
   */
  readonly isRepeated: boolean;
  /** Ends the attempt; what was already sent may arrive. */
  readonly signal: AbortSignal;
}

/** A reply that a service has. */
export interface SentReply {
  /** The service's id of it: by this, it is known as ours. */
  readonly id: string;
  readonly url: string | null;
}

/** A service that takes answers back. */
export interface Reply<Target = ReplyTarget> {
  /**
   * Writes a text once, however often it is called with the same id. A text that is too long for the service is cut in its middle.
   * @param text plain for Slack, where nothing in it is markup; Markdown for Linear
   * @throws ReplyUnavailable if a later attempt may succeed, ReplyRefused if none can; the signal's reason
   */
  send(target: Target, text: string, call: ReplyCall): Promise<SentReply>;
}

/** A service did not take a reply now; a later attempt may succeed. */
export class ReplyUnavailable extends OffstageError {
  readonly code = "reply_unavailable";
  /** The failure, without the beginning of the message. */
  readonly problem: string;
  /** Whether it may have written the reply all the same. */
  readonly isOpen: boolean;
  /** How long the service asks to wait, in ms; null if it does not say. */
  readonly retryAfterMs: number | null;

  constructor(
    service: string,
    problem: string,
    { isOpen, retryAfterMs = null }: { readonly isOpen: boolean; readonly retryAfterMs?: number | null },
  ) {
    super(`${service} did not take the reply: ${problem}`);
    this.problem = problem;
    this.isOpen = isOpen;
    this.retryAfterMs = retryAfterMs;
  }
}

/** A service will not take a reply: the message has its words, and what its owner can do. */
export class ReplyRefused extends OffstageError {
  readonly code = "reply_refused";
  /** The problem, without the beginning of the message. */
  readonly problem: string;

  constructor(service: string, problem: string) {
    super(`${service} refused the reply: ${problem}`);
    this.problem = problem;
  }
}
