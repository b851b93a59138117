import { useMutation, useQuery } from "@tanstack/react-query";
import { useDeferredValue, useId, useMemo, useState } from "react";
import type { SessionDetail, SessionDiff } from "../../../domain/sessions/session.ts";
import { isFinal } from "../../../domain/sessions/status.ts";
import { announce } from "../../elements/announce.tsx";
import { Icon } from "../../elements/icon.tsx";
import { ErrorText, Loading } from "../../elements/notice.tsx";
import { client, useMay } from "../../query.ts";
import { useShortcuts } from "../../shell/shortcuts.ts";
import { readStored, writeStored } from "../../stored.ts";
import { formatNumber } from "../../texts/formats.ts";
import { useSessionTexts } from "../../texts/session.ts";
import type { SessionView } from "../view/view.ts";
import { reviewMessage, useComments, type Comment } from "./comments.ts";
import type { DiffStyle } from "./file-diff.tsx";
import { FileFold, LineCount } from "./file-fold.tsx";
import { filesOfEdits, filesOfPatch, fileHasWords, type ChangedFile } from "./patch-files.ts";
import { useViewed } from "./viewed.ts";

/** If more files are changed, they are folded at first. */
const openedAtMost = 20;
/** If more files are changed, the others are drawn once the user asks for them. */
const drawnAtMost = 100;

type Repository = SessionDiff["repositories"][number];
/** The changed files of one repository, or the edits that an agent reports. */
interface Part {
  readonly key: string;
  readonly name: string | null;
  /** Null: the patch can't be parsed. */
  readonly files: readonly ChangedFile[] | null;
  readonly patch: string;
  readonly truncated: boolean;
}

/** The changes of a session so far: as its agent reports them while it works, and as committed. */
export function Changes({ session, view, onSent }: { session: SessionDetail; view: SessionView; onSent: () => void }) {
  const texts = useSessionTexts().changes;
  const { id, status } = session;
  const diff = useQuery({ queryKey: ["diff", id], queryFn: () => client.session.diff(id) });
  const committed = useMemo(() => diff.data?.repositories.filter(({ patch }) => patch !== "").map(partOf), [diff.data]);
  // Only edits that are not committed yet: those of the running turn.
  const edits = useMemo(() => filesOfEdits(view.items.slice(view.turnStart)), [view.items, view.turnStart]);
  if (diff.error !== null) return <ErrorText error={diff.error} />;
  if (committed === undefined) return <Loading lines={6} />;
  const isAtWork = !isFinal(status) && status !== "draft";
  const parts: Part[] = [
    ...((isAtWork || committed.length === 0) && edits.length > 0
      ? [{ key: "edits", name: null, files: edits, patch: "", truncated: false }]
      : []),
    ...committed,
  ];
  if (parts.length === 0) {
    return (
      <div className="py-12 text-center text-sm text-muted">
        <p className="font-medium text-ink">{isAtWork ? texts.none : texts.noneOver}</p>
        {isAtWork && <p className="mt-1">{texts.noneText}</p>}
      </div>
    );
  }
  return <Parts sessionId={id} parts={parts} onSent={onSent} />;
}

function partOf({ repositoryId, name, patch, truncated }: Repository): Part {
  const key = repositoryId ?? name;
  return { key, name, files: filesOfPatch(patch, key), patch, truncated };
}

