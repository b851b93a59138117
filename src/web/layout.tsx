import { Link, Outlet, useLocation, useNavigate, useRouterState } from "@tanstack/react-router";
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useEffect, useRef, type ReactNode, type RefObject } from "react";
import { ClientError } from "../client.ts";
import icon from "./icon.svg";
import { client, useMe } from "./query.ts";

const navigationLink = "py-1 text-muted hover:text-ink";
/** Each with the scope that its operations need. */
const pages = [
  ["/", "Sessions", "read"],
  ["/automations", "Automations", "read"],
  ["/ledger", "Ledger", "read"],
  ["/webhooks", "Webhooks", "admin"],
  ["/settings", "Settings", "read"],
  ["/audit", "Audit", "admin"],
] as const;

/** Frame of every page: navigation and main content. */
export function Layout() {
  const { pathname } = useLocation();
  const main = useFocusOnNewPage();
  // The page of a program's mistake is for anybody.
  const isSignedIn = pathname !== "/sign-in" && pathname !== "/authorize";
  const scopes = useMe(isSignedIn).data?.scopes;
  return (
    <div className="flex min-h-dvh flex-col">
      <a
        href="#main"
        className="sr-only focus:not-sr-only focus:absolute focus:z-10 focus:m-2 focus:rounded focus:bg-surface focus:p-2"
      >
        Skip to the content
      </a>
      <header className="border-b border-line bg-surface">
        <div className="mx-auto flex max-w-5xl flex-wrap items-center gap-x-4 gap-y-2 px-4 py-2.5">
          <Link to="/" className="mr-auto flex items-center gap-2 font-semibold">
            <img src={icon} alt="" className="size-6" />
            Offstage
          </Link>
          {/* On a phone a line of its own, below the name and the way out. */}
          <nav
            aria-label="Main"
            className={`flex flex-wrap items-center gap-x-4 text-sm ${isSignedIn ? "order-last w-full md:order-none md:w-auto" : ""}`}
          >
            {isSignedIn &&
              pages
                // Until the scopes are known, what they decide has its place and is not seen: nothing moves for an admin.
                .filter(([, , scope]) => scopes === undefined || scopes.includes(scope))
                .map(([to, name, scope]) => (
                  <Link
                    key={to}
                    to={to}
                    className={`${navigationLink} aria-[current=page]:font-medium aria-[current=page]:text-ink ${scopes === undefined && scope === "admin" ? "invisible" : ""}`}
                    activeOptions={{ exact: to === "/", includeSearch: false }}
                  >
                    {name}
                  </Link>
                ))}
            <a href="/reference" className={navigationLink}>
              API
            </a>
          </nav>
          {isSignedIn && <SignOut />}
        </div>
      </header>
      <main id="main" ref={main} tabIndex={-1} className="mx-auto w-full max-w-5xl flex-1 px-4 py-6 outline-none">
        <Outlet />
      </main>
    </div>
  );
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
    // Keep a focus that the page itself has set.
    if (main.current?.contains(document.activeElement) !== true) main.current?.focus({ preventScroll: true });
  }, [pathname]);
  return main;
}

function SignOut() {
  const navigate = useNavigate();
  const queries = useQueryClient();
  const signOut = useMutation({
    mutationFn: () => client.login.delete(),
    onSuccess: async () => {
      await navigate({ to: "/sign-in" });
      queries.clear();
    },
  });
  return (
    <button type="button" className={`cursor-pointer text-sm ${navigationLink}`} onClick={() => signOut.mutate()}>
      Sign out
    </button>
  );
}

/** Page for an unknown address. */
export function NotFound() {
  return (
    <Notice title="There is no such page">
      <Link to="/" className="text-accent underline">
        Go to the sessions
      </Link>
    </Notice>
  );
}

/** A page with nothing but a message. */
export function Notice({ title, children }: { title: string; children?: ReactNode }) {
  return (
    <div className="mx-auto max-w-md py-16 text-center">
      <h1 className="text-lg font-semibold">{title}</h1>
      <div className="mt-2 text-muted">{children}</div>
    </div>
  );
}

/** In place of an object that is loading, does not exist, or can't be loaded. */
export function Absent({
  noun,
  error,
  reason,
  retry,
}: {
  noun: string;
  /** Null while it is loading. */
  error: Error | null;
  /** Why it may not exist. */
  reason: string;
  retry: () => Promise<unknown>;
}) {
  if (error === null) return <p className="py-16 text-center text-muted">Loading the {noun} …</p>;
  if (error instanceof ClientError && (error.status === 404 || error.status === 400)) {
    return <Notice title={`There is no such ${noun}`}>{reason}</Notice>;
  }
  return (
    <Notice title={`The ${noun} could not be loaded`}>
      <p className="first-letter:uppercase">{sentenceOf(error)}</p>
      <button type="button" className="button mt-4" onClick={() => void retry()}>
        Try again
      </button>
    </Notice>
  );
}

/** An error's message, which screen readers announce. */
export function ErrorText({ error }: { error: Error | null }) {
  // No empty element: it would have a gap.
  if (error === null) return null;
  return (
    <p role="alert" className="text-sm break-words text-bad first-letter:uppercase">
      {sentenceOf(error)}
    </p>
  );
}

/** Browsers throw a TypeError with differing messages if the server can't be reached. */
function sentenceOf(error: Error): string {
  return error instanceof TypeError ? "The server can’t be reached. Is it running, and are you online?" : error.message;
}
