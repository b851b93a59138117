import type { Database } from "../../database/database.ts";
import type { ConversationLimits } from "../../domain/conversations/conversation.ts";
import type { CommentPlace, Decided, Earlier, ConversationFacts } from "../../domain/conversations/facts.ts";
import type { Happening } from "../../domain/conversations/happening.ts";
import type { ClaimedEvent } from "../../store/automations/inbound-events.ts";
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

/** What is asked outside of the transaction, since it takes time. */
export interface Asked extends Pick<ConversationFacts, "isOwn" | "mayWrite" | "logs" | "places" | "threads"> {
  /** What the comment is on that is decided on, if its delivery does not say it. */
  readonly place: CommentPlace | null;
  /** What was said before the comment that is decided on. */
  readonly thread: readonly Earlier[];
  readonly macro: CalledMacro | null;
  readonly commitUrl: (sha: string) => string | null;
}

/** What is known if nothing was asked. */
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

/** What happened in which conversation. */
export interface Occasion {
  readonly place: ConversationPlace;
  readonly repository: RepositoryRecord;
  readonly happening: Happening;
  readonly asked: Asked;
  /** Null: time passed. */
  readonly event: ClaimedEvent | null;
}

/** What was decided while the conversation was locked. */
export interface DecidedLocked {
  readonly locked: LockedConversation;
  readonly decided: Decided;
  /** Its identity across deliveries; null: it has none. */
  readonly key: string | null;
  /** What this very event came to before, if its worker died then. */
  readonly before: { readonly reason: string | null } | null;
}