function Parts({ sessionId, parts, onSent }: { sessionId: string; parts: readonly Part[]; onSent: () => void }) {
  const texts = useSessionTexts();
  const [comments, setComments] = useComments(sessionId);
  const viewed = useViewed(sessionId);
  const [diffStyle, setDiffStyle] = useDiffStyle();
  const [words, setWords] = useState("");
  const sought = useDeferredValue(words);
  const all = parts.flatMap(({ files }) => files ?? []);
  const found = sought.trim() === "" ? all : all.filter((file) => fileHasWords(file, sought));
  const [isWhole, setWhole] = useState(false);
  const drawn = isWhole ? found : found.slice(0, drawnAtMost);
  const isDrawn = new Set(drawn);
  /** Whether files are open that the user has neither opened nor closed. */
  const [isOpenAtFirst, setOpenAtFirst] = useState<boolean | null>(null);
  const [changed, setChanged] = useState<ReadonlyMap<string, boolean>>(new Map());
  const isOpen = (file: ChangedFile): boolean =>
    changed.get(file.key) ?? (!viewed.isViewed(file) && (isOpenAtFirst ?? all.length <= openedAtMost));
  const open = (file: ChangedFile, opened: boolean): void => setChanged(new Map(changed).set(file.key, opened));
  const openAll = (opened: boolean): void => {
    setOpenAtFirst(opened);
    setChanged(new Map(all.map(({ key }) => [key, opened])));
  };
  const setViewed = (file: ChangedFile, isViewed: boolean): void => {
    viewed.setViewed(file, isViewed);
    open(file, !isViewed);
  };
  const mayComment = useMay("write");
  useFileShortcuts(drawn, viewed.isViewed, setViewed);
  return (
    <div className="space-y-3">
      <Toolbar
        files={all}
        viewedCount={all.filter(viewed.isViewed).length}
        words={words}
        onWords={setWords}
        foundCount={sought.trim() === "" ? null : found.length}
        diffStyle={diffStyle}
        onDiffStyle={setDiffStyle}
        areOpen={all.some(isOpen)}
        onOpenAll={openAll}
      />
      {parts.map(({ key, name, files, patch, truncated }) => (
        <section key={key} aria-label={texts.changes.of(name ?? texts.transcript.atWork)} className="space-y-1.5">
          {name === null ? (
            <p className="text-xs text-muted">{texts.changes.soFar}</p>
          ) : (
            parts.length > 1 && <h2 className="text-sm font-medium wrap-anywhere">{name}</h2>
          )}
          {files === null ? (
            <pre tabIndex={0} aria-label={texts.changes.patch} className="card overflow-x-auto p-3 font-mono text-xs">
              {patch}
            </pre>
          ) : (
            files
              .filter((file) => isDrawn.has(file))
              .map((file) => (
                <FileFold
                  key={file.key}
                  file={file}
                  label={parts.length === 1 ? file.name : texts.changes.fileOf(file.name, name)}
                  isOpen={isOpen(file)}
                  onOpen={(opened) => open(file, opened)}
                  isViewed={viewed.isViewed(file)}
                  onViewed={(isViewed) => setViewed(file, isViewed)}
                  diffStyle={diffStyle}
                  comments={comments.filter((comment) => comment.file === file.name)}
                  onComments={
                    mayComment
                      ? (own) => setComments((now) => [...now.filter((comment) => comment.file !== file.name), ...own])
                      : null
                  }
                />
              ))
          )}
          {truncated && <p className="text-sm text-warn">{texts.changes.truncated}</p>}
        </section>
      ))}
      {drawn.length < found.length && (
        <button type="button" className="button w-full" onClick={() => setWhole(true)}>
          {texts.changes.showAll(formatNumber(found.length))}
        </button>
      )}
      {comments.length > 0 && (
        <SendComments
          sessionId={sessionId}
          comments={comments}
          onDiscard={() => setComments(() => [])}
          onSent={(sent) => {
            // Comments that were written during a slow request are not among them.
            setComments((now) => now.filter(({ id }) => !sent.some((comment) => comment.id === id)));
            onSent();
          }}
        />
      )}
    </div>
  );
}

function useDiffStyle(): [DiffStyle, (style: DiffStyle) => void] {
  const [style, setStyle] = useState<DiffStyle>(() => (readStored("diffs") === "split" ? "split" : "unified"));
  return [
    style,
    (chosen) => {
      setStyle(chosen);
      writeStored("diffs", chosen);
    },
  ];
}

