import { useQueryClient } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { lazy, Suspense, useCallback, useRef, useState } from "react";
import type { SessionDetail } from "../../domain/sessions/session.ts";
import { isFinal } from "../../domain/sessions/status.ts";
import { announce } from "../elements/announce.tsx";
import { ErrorText, Loading } from "../elements/notice.tsx";
import { SessionRow } from "../elements/sessions/session-row.tsx";
import { useTitle } from "../elements/use-title.ts";
import { useSessionFilter } from "../home/filter.ts";
import { Filters } from "../home/filters.tsx";
import { fewSessions } from "../home/first-steps.ts";
import { LongList, ShortList } from "../home/list.tsx";
import { SelectionBar } from "../home/selection.tsx";
import { formatUnread, UnreadBar, useOnlyUnread, useReadAll } from "../home/unread-bar.tsx";
import { useMovingFocus } from "../home/use-moving-focus.ts";
import { useSessions, type Sessions } from "../home/use-sessions.ts";
import { client, useMay } from "../query.ts";
import { useUnread, type Unread } from "../read-marks.ts";
import { useShortcuts, type Shortcut } from "../shell/shortcuts.ts";
import { useElementTexts } from "../texts/elements.ts";
import { useHomeTexts } from "../texts/home.ts";

const Composer = lazy(() => import("../home/composer.tsx").then(({ Composer: component }) => ({ default: component })));
const FirstRun = lazy(() =>
  import("../home/first-run.tsx").then(({ FirstRun: component }) => ({ default: component })),
);

/** How many sessions of a group for review are shown before the user asks for all. */
const fewReviews = 5;

/**
 * All sessions: those that need a person, are running, are to be reviewed, and have ended; and a field that starts one.
 */
export function SessionsPage() {
  const texts = useHomeTexts();
  const [filter] = useSessionFilter();
  const sessions = useSessions(filter);
  const maySteer = useMay("write");
  const searchField = useRef<HTMLInputElement>(null);
  const promptField = useRef<HTMLTextAreaElement>(null);
  const unread = useUnread();
  useTitle(unread !== null && unread.count > 0 ? `(${formatUnread(unread)}) ${texts.title}` : texts.title);
  useShortcuts(texts.title, [
    { keys: "/", does: texts.keys.search, run: () => searchField.current?.focus() },
    ...(maySteer ? [{ keys: "n", does: texts.keys.compose, run: () => promptField.current?.focus() }] : []),
  ]);
  return (
    <div className="mx-auto max-w-6xl space-y-4 py-4 md:px-6">
      <h1 className="sr-only">{texts.title}</h1>
      {maySteer && (
        <div className="px-3 md:px-0">
          <Suspense fallback={<div className="card h-28" />}>
            <Composer field={promptField} />
          </Suspense>
        </div>
      )}
      <div className="flex flex-wrap items-start gap-x-4 gap-y-1 px-3 md:px-0">
        <div className="min-w-0 flex-1 basis-full lg:basis-0">
          <Filters searchField={searchField} />
        </div>
        <UnreadBar unread={unread} />
      </div>
      <Found sessions={sessions} maySteer={maySteer} unread={unread} />
    </div>
  );
}

/** The sessions, in groups if nothing was sought, with keys that move between them all. */
function Found({ sessions, maySteer, unread }: { sessions: Sessions; maySteer: boolean; unread: Unread | null }) {
  const texts = useHomeTexts();
  const { tryAgain } = useElementTexts();
  const [filter] = useSessionFilter();
  const [showsAllReviews, setShowsAllReviews] = useState(false);
  const [selected, setSelected] = useState<ReadonlySet<string>>(new Set());
  const { person, work, rest } = sessions;
  const review = showsAllReviews ? sessions.review : sessions.review.slice(0, fewReviews);
  const shown = [...person, ...work, ...review, ...rest];
  const focus = useMovingFocus(shown.map(({ id }) => id));
  const toggle = useCallback((id: string): void => {
    setSelected((before) => {
      const after = new Set(before);
      if (!after.delete(id)) after.add(id);
      return after;
    });
  }, []);
  const ofUnread = useUnreadShortcuts({ focus, shown, unread });
  useListShortcuts({ ofUnread, focus, shown, toggle: maySteer ? toggle : null, clear: () => setSelected(new Set()) });
  const row = (session: SessionDetail) => (
    <SessionRow
      session={session}
      isWanted={focus.wanted === session.id}
      isSelected={selected.has(session.id)}
      onSelect={maySteer ? toggle : null}
    />
  );
  if (sessions.error !== null && shown.length === 0) {
    return (
      <div className="space-y-3 px-3 md:px-0">
        <ErrorText error={sessions.error} />
        <button type="button" className="button" onClick={sessions.retry}>
          {tryAgain}
        </button>
      </div>
    );
  }
  if (sessions.isLoading && shown.length === 0) return <Loading lines={10} />;
  const isNarrowed = Object.values(filter).some((value) => value !== undefined);
  const isFirstRun = maySteer && !isNarrowed && !sessions.hasMore && shown.length <= fewSessions;
  const firstRun = isFirstRun && (
    <Suspense>
      <FirstRun />
    </Suspense>
  );
  if (shown.length === 0) {
    return (
      <>
        <Empty isNarrowed={isNarrowed} />
        {firstRun}
      </>
    );
  }
  const headings = { person: texts.groups.person, work: texts.groups.work, review: texts.groups.review };
  return (
    <>
      <ErrorText error={sessions.error} />
      {(["person", "work", "review"] as const).map((group) => {
        const of = { person, work, review }[group];
        if (of.length === 0) return null;
        const all = sessions[group].length;
        return (
          <section key={group} aria-label={headings[group]}>
            <GroupHeading name={headings[group]} count={all} isUrgent={group === "person"} />
            <ShortList label={headings[group]} sessions={of}>
              {row}
            </ShortList>
            {group === "review" && all > fewReviews && (
              <button
                type="button"
                className="button button-quiet mt-1"
                onClick={() => setShowsAllReviews(!showsAllReviews)}
              >
                {showsAllReviews ? texts.showFewer : texts.showAll(all)}
              </button>
            )}
          </section>
        );
      })}
      {rest.length > 0 && (
        <section aria-label={texts.groups.done}>
          <h2 className="sr-only">{texts.groups.done}</h2>
          <LongList
            key={JSON.stringify(filter)}
            label={texts.groups.done}
            sessions={rest}
            wanted={focus.wanted}
            hasMore={sessions.hasMore}
            loadMore={sessions.loadMore}
          >
            {row}
          </LongList>
        </section>
      )}
      {firstRun}
      <SelectionBar selected={shown.filter(({ id }) => selected.has(id))} onDone={() => setSelected(new Set())} />
    </>
  );
}

