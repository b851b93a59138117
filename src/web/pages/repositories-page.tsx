import { useQueryClient } from "@tanstack/react-query";
import { useNavigate, useSearch } from "@tanstack/react-router";
import { useId, useRef, useState, type RefObject } from "react";
import type { Repository } from "../../domain/repositories/repository.ts";
import { ButtonDialog } from "../elements/dialog.tsx";
import { ErrorText, Loading } from "../elements/notice.tsx";
import { searchOfPage } from "../elements/search-of-page.ts";
import { useTitle } from "../elements/use-title.ts";
import { useMay } from "../query.ts";
import { ConnectForm } from "../repositories/connect-form.tsx";
import { RepositoryRow } from "../repositories/repository-row.tsx";
import { useRepositories } from "../repositories/use-repositories.ts";
import { useShortcuts } from "../shell/shortcuts.ts";
import { useElementTexts } from "../texts/elements.ts";
import { useRepositoryTexts } from "../texts/repositories.ts";

/** Rows that are drawn at first, and with each press of the button below them: each asks for its last session. */
const rowsAtOnce = 30;

/** The organization's repositories, found by their words. */
export function RepositoriesPage() {
  const texts = useRepositoryTexts();
  const { tryAgain } = useElementTexts();
  const given = useSearch({ from: "/repositories", shouldThrow: false });
  const { q = "" } = searchOfPage(given);
  const [rows, setRows] = useState(rowsAtOnce);
  const words = q.trim().toLowerCase();
  const fits = (repository: Repository): boolean => wordsOf(repository).includes(words);
  const { repositories, hasMore, error, retry } = useRepositories((all) => words === "" && all.length >= rows);
  const list = useRef<HTMLUListElement>(null);
  const field = useRef<HTMLInputElement>(null);
  useTitle(texts.title);
  useShortcuts(texts.keys.group, [
    { keys: "/", does: texts.keys.search, run: () => field.current?.focus() },
    { keys: "j", does: texts.keys.next, run: () => moveFocus(list, 1), isCommand: false },
    { keys: "k", does: texts.keys.previous, run: () => moveFocus(list, -1), isCommand: false },
  ]);
  const found = repositories?.filter(fits) ?? [];
  return (
    <div className="space-y-4">
      <div className="flex flex-wrap items-center gap-3">
        <h1 className="me-auto text-xl font-semibold">{texts.title}</h1>
        <Connect />
      </div>
      <Search
        field={field}
        q={q}
        onList={() => moveFocus(list, 1)}
        status={
          repositories !== undefined && repositories.length > 0 && words !== ""
            ? texts.count(found.length, repositories.length, hasMore)
            : ""
        }
      />
      {error !== null && (
        <div className="space-y-3">
          <ErrorText error={error} />
          <button type="button" className="button" onClick={() => void retry()}>
            {tryAgain}
          </button>
        </div>
      )}
      {repositories === undefined && error === null && <Loading lines={8} />}
      {repositories !== undefined && found.length === 0 && !(hasMore && words !== "") && (
        <Empty isNarrowed={words !== ""} />
      )}
      {found.length > 0 && (
        <ul ref={list} aria-label={texts.title} className="card divide-y divide-line">
          {found.slice(0, rows).map((repository) => (
            <RepositoryRow key={repository.id} repository={repository} />
          ))}
        </ul>
      )}
      {(found.length > rows || (words === "" && hasMore)) && <More onMore={() => setRows(rows + rowsAtOnce)} />}
    </div>
  );
}

/** The texts by which a repository is found. */
function wordsOf({ name, url, description }: Repository): string {
  return `${name} ${url} ${description ?? ""}`.toLowerCase();
}

/** Moves the focus by so many rows; to the first if none has it. */
function moveFocus(list: RefObject<HTMLUListElement | null>, by: 1 | -1): void {
  const links = [...(list.current?.querySelectorAll<HTMLElement>("a[data-row]") ?? [])];
  const row = document.activeElement?.closest("li");
  const index = links.findIndex((link) => row?.contains(link) === true);
  (index === -1 ? links[0] : links[index + by])?.focus();
}

function Connect() {
  const texts = useRepositoryTexts().connect;
  const queries = useQueryClient();
  const navigate = useNavigate();
  const may = useMay("write");
  if (!may) return null;
  return (
    <ButtonDialog button={texts.button} className="button button-primary" title={texts.button}>
      {() => (
        <ConnectForm
          onConnected={async ({ id }) => {
            await queries.invalidateQueries({ queryKey: ["repositories"] });
            await navigate({ to: "/repositories/$id", params: { id } });
          }}
        />
      )}
    </ButtonDialog>
  );
}

function Search({
  field,
  q,
  status,
  onList,
}: {
  field: RefObject<HTMLInputElement | null>;
  q: string;
  /** How many were found. */
  status: string;
  /** Moves the focus into the list. */
  onList: () => void;
}) {
  const texts = useRepositoryTexts();
  const navigate = useNavigate();
  const id = useId();
  return (
    <search className="flex flex-wrap items-center gap-3">
      <form
        className="w-full sm:w-80"
        onSubmit={(event) => {
          event.preventDefault();
          onList();
        }}
      >
        <label htmlFor={id} className="sr-only">
          {texts.find}
        </label>
        <input
          ref={field}
          id={id}
          type="search"
          className="field"
          placeholder={texts.findHint}
          value={q}
          onChange={({ target }) =>
            void navigate({
              to: "/repositories",
              search: target.value === "" ? {} : { q: target.value },
              replace: true,
              resetScroll: false,
            })
          }
          onKeyDown={(event) => {
            if (event.key !== "ArrowDown") return;
            event.preventDefault();
            onList();
          }}
        />
      </form>
      <output className="text-sm text-muted empty:absolute">{status}</output>
    </search>
  );
}

function Empty({ isNarrowed }: { isNarrowed: boolean }) {
  const texts = useRepositoryTexts().empty;
  const may = useMay("write");
  return (
    <div className="card px-4 py-12 text-center">
      {isNarrowed ? (
        <p className="text-muted">{texts.nothing}</p>
      ) : (
        <>
          <p className="font-medium">{texts.title}</p>
          <p className="mx-auto mt-1 max-w-md text-sm text-muted">{may ? texts.text : texts.reader}</p>
        </>
      )}
    </div>
  );
}

function More({ onMore }: { onMore: () => void }) {
  const { showMore } = useElementTexts();
  return (
    <button type="button" className="button" onClick={onMore}>
      {showMore}
    </button>
  );
}