function Toolbar({
  files,
  viewedCount,
  words,
  onWords,
  foundCount,
  diffStyle,
  onDiffStyle,
  areOpen,
  onOpenAll,
}: {
  files: readonly ChangedFile[];
  viewedCount: number;
  words: string;
  onWords: (words: string) => void;
  /** How many files have the words; null: none are sought. */
  foundCount: number | null;
  diffStyle: DiffStyle;
  onDiffStyle: (style: DiffStyle) => void;
  areOpen: boolean;
  onOpenAll: (opened: boolean) => void;
}) {
  const texts = useSessionTexts().changes;
  const id = useId();
  const other = diffStyle === "split" ? "unified" : "split";
  return (
    <div className="flex flex-wrap items-center gap-x-3 gap-y-2 text-xs text-muted">
      <span>
        {texts.files(files.length)}{" "}
        <LineCount
          added={files.reduce((sum, file) => sum + file.added, 0)}
          removed={files.reduce((sum, file) => sum + file.removed, 0)}
        />
      </span>
      <output>
        {foundCount === null
          ? viewedCount > 0 && texts.viewedCount(viewedCount, files.length)
          : texts.found(foundCount)}
      </output>
      <div className="ms-auto flex flex-wrap items-center gap-1">
        <label htmlFor={id} className="sr-only">
          {texts.search}
        </label>
        <input
          id={id}
          type="search"
          className="field w-44"
          placeholder={texts.search}
          value={words}
          onChange={({ target }) => onWords(target.value)}
        />
        <button type="button" className="button button-quiet" onClick={() => onOpenAll(!areOpen)}>
          {areOpen ? texts.closeAll : texts.openAll}
        </button>
        <button type="button" className="button button-quiet" title={texts[other]} onClick={() => onDiffStyle(other)}>
          <Icon name={other} />
          <span className="sr-only">{texts[other]}</span>
        </button>
      </div>
    </div>
  );
}

function SendComments({
  sessionId,
  comments,
  onDiscard,
  onSent,
}: {
  sessionId: string;
  comments: readonly Comment[];
  onDiscard: () => void;
  onSent: (sent: readonly Comment[]) => void;
}) {
  const texts = useSessionTexts().comments;
  const send = useMutation({
    mutationFn: (sent: readonly Comment[]) =>
      client.session.message(sessionId, { message: reviewMessage(sent, texts) }),
    onSuccess: (_, sent) => {
      announce(texts.sent);
      onSent(sent);
    },
  });
  return (
    <div className="sticky bottom-3 z-20 mx-auto flex w-fit flex-wrap items-center gap-2 rounded-lg border border-line bg-surface px-3 py-2 shadow-xl">
      <span className="pe-2 text-sm font-medium">{texts.count(comments.length)}</span>
      <button
        type="button"
        className="button button-primary"
        disabled={send.isPending}
        onClick={() => send.mutate(comments)}
      >
        <Icon name="send" />
        {texts.send}
      </button>
      <button type="button" className="button button-quiet" onClick={onDiscard}>
        {texts.discard}
      </button>
      <ErrorText error={send.error} />
    </div>
  );
}

/** Keys that go from file to file, and mark one as viewed. */
function useFileShortcuts(
  files: readonly ChangedFile[],
  isViewed: (file: ChangedFile) => boolean,
  setViewed: (file: ChangedFile, isViewed: boolean) => void,
): void {
  const { keys, tabs } = useSessionTexts();
  const elements = (): HTMLElement[] => [...document.querySelectorAll<HTMLElement>("[data-file]")];
  const current = (): number => elements().findIndex((element) => element.contains(document.activeElement));
  const move = (by: 1 | -1): void => {
    const next = elements()[current() + by] ?? (by === 1 ? elements()[0] : undefined);
    next?.querySelector("button")?.focus();
    next?.scrollIntoView({ block: "nearest" });
  };
  useShortcuts(tabs.changes, [
    { keys: "]", does: keys.nextFile, run: () => move(1), isCommand: false },
    { keys: "[", does: keys.previousFile, run: () => move(-1), isCommand: false },
    {
      keys: "v",
      does: keys.viewed,
      run: () => {
        const file = files.find(({ key }) => key === elements()[current()]?.dataset["file"]);
        if (file !== undefined) setViewed(file, !isViewed(file));
      },
      isCommand: false,
    },
  ]);
}
