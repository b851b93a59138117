import type { Database } from "../../database/database.ts";
import type { ConversationLimits } from "../../domain/conversations/conversation.ts";
import type { CommentPlace, Decided, Earlier, ConversationFacts } from "../../domain/conversations/facts.ts";
import type { Happening } from "../../domain/conversations/happening.ts";
import type { ClaimedEvent } from "../../store/automations/claimed-events.ts";
import type { ConversationPlace, LockedConversation } from "../../store/conversations/conversations.ts";
import type { RepositoryRecord } from "../../store/repositories/repositories.ts";
import type { Templates } from "../../templates/templates.ts";
import type { ForgeQuestions } from "./ask-forge.ts";
import type { CalledMacro } from "./macros.ts";

/** Dependencies for deciding about conversations. */
export interface ConversationServices extends ForgeQuestions {
  readonly database: Database;
  readonly templates: Templates;
  readonly limits: ConversationLimits;
  /** The web app's address, without a trailing slash. */
  readonly publicUrl: () => string;
  /** Whether agents run in a sandbox. */
  readonly sandboxed: boolean;
}

/** The forge's answers, which are read outside of the transaction, since that takes time. */
export interface Asked extends Pick<ConversationFacts, "isOwn" | "mayWrite" | "logs" | "places" | "threads"> {
  /** The place of the comment to decide, if its delivery does not have it. */
  readonly place: CommentPlace | null;
  /** Comments before the one to decide. */
  readonly thread: readonly Earlier[];
  readonly macro: CalledMacro | null;
  readonly commitUrl: (sha: string) => string | null;
}

/** The facts if the forge was not asked. */
export const unasked = {
  isOwn: false,
  mayWrite: null,
  logs: new Map<string, string>(),
  places: new Map<string, CommentPlace>(),
  threads: new Map<string, readonly Earlier[]>(),
  place: null,
  thread: [] as readonly Earlier[],
  macro: null,
} as const;

/** A happening in a conversation. */
export interface Occasion {
  readonly place: ConversationPlace;
  readonly repository: RepositoryRecord;
  readonly happening: Happening;
  readonly asked: Asked;
  /** Null: time passed. */
  readonly event: ClaimedEvent | null;
}

/** The decision while the conversation was locked. */
export interface DecidedLocked {
  readonly locked: LockedConversation;
  readonly decided: Decided;
  /** Its identity across deliveries; null: it has none. */
  readonly key: string | null;
  /** The earlier outcome of this event, if its worker died then. */
  readonly before: { readonly reason: string | null } | null;
}