function GroupHeading({ name, count, isUrgent }: { name: string; count: number; isUrgent: boolean }) {
  return (
    <h2 className={`label px-3 pb-1.5 ${isUrgent ? "text-warn" : ""}`}>
      {name} <span className="font-normal tabular-nums">{count}</span>
    </h2>
  );
}

function Empty({ isNarrowed }: { isNarrowed: boolean }) {
  const { empty: texts, unread } = useHomeTexts();
  const [{ q, unread: isUnread }] = useSessionFilter();
  const narrowed = isUnread === true ? unread.none : texts.filtered;
  const maySteer = useMay("write");
  return (
    <div className={`px-4 text-center ${maySteer && !isNarrowed ? "pt-6 pb-2" : "py-16"}`}>
      {isNarrowed ? (
        <p className="text-muted">{q === undefined ? narrowed : texts.searched}</p>
      ) : (
        <>
          <p className="font-medium">{texts.title}</p>
          <p className="mx-auto mt-1 max-w-md text-sm text-muted">{maySteer ? texts.text : texts.reader}</p>
        </>
      )}
    </div>
  );
}

/** Keys for unread sessions, if the signed-in user has marks at all. */
function useUnreadShortcuts({
  focus,
  shown,
  unread,
}: {
  focus: ReturnType<typeof useMovingFocus>;
  shown: readonly SessionDetail[];
  unread: Unread | null;
}): Shortcut[] {
  const { keys, unread: texts } = useHomeTexts();
  const readAll = useReadAll();
  const onlyUnread = useOnlyUnread();
  const next = (): void => {
    const at = shown.findIndex(({ id }) => id === focus.current());
    const found = [...shown.slice(at + 1), ...shown.slice(0, Math.max(at, 0))].find((session) => session.unread);
    if (found === undefined) announce(texts.none);
    else focus.to(found.id);
  };
  if (unread === null) return [];
  return [
    { keys: "i", does: keys.nextUnread, run: next, isCommand: false },
    { keys: "I", does: texts.only, run: onlyUnread },
    { keys: "M", does: texts.readAll, run: () => (unread.count === 0 ? announce(texts.none) : readAll()) },
  ];
}

function useListShortcuts({
  ofUnread,
  focus,
  shown,
  toggle,
  clear,
}: {
  ofUnread: readonly Shortcut[];
  focus: ReturnType<typeof useMovingFocus>;
  shown: readonly SessionDetail[];
  toggle: ((id: string) => void) | null;
  clear: () => void;
}): void {
  const { keys } = useHomeTexts();
  const navigate = useNavigate();
  const queries = useQueryClient();
  const withCurrent = (then: (session: SessionDetail) => void) => (): void => {
    const session = shown.find(({ id }) => id === focus.current());
    if (session !== undefined) then(session);
  };
  const open = withCurrent(({ id }) => void navigate({ to: "/sessions/$id", params: { id } }));
  const archive = withCurrent(({ id, status }) => {
    if (!isFinal(status) && status !== "draft") return;
    void client.session.archive(id).then(
      () => {
        announce(keys.archived);
        return queries.invalidateQueries({ queryKey: ["sessions"] });
      },
      (error: Error) => announce(error.message),
    );
  });
  const openPullRequest = withCurrent(({ pullRequests: [first] }) => {
    if (first !== undefined) window.open(first.url, "_blank", "noopener,noreferrer");
  });
  const steps = { isCommand: false } as const;
  useShortcuts(keys.group, [
    { keys: "j", does: keys.next, run: () => focus.move(1), ...steps },
    { keys: "k", does: keys.previous, run: () => focus.move(-1), ...steps },
    { keys: "o", does: keys.open, run: open, ...steps },
    { keys: "p", does: keys.pullRequest, run: openPullRequest, ...steps },
    ...ofUnread,
    ...(toggle === null
      ? []
      : [
          { keys: "e", does: keys.archive, run: archive, ...steps },
          { keys: "x", does: keys.select, run: withCurrent(({ id }) => toggle(id)), ...steps },
          { keys: "Escape", does: keys.clear, run: clear, ...steps },
        ]),
  ]);
}
