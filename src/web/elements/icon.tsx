import sprite from "../icons.svg?no-inline";

/** Names of the pictures in `icons.svg`. */
export type IconName =
  | "sessions"
  | "automations"
  | "ledger"
  | "insight"
  | "repositories"
  | "connections"
  | "webhooks"
  | "people"
  | "settings"
  | "system"
  | "audit"
  | "reference"
  | "add"
  | "search"
  | "menu"
  | "help"
  | "display"
  | "leave"
  | "close"
  | "open"
  | "copy"
  | "download"
  | "retry"
  | "stop"
  | "send"
  | "comment"
  | "filter"
  | "chevron"
  | "down"
  | "split"
  | "unified"
  | "archive"
  | "more"
  | "check"
  | "warning"
  | "branch"
  | "pull-request"
  | "file"
  | "person"
  | "agent"
  | "clock"
  | "money"
  | "plan"
  | "label"
  | "read"
  | "edit"
  | "delete"
  | "move"
  | "execute"
  | "think"
  | "fetch"
  | "other";

/** A picture beside words, which screen readers leave out. Its size is that of the text, unless a class says otherwise. */
export function Icon({ name, className = "size-4" }: { name: IconName | `lamp-${string}`; className?: string }) {
  return (
    <svg
      aria-hidden
      className={`shrink-0 ${className}`}
      fill="none"
      stroke="currentColor"
      strokeWidth="1.5"
      strokeLinecap="round"
      strokeLinejoin="round"
    >
      <use href={`${sprite}#${name}`} />
    </svg>
  );
}
