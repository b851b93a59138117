import type { DiffLineAnnotation } from "@pierre/diffs";
import { useEffect, useId, useRef, useState, type FormEvent, type ReactNode } from "react";
import { CopyButton } from "../../elements/copy-button.tsx";
import { Icon } from "../../elements/icon.tsx";
import { formatNumber } from "../../texts/formats.ts";
import { useSessionTexts } from "../../texts/session.ts";
import type { Comment } from "./comments.ts";
import { LinesOfFile, type DiffStyle, type LineNote } from "./file-diff.tsx";
import { lineOf, type ChangedFile } from "./patch-files.ts";

/** The place of a comment that is being written; `line` null: the user writes the number too. */
interface Place {
  readonly side: Comment["side"];
  readonly line: number | null;
}

/** A changed file: its name, how much of it changed, and, unfolded, its lines with the comments on them. */
export function FileFold({
  file,
  label,
  isOpen,
  onOpen,
  isViewed,
  onViewed,
  diffStyle,
  comments,
  onComments,
}: {
  file: ChangedFile;
  /** Its name among all parts of the page. */
  label: string;
  isOpen: boolean;
  onOpen: (isOpen: boolean) => void;
  isViewed: boolean;
  onViewed: (isViewed: boolean) => void;
  diffStyle: DiffStyle;
  /** Those on this file. */
  comments: readonly Comment[];
  /** Null: comments are not allowed. */
  onComments: ((comments: readonly Comment[]) => void) | null;
}) {
  const texts = useSessionTexts();
  const [writing, setWriting] = useState<Place | null>(null);
  const name = file.before === null ? file.name : texts.changes.renamed(file.before, file.name);
  const viewedId = useId();
  return (
    <section aria-label={label} data-file={file.key} className="card overflow-clip">
      <div className="sticky top-0 z-10 flex items-center gap-2 border-b border-transparent bg-surface px-2 py-1 text-sm">
        <button
          type="button"
          aria-expanded={isOpen}
          className="flex min-w-0 flex-1 cursor-pointer items-center gap-2 text-start"
          onClick={() => onOpen(!isOpen)}
        >
          <Icon name="chevron" className={`size-3 text-muted ${isOpen ? "rotate-90" : ""}`} />
          <bdi className={`min-w-0 font-mono text-xs break-all ${isViewed ? "text-muted" : ""}`}>{name}</bdi>
          <span className="sr-only"> {texts.changes.kinds[file.kind]}</span>
        </button>
        <LineCount added={file.added} removed={file.removed} />
        {onComments !== null && file.added + file.removed > 0 && (
          <button
            type="button"
            className="button button-quiet min-h-6 px-1.5"
            aria-label={texts.comments.addTo(file.name)}
            onClick={() => {
              onOpen(true);
              setWriting({ side: file.kind === "deleted" ? "deletions" : "additions", line: null });
            }}
          >
            <Icon name="comment" className="size-3.5" />
          </button>
        )}
        <label htmlFor={viewedId} className="flex cursor-pointer items-center gap-1 text-xs text-muted">
          <input
            id={viewedId}
            type="checkbox"
            className="size-3.5"
            checked={isViewed}
            onChange={({ target }) => onViewed(target.checked)}
          />
          {texts.changes.viewed}
          <span className="sr-only"> {file.name}</span>
        </label>
      </div>
      {isOpen && writing?.line === null && onComments !== null && (
        <CommentForm
          file={file}
          place={writing}
          onKeep={(comment) => {
            onComments([...comments, comment]);
            setWriting(null);
          }}
          onCancel={() => setWriting(null)}
        />
      )}
      {isOpen && (
        <WhenSeen lines={file.added + file.removed}>
          <Lines
            file={file}
            diffStyle={diffStyle}
            comments={comments}
            writing={writing}
            onWriting={onComments === null ? null : setWriting}
            onComments={onComments}
          />
        </WhenSeen>
      )}
    </section>
  );
}

/** How many lines a change adds and removes. */
export function LineCount({ added, removed }: { added: number; removed: number }) {
  const texts = useSessionTexts().changes;
  return (
    <span className="shrink-0 text-xs tabular-nums">
      <span className="text-good">
        <span aria-hidden>+{formatNumber(added)}</span>
        <span className="sr-only">{texts.added(formatNumber(added))}</span>
      </span>{" "}
      <span className="text-bad">
        <span aria-hidden>−{formatNumber(removed)}</span>
        <span className="sr-only">{texts.removed(formatNumber(removed))}</span>
      </span>
    </span>
  );
}

const lineHeight = 20;
/** Of a file that was not drawn yet, at most, in pixels. */
const tallest = 2_000;

