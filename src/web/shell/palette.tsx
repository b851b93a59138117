import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { useDeferredValue, useState } from "react";
import type { SessionDetail } from "../../domain/sessions/session.ts";
import { announce } from "../elements/announce.tsx";
import { Modal } from "../elements/dialog.tsx";
import { hasWords } from "../elements/has-words.ts";
import { Icon, type IconName } from "../elements/icon.tsx";
import { useOptions } from "../elements/options.ts";
import { client, useMe } from "../query.ts";
import { useOrganizationTexts } from "../texts/organizations.ts";
import { useShellTexts } from "../texts/shell.ts";
import { KeyCaps } from "./help-sheet.tsx";
import { usePages } from "./pages.ts";
import { useSettingsSections } from "./settings-sections.ts";
import type { Overlay } from "./rail.tsx";
import { useShortcutGroups } from "./shortcuts.ts";
import { switchOrganization } from "../switch-organization.ts";

/** Something that can be chosen. */
interface Entry {
  readonly key: string;
  readonly group: string;
  readonly icon: IconName | `lamp-${string}`;
  readonly name: string;
  /** Further words, which are found too. */
  readonly about?: string;
  readonly keys?: string;
  readonly run: () => void;
}

const mostSessions = 8;

/** Everything by its name: commands of the present page, pages, and sessions. */
export function Palette({ onClosed, onOpen }: { onClosed: () => void; onOpen: (overlay: Overlay) => void }) {
  const texts = useShellTexts();
  const [words, setWords] = useState("");
  const [chosen, setChosen] = useState<Entry | null>(null);
  const asked = useDeferredValue(words.trim());
  const entries = [
    ...useCommands(onOpen),
    ...usePageEntries(),
    ...useSettingsEntries(),
    ...useOrganizationEntries(),
  ].filter((entry) => entryHasWords(entry, words));
  const sessions = useSessions(asked, words);
  const all = [...entries, ...sessions];
  const keys = all.map(({ key }) => key);
  const options = useOptions(keys, words, true, (index) => setChosen(all[index] ?? null));
  return (
    <Modal
      title={texts.search}
      isTitleShown={false}
      className="flex h-[min(28rem,80dvh)] w-[min(38rem,94vw)] flex-col"
      closesOutside
      isClosing={chosen !== null}
      onClosed={() => {
        onClosed();
        chosen?.run();
      }}
    >
      <input
        {...options.field}
        aria-label={texts.search}
        placeholder={texts.palette.placeholder}
        className="w-full border-b border-line bg-transparent p-4 text-base outline-none placeholder:text-muted"
        value={words}
        spellCheck={false}
        onChange={({ target }) => setWords(target.value)}
        onKeyDown={(event) => void options.onKey(event)}
      />
      <div {...options.list} aria-label={texts.search} className="min-h-0 flex-1 overflow-y-auto p-2 text-sm">
        {all.map((entry, index) => (
          <div key={entry.key} role="presentation">
            {entry.group !== all[index - 1]?.group && (
              <p role="presentation" className="label px-2 pt-2 pb-1">
                {entry.group}
              </p>
            )}
            <div
              {...options.option(index)}
              className={`flex cursor-pointer items-center gap-2.5 rounded-md px-2 py-1.5 ${index === options.active ? "bg-accent-soft" : ""}`}
            >
              <Icon name={entry.icon} className="size-4 text-muted" />
              <span className="min-w-0 flex-1 truncate">
                <bdi>{entry.name}</bdi>
                {entry.about !== undefined && <span className="text-muted"> · {entry.about}</span>}
              </span>
              {entry.keys !== undefined && (
                <span aria-hidden>
                  <KeyCaps keys={entry.keys} />
                </span>
              )}
            </div>
          </div>
        ))}
      </div>
      <p className="border-t border-line px-4 py-2 text-xs text-muted">
        <output>{all.length === 0 ? texts.palette.nothing : texts.palette.results(all.length)}</output>
        <span className="float-end">{texts.palette.keys}</span>
      </p>
    </Modal>
  );
}

function entryHasWords({ name, about = "" }: Entry, words: string): boolean {
  return hasWords(`${name} ${about}`, words);
}

function useCommands(onOpen: (overlay: Overlay) => void): Entry[] {
  const texts = useShellTexts();
  const group = texts.palette.commands;
  const ofPage = useShortcutGroups()
    .flatMap(({ shortcuts }) => shortcuts)
    .filter(({ isCommand }) => isCommand !== false)
    .map(({ keys, does, run }): Entry => ({ key: `${keys} ${does}`, group, icon: "chevron", name: does, keys, run }));
  // The newest part of the page is the most likely to be meant.
  return [
    ...ofPage.reverse(),
    { key: "display", group, icon: "display", name: texts.display, run: () => onOpen("display") },
  ];
}

function usePageEntries(): Entry[] {
  const texts = useShellTexts();
  const navigate = useNavigate();
  return usePages()
    .filter(({ isSeen }) => isSeen)
    .map(({ to, name, icon, letter }) => ({
      key: to,
      group: texts.palette.pages,
      icon,
      name: texts.pages[name],
      keys: `g ${letter}`,
      run: () => void navigate({ to }),
    }));
}

/** The other organizations of whoever is signed in. */
function useOrganizationEntries(): Entry[] {
  const texts = useOrganizationTexts();
  const me = useMe().data;
  return (me?.organizations ?? [])
    .filter(({ id }) => id !== me?.orgId)
    .map(({ id, name }) => ({
      key: `organization ${id}`,
      group: texts.yours,
      icon: "people",
      name: texts.switchTo(name),
      run: () => void switchOrganization(id).catch(({ message }: Error) => announce(message)),
    }));
}

/** The sections of the settings, by the page's name too. */
function useSettingsEntries(): Entry[] {
  const { pages } = useShellTexts();
  const navigate = useNavigate();
  return useSettingsSections().map(({ id, title }) => ({
    key: `settings ${id}`,
    group: pages.settings,
    icon: "settings",
    name: title,
    about: pages.settings,
    run: () => void navigate({ to: "/settings", hash: id }),
  }));
}

/**
 * The sessions that have the words; without words, the newest.
 * @param asked the words that are searched for: soon those that are typed
 * @param typed what an Enter is about: as long as the answer is that to other words, only what has these can be chosen
 */
function useSessions(asked: string, typed: string): Entry[] {
  const texts = useShellTexts();
  const navigate = useNavigate();
  const found = useQuery({
    queryKey: ["palette", asked],
    queryFn: () =>
      asked === ""
        ? client.session.list({ limit: mostSessions })
        : client.session.search(asked, { limit: mostSessions }),
    placeholderData: keepPreviousData,
    staleTime: 10_000,
  });
  const sessions: readonly SessionDetail[] = found.data?.sessions ?? [];
  const isOfTyped = asked === typed.trim() && !found.isPlaceholderData;
  const entries = sessions.map(({ id, title, status, repositories }): Entry => ({
    key: id,
    group: texts.palette.sessions,
    icon: `lamp-${status}` as const,
    name: title,
    ...(repositories.length > 0 && { about: repositories.map(({ name }) => name).join(", ") }),
    run: () => void navigate({ to: "/sessions/$id", params: { id } }),
  }));
  return isOfTyped ? entries : entries.filter((entry) => entryHasWords(entry, typed));
}
