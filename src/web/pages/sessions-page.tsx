import { useNavigate, useSearch } from "@tanstack/react-router";
import { useId, useState } from "react";
import { sessionStatuses } from "../../domain/sessions/status.ts";
import { PagedList } from "../elements/paged-list.tsx";
import { Select } from "../elements/select.tsx";
import { SessionRow } from "../elements/session-row.tsx";
import { statusLabel } from "../elements/status-badge.tsx";
import { useTitle } from "../elements/use-title.ts";
import { NewSession } from "../new-session.tsx";
import { client } from "../query.ts";

const statuses = sessionStatuses.map((status) => ({ value: status, name: statusLabel(status) }));

const askers = [{ value: "me", name: "Me" }] as const;

/** Sessions, the newest first, filtered by status, who asked, or search. */
export function SessionsPage() {
  const { q, status, by } = useSearch({ from: "/" });
  const navigate = useNavigate();
  useTitle("Sessions");
  return (
    <div className="space-y-4">
      <div className="flex flex-wrap items-center gap-3">
        <h1 className="mr-auto text-xl font-semibold">Sessions</h1>
        <div className="order-last grid w-full grid-cols-2 gap-3 sm:order-none sm:flex sm:w-auto">
          <Search />
          <Select
            label="Status"
            value={status}
            all="All statuses"
            options={statuses}
            onChange={(chosen) => void navigate({ to: "/", search: { q, status: chosen, by }, replace: true })}
          />
          <Select
            label="Asked by"
            value={by}
            all="Everybody"
            options={askers}
            onChange={(chosen) => void navigate({ to: "/", search: { q, status, by: chosen }, replace: true })}
          />
        </div>
        <NewSession />
      </div>
      <PagedList
        label="Sessions"
        queryKey={["sessions", q ?? "", status ?? "", by ?? ""]}
        readPage={(cursor) => {
          const page = { limit: 30, cursor, status, requestedBy: by };
          return q === undefined ? client.session.list(page) : client.session.search(q, page);
        }}
        itemsOf={(page) => page.sessions}
        refreshMs={3_000}
        empty={emptyText(q, status !== undefined || by !== undefined)}
      >
        {(session) => <SessionRow key={session.id} session={session} />}
      </PagedList>
    </div>
  );
}

function emptyText(q: string | undefined, isFiltered: boolean): string {
  if (isFiltered) return "Nothing matches this filter.";
  if (q !== undefined) return "No session has these words.";
  return "No sessions yet. Start one here, with offstage run, or through the API.";
}

function Search() {
  const { q, status, by } = useSearch({ from: "/" });
  const [text, setText] = useState(q ?? "");
  const [asked, setAsked] = useState(q);
  const navigate = useNavigate();
  const fieldId = useId();
  // The browser's back and forward buttons change the words too.
  if (asked !== q) {
    setAsked(q);
    setText(q ?? "");
  }
  const search = (words: string): void => {
    void navigate({ to: "/", search: { q: words.trim() === "" ? undefined : words.trim(), status, by } });
  };
  return (
    <search className="min-w-0">
      <form
        onSubmit={(event) => {
          event.preventDefault();
          search(text);
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
          onChange={(event) => {
            setText(event.target.value);
            // The field's clear button must show the whole list at once.
            if (event.target.value === "" && q !== undefined) search("");
          }}
        />
      </form>
    </search>
  );
}
