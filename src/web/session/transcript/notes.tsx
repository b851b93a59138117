import { Clock } from "../../elements/time.tsx";
import type { Item, TranscriptNote } from "../view/view.ts";
import { type SessionTexts, useSessionTexts } from "../../texts/session.ts";

/** A line that says that something happened. */
export function NoteLine({ item }: { item: Extract<Item, { kind: "note" }> }) {
  const texts = useSessionTexts().notes;
  const { note, at } = item;
  const words = noteText(note, texts);
  return (
    <p className={`flex items-baseline gap-2 px-1.5 text-xs leading-6 ${colourOf(note)}`}>
      <span aria-hidden className="w-3.5 text-center">
        —
      </span>
      <span className="min-w-0 flex-1 break-words">
        {note.type === "pullRequest" ? (
          <a href={note.url} target="_blank" rel="noreferrer noopener" className="underline">
            {words}
          </a>
        ) : (
          words
        )}
        {note.type === "commit" && (
          <>
            : <bdi>{note.subject}</bdi>
          </>
        )}
      </span>
      <Clock at={at} />
    </p>
  );
}

/** A note's text; of a commit, without its subject. */
export function noteText(note: TranscriptNote, texts: SessionTexts["notes"]): string {
  switch (note.type) {
    case "started": {
      const started = note.resumed ? texts.resumed(note.provider) : texts.started(note.provider);
      return `${started}${note.model === null ? "" : texts.withModel(note.model)}`;
    }
    case "notice":
      return note.text;
    case "permission":
      return `${texts.permission[note.decision]}: ${note.title}`;
    case "turnEnded":
      return texts.turnEnded(note.stopReason);
    case "commit":
      return texts.commit(note.sha.slice(0, 8));
    case "pushed":
      return texts.pushed(note.branch);
    case "pullRequest":
      return texts.pullRequest[note.became](note.number);
    case "status":
      return statusText(note, texts);
  }
}

function statusText(
  { to, reason, isRetried }: Extract<TranscriptNote, { type: "status" }>,
  texts: SessionTexts["notes"],
): string {
  switch (to) {
    case "waiting":
      return texts.waiting(reason ?? texts.waitingFor);
    case "queued":
      return `${reason ?? texts.lost}${isRetried ? ` ${texts.retried}` : ""}`;
    case "cancelled":
      return texts.cancelled;
    default:
      return reason ?? texts[to];
  }
}

function colourOf(note: TranscriptNote): string {
  switch (note.type) {
    case "notice":
      return note.level === "warning" ? "text-warn" : "text-muted";
    case "permission":
      return note.decision === "denied" ? "text-warn" : "text-muted";
    case "turnEnded":
      return "text-warn";
    case "pullRequest":
      return note.became === "conflicted" ? "text-warn" : note.became === "closed" ? "text-muted" : "text-good";
    case "status":
      return {
        failed: "text-bad",
        completed: "text-good",
        cancelled: "text-warn",
        waiting: "text-warn",
        queued: "text-warn",
      }[note.to];
    default:
      return "text-muted";
  }
}
