import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useNavigate, useSearch } from "@tanstack/react-router";
import { Tabs } from "radix-ui";
import { lazy, Suspense, useCallback, useEffect, useRef, useState, type ReactNode, type RefObject } from "react";
import { ClientError } from "../../client.ts";
import type { SessionDetail } from "../../domain/sessions/session.ts";
import { isFinal } from "../../domain/sessions/status.ts";
import { Absent, ErrorText, Loading, Notice } from "../elements/notice.tsx";
import { useMedia } from "../elements/use-media.ts";
import { useTitle } from "../elements/use-title.ts";
import { client, isShared } from "../query.ts";
import { useReadWhileSeen } from "../read-marks.ts";
import { Answers } from "../session/answers.tsx";
import { Conversation } from "../session/conversation.tsx";
import { Details, HeadActions, TitleLine } from "../session/head.tsx";
import { useSessionView } from "../session/view/use-session-view.ts";
import { useShortcuts } from "../shell/shortcuts.ts";
import { useSessionTexts } from "../texts/session.ts";
import { searchOfPage } from "../elements/search-of-page.ts";

const Changes = lazy(() =>
  import("../session/changes/changes.tsx").then(({ Changes: component }) => ({ default: component })),
);
const Files = lazy(() => import("../session/files/files.tsx").then(({ Files: component }) => ({ default: component })));
const Progress = lazy(() =>
  import("../session/progress/progress.tsx").then(({ Progress: component }) => ({ default: component })),
);

/** From this width on the conversation and its results are side by side. */
const wide = "(width >= 75rem)";

/** One session: its conversation, and beside it its changes, its progress, its answers. */
export function SessionPage({ id }: { id: string }) {
  const texts = useSessionTexts();
  const session = useQuery({
    queryKey: ["session", id],
    queryFn: () => client.session.get(id),
    // A session's place in the queue changes without an event of the session.
    refetchInterval: ({ state }) => (state.data?.status === "queued" && !isRefused(state.error) ? 3_000 : false),
  });
  useTitle(session.data?.title ?? texts.title);
  useEffect(() => {
    if (!isShared) return undefined;
    // Another link to the same session differs after the # alone, of which the browser makes no new page.
    const reload = (): void => location.reload();
    window.addEventListener("hashchange", reload);
    return () => window.removeEventListener("hashchange", reload);
  }, []);
  if (isShared && isRefused(session.error)) return <Notice title={texts.share.gone}>{texts.share.goneReason}</Notice>;
  if (session.data !== undefined) return <Session session={session.data} />;
  return (
    <div className="p-4">
      <Absent missing={texts.missing} error={session.error} reason={texts.missingReason} retry={session.refetch} />
    </div>
  );
}

const refusals: ReadonlySet<number> = new Set([401, 403, 404]);

/** Whether the server shows nothing, or nothing any more: asked again, it would say the same. */
function isRefused(error: Error | null): boolean {
  return error instanceof ClientError && refusals.has(error.status);
}

const allTabs = ["conversation", "changes", "files", "progress", "answers"] as const;
type Tab = (typeof allTabs)[number];
/** What whoever has a link to the session does not see. */
const notShared: ReadonlySet<Tab> = new Set(["files", "answers"]);

