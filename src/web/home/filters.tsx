import { useQuery } from "@tanstack/react-query";
import { useEffect, useEffectEvent, useId, useState, type RefObject } from "react";
import { sessionStatuses } from "../../domain/sessions/status.ts";
import { Icon } from "../elements/icon.tsx";
import { Select } from "../elements/select.tsx";
import { client, useMe } from "../query.ts";
import { namesQuery } from "../elements/names-query.ts";
import { useElementTexts } from "../texts/elements.ts";
import { useHomeTexts } from "../texts/home.ts";
import { useSessionFilter } from "./filter.ts";

/** The filters of the list. */
export function Filters({ searchField }: { searchField: RefObject<HTMLInputElement | null> }) {
  const texts = useHomeTexts();
  const { statuses } = useElementTexts();
  const [filter, change] = useSessionFilter();
  const repositories = useQuery(
    namesQuery("repositories", client.repository.list, ({ codeRepositories }) => codeRepositories),
  );
  const automations = useQuery(namesQuery("automations", client.automation.list, (page) => page.automations));
  // Only admins may see who there is.
  const users = useQuery({
    ...namesQuery("users", client.user.list, (page) => page.users),
    enabled: useMe().data?.scopes.includes("admin") === true,
  });
  const labels = useQuery(namesQuery("labels", client.label.list, (page) => page.labels));
  const isNarrowed = Object.values(filter).some((value) => value !== undefined);
  return (
    <fieldset aria-label={texts.filters} className="flex min-w-0 items-start gap-1 max-sm:flex-wrap">
      <Search field={searchField} />
      <div className="relative flex min-w-0 flex-1 items-center gap-1 max-sm:w-full max-sm:overflow-x-auto sm:flex-wrap">
        <Select
          isQuiet
          label={texts.status}
          value={filter.status}
          all={texts.allStatuses}
          options={sessionStatuses.map((status) => ({ value: status, name: statuses[status] }))}
          onChange={(status) => change({ status })}
        />
        <Select
          isQuiet
          label={texts.repository}
          value={filter.repository}
          all={texts.allRepositories}
          options={repositories.data?.map(({ id, name }) => ({ value: id, name })) ?? []}
          onChange={(repository) => change({ repository })}
        />
        <Select
          isQuiet
          label={texts.automation}
          value={filter.automation}
          all={texts.allAutomations}
          options={automations.data?.map(({ id, name }) => ({ value: id, name })) ?? []}
          onChange={(automation) => change({ automation })}
        />
        <Select
          isQuiet
          label={texts.askedBy}
          value={filter.by}
          all={texts.everybody}
          options={[
            { value: "me", name: texts.me },
            ...(users.data?.map(({ id, name }) => ({ value: id, name })) ?? []),
          ]}
          onChange={(by) => change({ by })}
        />
        {(filter.label !== undefined || (labels.data?.length ?? 0) > 0) && (
          <Select
            isQuiet
            label={texts.label}
            value={filter.label}
            all={texts.allLabels}
            options={[...new Set([...(labels.data ?? []), ...(filter.label === undefined ? [] : [filter.label])])].map(
              (label) => ({ value: label, name: label }),
            )}
            onChange={(label) => change({ label })}
          />
        )}
        <Select
          isQuiet
          label={texts.archived}
          value={filter.archived === true ? "true" : undefined}
          all={texts.notArchived}
          options={[{ value: "true", name: texts.archived }]}
          onChange={(archived) => change({ archived: archived === undefined ? undefined : true })}
        />
        {isNarrowed && (
          <button
            type="button"
            className="button button-quiet"
            onClick={() => change(Object.fromEntries(Object.keys(filter).map((name) => [name, undefined])))}
          >
            <Icon name="close" />
            {texts.clear}
          </button>
        )}
      </div>
    </fieldset>
  );
}

/** How long a pause in writing is that begins the search, in ms. */
const pauseMs = 250;

function Search({ field }: { field: RefObject<HTMLInputElement | null> }) {
  const texts = useHomeTexts();
  const [{ q }, change] = useSessionFilter();
  const [text, setText] = useState(q ?? "");
  const [asked, setAsked] = useState(q);
  const fieldId = useId();
  // The browser's back and forward buttons change the words too.
  if (asked !== q) {
    setAsked(q);
    if (q !== wordsOf(text)) setText(q ?? "");
  }
  const search = (words: string | undefined): void => {
    // Words that grow are one search, and one step back.
    if (words !== q) change({ q: words }, words !== undefined && q !== undefined);
  };
  const searchAfterPause = useEffectEvent((written: string) => search(wordsOf(written)));
  useEffect(() => {
    const timer = setTimeout(() => searchAfterPause(text), pauseMs);
    return () => clearTimeout(timer);
  }, [text]);
  return (
    <search className="min-w-0 max-sm:w-full">
      <form
        onSubmit={(event) => {
          event.preventDefault();
          search(wordsOf(text));
        }}
      >
        <label htmlFor={fieldId} className="sr-only">
          {texts.search}
        </label>
        <input
          ref={field}
          id={fieldId}
          type="search"
          className="field sm:w-48"
          placeholder={texts.searchHint}
          value={text}
          onChange={(event) => setText(event.target.value)}
        />
      </form>
    </search>
  );
}

function wordsOf(text: string): string | undefined {
  return text.trim() === "" ? undefined : text.trim();
}
