import { Link, Outlet, useLocation, useNavigate } from "@tanstack/react-router";
import { useMutation, useQueryClient } from "@tanstack/react-query";
import type { ReactNode } from "react";
import icon from "./icon.svg";
import { client } from "./query.ts";

export function Layout() {
  const { pathname } = useLocation();
  return (
    <div className="flex min-h-dvh flex-col">
      <a
        href="#main"
        className="sr-only focus:not-sr-only focus:absolute focus:z-10 focus:m-2 focus:rounded focus:bg-surface focus:p-2"
      >
        Skip to the content
      </a>
      <header className="border-b border-line bg-surface">
        <div className="mx-auto flex max-w-5xl items-center gap-4 px-4 py-2.5">
          <Link to="/" className="flex items-center gap-2 font-semibold">
            <img src={icon} alt="" className="size-6" />
            Offstage
          </Link>
          <nav aria-label="Main" className="ml-auto flex items-center gap-4 text-sm">
            {pathname !== "/sign-in" && (
              <>
                <Link to="/settings" className="text-muted hover:text-ink">
                  Settings
                </Link>
                <Link to="/audit" className="text-muted hover:text-ink">
                  Audit
                </Link>
              </>
            )}
            <a href="/reference" className="text-muted hover:text-ink">
              API
            </a>
            {pathname !== "/sign-in" && <SignOut />}
          </nav>
        </div>
      </header>
      <main id="main" className="mx-auto w-full max-w-5xl flex-1 px-4 py-6">
        <Outlet />
      </main>
    </div>
  );
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
    <button type="button" className="cursor-pointer text-muted hover:text-ink" onClick={() => signOut.mutate()}>
      Sign out
    </button>
  );
}

export function NotFound() {
  return (
    <Notice title="There is no such page">
      <Link to="/" className="text-accent underline">
        Go to the sessions
      </Link>
    </Notice>
  );
}

/** A page that has nothing but something to say. */
export function Notice({ title, children }: { title: string; children?: ReactNode }) {
  return (
    <div className="mx-auto max-w-md py-16 text-center">
      <h1 className="text-lg font-semibold">{title}</h1>
      <div className="mt-2 text-muted">{children}</div>
    </div>
  );
}

/** What went wrong, said aloud by screen readers as well. */
export function ErrorText({ error }: { error: Error | null }) {
  return (
    <p role="alert" className="text-sm text-bad empty:hidden">
      {error?.message}
    </p>
  );
}