/** Draws something once it comes near to what is in sight; until then its place is kept, about as high as it will be. */
function WhenSeen({ lines, children }: { lines: number; children: ReactNode }) {
  const place = useRef<HTMLDivElement>(null);
  const [isSeen, setSeen] = useState(false);
  useEffect(() => {
    const element = place.current;
    if (element === null || isSeen) return undefined;
    const seen = new IntersectionObserver(
      (entries) => {
        if (entries.some((entry) => entry.isIntersecting)) setSeen(true);
      },
      { rootMargin: "800px" },
    );
    seen.observe(element);
    return () => seen.disconnect();
  }, [isSeen]);
  if (isSeen) return children;
  return <div ref={place} style={{ height: Math.min(tallest, (lines + 6) * lineHeight) }} />;
}

function Lines({
  file,
  diffStyle,
  comments,
  writing,
  onWriting,
  onComments,
}: {
  file: ChangedFile;
  diffStyle: DiffStyle;
  comments: readonly Comment[];
  writing: Place | null;
  onWriting: ((place: Place | null) => void) | null;
  onComments: ((comments: readonly Comment[]) => void) | null;
}) {
  const texts = useSessionTexts().changes;
  if (file.added + file.removed === 0) return <p className="p-3 text-xs text-muted">{texts.noLines}</p>;
  const notes: DiffLineAnnotation<LineNote>[] = [
    ...comments.map((comment) => ({ side: comment.side, lineNumber: comment.line, metadata: { comment } })),
    ...(writing?.line == null ? [] : [{ side: writing.side, lineNumber: writing.line, metadata: { comment: null } }]),
  ];
  return (
    <div className="divide-y divide-line border-t border-line text-xs">
      {file.diffs.map((diff, index) => (
        <LinesOfFile
          key={index}
          file={file.name}
          diff={diff}
          diffStyle={diffStyle}
          notes={notes}
          onComment={onWriting === null ? null : (side, line) => onWriting({ side, line })}
        >
          {({ metadata: { comment } }) =>
            comment === null && writing !== null ? (
              <CommentForm
                file={file}
                place={writing}
                onKeep={(kept) => {
                  onComments?.([...comments, kept]);
                  onWriting?.(null);
                }}
                onCancel={() => onWriting?.(null)}
              />
            ) : comment === null ? null : (
              <KeptComment
                comment={comment}
                onRemove={() => onComments?.(comments.filter(({ id }) => id !== comment.id))}
              />
            )
          }
        </LinesOfFile>
      ))}
    </div>
  );
}

function KeptComment({ comment, onRemove }: { comment: Comment; onRemove: () => void }) {
  const texts = useSessionTexts().comments;
  return (
    <div className="flex items-start gap-3 border-s-4 border-accent bg-accent-soft px-3 py-2 font-sans text-sm text-ink">
      <p className="min-w-0 flex-1 break-words whitespace-pre-wrap" dir="auto">
        {comment.text}
      </p>
      <CopyButton text={comment.text} what={texts.label} className="cursor-pointer text-xs underline" />
      <button type="button" className="cursor-pointer text-xs underline" onClick={onRemove}>
        {texts.remove}
      </button>
    </div>
  );
}

function CommentForm({
  file,
  place,
  onKeep,
  onCancel,
}: {
  file: ChangedFile;
  place: Place;
  onKeep: (comment: Comment) => void;
  onCancel: () => void;
}) {
  const { comments: texts, actions } = useSessionTexts();
  const id = useId();
  const [text, setText] = useState("");
  const [line, setLine] = useState(place.line === null ? "" : String(place.line));
  const field = useRef<HTMLTextAreaElement>(null);
  const lineField = useRef<HTMLInputElement>(null);
  useEffect(() => (lineField.current ?? field.current)?.focus(), []);
  const submit = (event?: FormEvent): void => {
    event?.preventDefault();
    const number = Number(line);
    if (text.trim() === "" || !Number.isInteger(number) || number < 1) return;
    const code = lineOf(file, place.side, number);
    onKeep({ id: crypto.randomUUID(), file: file.name, side: place.side, line: number, code, text });
  };
  return (
    <form
      onSubmit={submit}
      className="space-y-2 border-s-4 border-accent bg-accent-soft p-3 font-sans text-sm text-ink"
    >
      {place.line === null && (
        <div className="flex items-center gap-2">
          <label htmlFor={`${id}-line`}>{texts.line}</label>
          <input
            ref={lineField}
            id={`${id}-line`}
            type="number"
            min="1"
            required
            className="field w-24"
            value={line}
            onChange={({ target }) => setLine(target.value)}
          />
        </div>
      )}
      <label htmlFor={id} className="sr-only">
        {texts.label}
      </label>
      <textarea
        ref={field}
        id={id}
        dir="auto"
        rows={2}
        className="field [field-sizing:content]"
        placeholder={texts.placeholder}
        value={text}
        onChange={({ target }) => setText(target.value)}
        onKeyDown={(event) => {
          if (event.key === "Escape") onCancel();
          if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) submit();
        }}
      />
      <div className="flex gap-2">
        <button type="submit" className="button button-primary" disabled={text.trim() === ""}>
          {texts.save}
        </button>
        <button type="button" className="button" onClick={onCancel}>
          {actions.cancel}
        </button>
      </div>
    </form>
  );
}