function Session({ session }: { session: SessionDetail }) {
  const { id, status } = session;
  const texts = useSessionTexts();
  const queries = useQueryClient();
  const onNews = useCallback(() => {
    void queries.invalidateQueries({ queryKey: ["session", id] });
    void queries.invalidateQueries({ queryKey: ["diff", id] });
    void queries.invalidateQueries({ queryKey: ["messages", id] });
  }, [queries, id]);
  const live = useSessionView(id, !isFinal(status), onNews);
  useReadWhileSeen(session);
  const isWide = useMedia(wide);
  const given = useSearch({ from: isShared ? "/shared/$id" : "/sessions/$id", shouldThrow: false });
  const { tab, file } = searchOfPage(given);
  const shown = allTabs.find((each) => each === tab) ?? (isWide ? "changes" : "conversation");
  const navigate = useNavigate();
  const show = (chosen: string): void => {
    void navigate({
      to: isShared ? "/shared/$id" : "/sessions/$id",
      params: { id },
      hash: true,
      search: chosen === "conversation" ? {} : { tab: chosen, ...(chosen === "files" && { file }) },
      replace: true,
      resetScroll: false,
    });
  };
  const open = (chosen: string | undefined): void =>
    void navigate({ to: "/sessions/$id", params: { id }, search: { tab: "files", file: chosen }, resetScroll: false });
  const frame = useRef<HTMLElement>(null);
  const field = useRef<HTMLTextAreaElement>(null);
  const head = useHeight(frame);
  useShortcuts(texts.keys.group, [
    { keys: "c", does: texts.keys.changes, run: () => show("changes") },
    ...(isShared ? [] : [{ keys: "f", does: texts.keys.files, run: () => show("files") }]),
    { keys: "t", does: texts.keys.progress, run: () => show("progress") },
    ...(isWide ? [] : [{ keys: "m", does: texts.keys.conversation, run: () => show("conversation") }]),
    ...(isShared ? [] : [{ keys: "u", does: texts.keys.back, run: () => void navigate({ to: "/" }) }]),
  ]);
  const actions = <HeadActions session={session} />;
  const conversation = (
    <Conversation session={session} live={live} actions={isWide ? null : actions} field={field} onSent={onNews} />
  );
  // The panel exists before its content is loaded: its tab refers to it.
  const panel = (value: Tab, content: ReactNode) => (
    <Tabs.Content value={value} className="outline-none">
      <Suspense fallback={<Loading lines={6} />}>{content}</Suspense>
    </Tabs.Content>
  );
  const panels = (
    <>
      {panel("changes", <Changes session={session} view={live.view} onSent={onNews} />)}
      {!isShared && panel("files", <Files id={id} isAtWork={!isFinal(status)} file={file ?? null} onOpen={open} />)}
      {panel("progress", <Progress session={session} view={live.view} />)}
      {!isShared && panel("answers", <Answers id={id} />)}
    </>
  );
  const title = <TitleLine session={session}>{isWide && <HeadActions session={session} />}</TitleLine>;
  const offered = allTabs.filter((each) => (each !== "conversation" || !isWide) && (!notShared.has(each) || !isShared));
  const tabs = <TabList tabs={offered} />;
  const problem = (
    <div className="px-3 pt-3 empty:hidden md:px-4">
      <ErrorText error={live.error} />
    </div>
  );
  if (!isWide) {
    return (
      <Tabs.Root value={shown} onValueChange={show}>
        {/* Shows which session this is at any scroll position: below the bar of phones, which shared pages do not have. */}
        <div className={`sticky z-10 bg-ground md:top-0 ${isShared ? "top-0" : "top-12"}`}>
          {title}
          {tabs}
        </div>
        <Details session={session} view={live.view} />
        {problem}
        <Tabs.Content value="conversation" className="outline-none">
          {conversation}
        </Tabs.Content>
        {shown !== "conversation" && (
          <div className="space-y-3 px-3 pb-3 md:px-4">
            {actions}
            {panels}
          </div>
        )}
      </Tabs.Root>
    );
  }
  return (
    <Tabs.Root value={shown === "conversation" ? "changes" : shown} onValueChange={show}>
      <header ref={frame} className="sticky top-0 z-20 border-b border-line bg-ground">
        {title}
        <Details session={session} view={live.view} />
      </header>
      {problem}
      <div className="grid grid-cols-[minmax(0,1fr)_minmax(0,1fr)]">
        <div className="mx-auto w-full max-w-3xl min-w-0">{conversation}</div>
        <div
          className="sticky flex flex-col border-s border-line"
          style={{ top: head, height: `calc(100dvh - ${head}px)` }}
        >
          {tabs}
          {/* What is for screen readers alone is placed in it: else it would make the document longer than the page. */}
          <div className="relative min-h-0 flex-1 overflow-y-auto p-4">{panels}</div>
        </div>
      </div>
    </Tabs.Root>
  );
}

function TabList({ tabs }: { tabs: readonly Tab[] }) {
  const texts = useSessionTexts().tabs;
  return (
    <Tabs.List aria-label={texts.list} className="flex gap-1 overflow-x-auto border-b border-line px-3">
      {tabs.map((tab) => (
        <TabButton key={tab} value={tab}>
          {texts[tab]}
        </TabButton>
      ))}
    </Tabs.List>
  );
}

function TabButton({ value, children }: { value: string; children: ReactNode }) {
  return (
    <Tabs.Trigger
      value={value}
      className="-mb-px cursor-pointer border-b-2 border-transparent px-2 py-2 text-sm font-medium text-muted -outline-offset-2 hover:text-ink data-[state=active]:border-accent data-[state=active]:text-ink"
    >
      {children}
    </Tabs.Trigger>
  );
}

/** The height of an element, in pixels, as it is. */
function useHeight(element: RefObject<HTMLElement | null>): number {
  const [height, setHeight] = useState(0);
  useEffect(() => {
    if (element.current === null) return undefined;
    const resized = new ResizeObserver(([entry]) => {
      if (entry !== undefined) setHeight(entry.target.getBoundingClientRect().height);
    });
    resized.observe(element.current);
    return () => resized.disconnect();
  }, [element]);
  return height;
}
