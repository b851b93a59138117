import { Link, Outlet, useLocation, useMatches, useRouterState } from "@tanstack/react-router";
import { lazy, Suspense, useEffect, useRef, useState, type RefObject } from "react";
import { Announcements } from "../elements/announce.tsx";
import { Icon } from "../elements/icon.tsx";
import { Notice } from "../elements/notice.tsx";
import { isShared } from "../query.ts";
import { useShellTexts } from "../texts/shell.ts";
import { useGoTo } from "./pages.ts";
import { Brand, Rail, railId, type Overlay } from "./rail.tsx";
import { listenForShortcuts, useShortcuts } from "./shortcuts.ts";

const Palette = lazy(() => import("./palette.tsx").then(({ Palette: component }) => ({ default: component })));
const HelpSheet = lazy(() => import("./help-sheet.tsx").then(({ HelpSheet: component }) => ({ default: component })));
const Display = lazy(() => import("./display.tsx").then(({ Display: component }) => ({ default: component })));

/** Frame of every page: navigation, main content, and what can be opened everywhere. */
export function Layout() {
  const texts = useShellTexts();
  const { pathname } = useLocation();
  const main = useFocusOnNewPage();
  const [overlay, setOverlay] = useState<Overlay | null>(null);
  // The pages of a program's mistake and of a shared session need no sign-in.
  const isSignedIn = pathname !== "/sign-in" && pathname !== "/authorize" && !isShared;
  const isWide = useMatches({ select: (matches) => matches.some(({ staticData }) => staticData.isWide === true) });
  useEffect(listenForShortcuts, []);
  return (
    <div className="flex min-h-dvh flex-col md:flex-row">
      <a
        href="#main"
        onClick={(event) => {
          // The fragment of a shared session's address is its secret.
          event.preventDefault();
          main.current?.focus();
        }}
        className="sr-only focus:not-sr-only focus:absolute focus:z-40 focus:m-2 focus:rounded focus:bg-surface focus:p-2"
      >
        {texts.skip}
      </a>
      {isSignedIn && (
        <>
          <TopBar onOpen={setOverlay} />
          <Rail onOpen={setOverlay} />
          <Everywhere onOpen={setOverlay} />
        </>
      )}
      <main
        id="main"
        ref={main}
        tabIndex={-1}
        className={`w-full min-w-0 flex-1 outline-none ${isWide ? "" : "mx-auto max-w-5xl px-4 py-5 md:px-6"}`}
      >
        <Outlet />
      </main>
      <Announcements />
      <Suspense>
        {overlay === "palette" && <Palette onClosed={() => setOverlay(null)} onOpen={setOverlay} />}
        {overlay === "help" && <HelpSheet onClosed={() => setOverlay(null)} />}
        {overlay === "display" && <Display onClosed={() => setOverlay(null)} />}
      </Suspense>
    </div>
  );
}

/** On a phone: the name, and what opens the rest. */
function TopBar({ onOpen }: { onOpen: (overlay: Overlay) => void }) {
  const texts = useShellTexts();
  return (
    <header className="sticky top-0 z-20 flex h-12 items-center gap-1 border-b border-line bg-ground px-2 md:hidden">
      <button type="button" className="button button-quiet" popoverTarget={railId} aria-label={texts.openNavigation}>
        <Icon name="menu" />
      </button>
      <Brand />
      <button
        type="button"
        className="button button-quiet ms-auto"
        aria-label={texts.search}
        onClick={() => onOpen("palette")}
      >
        <Icon name="search" />
      </button>
    </header>
  );
}

/** The shortcuts of every page. */
function Everywhere({ onOpen }: { onOpen: (overlay: Overlay) => void }) {
  const texts = useShellTexts();
  const goTo = useGoTo();
  useShortcuts(texts.keys.everywhere, [
    { keys: "Mod+k", does: texts.search, run: () => onOpen("palette"), isCommand: false },
    { keys: "?", does: texts.shortcuts, run: () => onOpen("help") },
    ...goTo,
  ]);
  return null;
}

/** Moves the focus to the beginning of a new page, for keyboards and screen readers; not on the first page. */
function useFocusOnNewPage(): RefObject<HTMLElement | null> {
  const main = useRef<HTMLElement>(null);
  // The resolved location changes once the page is drawn: until then the link that was followed has the focus.
  const pathname = useRouterState({ select: ({ resolvedLocation }) => resolvedLocation?.pathname });
  const shown = useRef(pathname);
  useEffect(() => {
    const before = shown.current;
    shown.current = pathname;
    if (before === undefined || before === pathname) return;
    const rail = document.getElementById(railId);
    if (rail?.matches(":popover-open") === true) rail.hidePopover();
    // Keep a focus that the page itself has set.
    if (main.current?.contains(document.activeElement) !== true) main.current?.focus({ preventScroll: true });
  }, [pathname]);
  return main;
}

/** Page for an unknown address. */
export function NotFound() {
  const texts = useShellTexts();
  return (
    <Notice title={texts.notFound}>
      <Link to="/" className="text-accent underline">
        {texts.toSessions}
      </Link>
    </Notice>
  );
}

/** In place of a page that failed: most often its code can't be loaded, because the server has a newer version. */
export function FailedPage() {
  const texts = useShellTexts();
  return (
    <Notice title={texts.failed}>
      <button type="button" className="button" onClick={() => location.reload()}>
        {texts.reload}
      </button>
    </Notice>
  );
}

declare module "@tanstack/react-router" {
  interface StaticDataRouteOption {
    /** Whether the page takes the whole width, and makes its own margins. */
    isWide?: boolean;
  }
}
