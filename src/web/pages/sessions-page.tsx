import { useInfiniteQuery } from "@tanstack/react-query";
import { Link, useNavigate, useSearch } from "@tanstack/react-router";
import { useEffect, useId, useState } from "react";
import type { SessionDetail } from "../../domain/session.ts";
import { ErrorText } from "../layout.tsx";
import { NewSession } from "../new-session.tsx";
import { client } from "../query.ts";
import { ShowMore } from "../show-more.tsx";
import { StatusBadge } from "../status-badge.tsx";
import { Ago } from "../time.tsx";

/** All sessions, the newest first, or those that a search finds. */
export function SessionsPage() {
  const { q } = useSearch({ from: "/" });
  const sessions = useInfiniteQuery({
    queryKey: ["sessions", q ?? ""],
    queryFn: ({ pageParam }) => {
      const page = { limit: 30, cursor: pageParam };
      return q === undefined ? client.session.list(page) : client.session.search(q, page);
    },
    initialPageParam: undefined as string | undefined,
    getNextPageParam: (page) => page.nextCursor ?? undefined,
    refetchInterval: 3_000,
  });
  useEffect(() => {
    document.title = "Sessions · Offstage";
  }, []);
  const found = sessions.data?.pages.flatMap((page) => page.sessions);
  return (
    <div className="space-y-4">
      <div className="flex flex-wrap items-center gap-3">
        <h1 className="mr-auto text-xl font-semibold">Sessions</h1>
        <Search />
        <NewSession />
      </div>
      <ErrorText error={sessions.error} />
      {found === undefined && sessions.error === null && <p className="text-muted">Loading the sessions …</p>}
      {found?.length === 0 && <Empty searched={q !== undefined} />}
      {found !== undefined && found.length > 0 && (
        <ul aria-label="Sessions" className="card divide-y divide-line">
          {found.map((session) => (
            <Row key={session.id} session={session} />
          ))}
        </ul>
      )}
      <ShowMore list={sessions} />
    </div>
  );
}

function Search() {
  const { q } = useSearch({ from: "/" });
  const [text, setText] = useState(q ?? "");
  const navigate = useNavigate();
  const fieldId = useId();
  return (
    <search>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          void navigate({ to: "/", search: text.trim() === "" ? {} : { q: text.trim() } });
        }}
      >
        <label htmlFor={fieldId} className="sr-only">
          Search sessions
        </label>
        <input
          id={fieldId}
          type="search"
          className="field"
          placeholder="Search"
          value={text}
          onChange={(event) => setText(event.target.value)}
        />
      </form>
    </search>
  );
}

function Row({ session }: { session: SessionDetail }) {
  const pullRequest = session.pullRequests[0];
  return (
    <li className="relative flex flex-wrap items-center gap-x-3 gap-y-1 px-4 py-3 hover:bg-sunken">
      <div className="min-w-0 flex-1 basis-56">
        <Link
          to="/sessions/$id"
          params={{ id: session.id }}
          className="font-medium break-words after:absolute after:inset-0"
        >
          {session.title}
        </Link>
        <p className="text-sm break-all text-muted">
          {session.repositories.map(({ name }) => name).join(", ") || "No repository"} · <Ago at={session.createdAt} />
          {pullRequest !== undefined && ` · pull request #${pullRequest.number}`}
        </p>
      </div>
      <StatusBadge status={session.status} />
    </li>
  );
}

function Empty({ searched }: { searched: boolean }) {
  return (
    <div className="card px-4 py-12 text-center text-muted">
      {searched
        ? "No session has these words."
        : "No sessions yet. Start one here, with `offstage run`, or through the API."}
    </div>
  );
}
