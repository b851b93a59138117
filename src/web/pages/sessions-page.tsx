import { Link, useNavigate, useSearch } from "@tanstack/react-router";
import { useId, useState } from "react";
import type { SessionDetail } from "../../domain/session.ts";
import { NewSession } from "../new-session.tsx";
import { PagedList } from "../paged-list.tsx";
import { client } from "../query.ts";
import { StatusBadge } from "../status-badge.tsx";
import { Ago } from "../time.tsx";
import { useTitle } from "../use-title.ts";

/** All sessions, the newest first, or those that a search finds. */
export function SessionsPage() {
  const { q } = useSearch({ from: "/" });
  useTitle("Sessions");
  return (
    <div className="space-y-4">
      <div className="flex flex-wrap items-center gap-3">
        <h1 className="mr-auto text-xl font-semibold">Sessions</h1>
        <Search />
        <NewSession />
      </div>
      <PagedList
        label="Sessions"
        queryKey={["sessions", q ?? ""]}
        readPage={(cursor) => {
          const page = { limit: 30, cursor };
          return q === undefined ? client.session.list(page) : client.session.search(q, page);
        }}
        itemsOf={(page) => page.sessions}
        refreshMs={3_000}
        empty={
          q === undefined
            ? "No sessions yet. Start one here, with `offstage run`, or through the API."
            : "No session has these words."
        }
      >
        {(session) => <Row key={session.id} session={session} />}
      </PagedList>
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
