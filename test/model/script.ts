/**
 * What the scripted model answers. Nothing is remembered between requests: the answer follows from the conversation
 * that a request carries, so that a conversation that is repeated or resumed gets the same answers.
 */
export type Action =
  | { readonly say: string }
  | { readonly think: string }
  /** These are carried out by whichever of the offered tools fits; the next request brings the result. */
  | { readonly write: { readonly path: string; readonly content: string } }
  | { readonly edit: { readonly path: string; readonly oldText: string; readonly newText: string } }
  | { readonly read: string }
  | { readonly shell: string }
  /** A tool by the end of its name: harnesses put that of its server before it. */
  | { readonly tool: { readonly name: string; readonly input: Readonly<Record<string, unknown>> } }
  /** Waits so long before the first byte. */
  | { readonly delayMs: number }
  | { readonly fail: { readonly status: number; readonly message: string; readonly retryAfterSeconds?: number } }
  /** An event with that error ends the answer, of which half was sent with status 200. */
  | { readonly failMidway: { readonly status: number; readonly message: string } }
  /** Cuts the connection when half of the answer was sent. */
  | { readonly cut: true }
  /** Ends the answer, of which half was sent, not before that. */
  | { readonly endsAfter: Promise<unknown> }
  /** Takes the request and never answers. */
  | { readonly hang: true };

export type ToolAction = Extract<
  Action,
  { write: unknown } | { edit: unknown } | { read: unknown } | { shell: unknown } | { tool: unknown }
>;

/** One answer of the model; with several actions it says, thinks and calls tools all at once. */
export type Step = Action | readonly Action[];

/**
 * The answers to one user message, in order; after the last it says that it is done. A harness ends its turn at the
 * first answer that calls no tool.
 */
export type Script = readonly Step[] | ((message: string, conversation: Conversation) => readonly Step[]);

export interface Conversation {
  readonly model: string;
  /** The last thing the user said, without what the harness wrapped around it. */
  readonly message: string;
  /** Every message of the user so far, the last included. */
  readonly userMessages: readonly string[];
  /** Answers that the model gave since the last user message: 0 at the first request of a turn. */
  readonly step: number;
  /** Output of each tool since the last user message, in order. */
  readonly toolResults: readonly string[];
  /** The arguments of every tool call of the model so far, as JSON, in order. */
  readonly calls: readonly string[];
  /** All that the harness sent: its own instructions, what the user said, and the output of tools. */
  readonly everything: string;
  readonly tools: readonly OfferedTool[];
  /** Folder that the harness says it works in, if it says so. */
  readonly workingDirectory: string | null;
}

export interface OfferedTool {
  readonly name: string;
  /** Properties of its JSON Schema. */
  readonly properties: Readonly<Record<string, { readonly type?: unknown }>>;
  readonly required: readonly string[];
}

export function answerOf(script: Script, conversation: Conversation): readonly Action[] {
  // Harnesses ask for a title, a summary or a classification in requests that offer no tool.
  if (conversation.tools.length === 0) return [{ say: "Scripted work" }];
  const steps = typeof script === "function" ? script(conversation.message, conversation) : script;
  const step = steps[conversation.step] ?? { say: "Done." };
  // `Array.isArray` does not narrow a readonly array away.
  return "length" in step ? step : [step];
}
