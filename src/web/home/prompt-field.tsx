import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { useEffect, useId, useState, type KeyboardEvent, type RefObject } from "react";
import { hasWords } from "../elements/has-words.ts";
import { Icon } from "../elements/icon.tsx";
import { useOptions } from "../elements/options.ts";
import { client } from "../query.ts";
import { useElementTexts } from "../texts/elements.ts";
import { useHomeTexts } from "../texts/home.ts";
import type { Draft } from "./draft.ts";
import { useDefaultBranch } from "./offered.ts";

/** Most files that are offered at once. */
const mostShown = 12;

/** A file that is being named: the written part, and its position in the text. */
interface Mention {
  readonly from: number;
  readonly words: string;
}

/** The file name that the user has begun: an @ at the beginning of a word, and the cursor behind it. */
function mentionAt(text: string, cursor: number): Mention | null {
  const found = /(?:^|[\s(])@([^\s@]*)$/u.exec(text.slice(0, cursor));
  return found === null ? null : { from: cursor - (found[1]?.length ?? 0), words: found[1] ?? "" };
}

/** The field for what should be done. An @ lists the files of the chosen repository. */
export function PromptField({
  field,
  draft,
  onPrompt,
  onSubmit,
  errorId,
}: {
  field: RefObject<HTMLTextAreaElement | null>;
  draft: Draft;
  onPrompt: (prompt: string) => void;
  onSubmit: () => void;
  /** Id of the sentence that says what is wrong with it; undefined: nothing is. */
  errorId: string | undefined;
}) {
  const texts = useHomeTexts().composer;
  const id = useId();
  const [mention, setMention] = useState<Mention | null>(null);
  /** The new position of the cursor, behind the inserted text. */
  const [inserted, setInserted] = useState<number | null>(null);
  const url = draft.repository?.url ?? null;
  const usual = useDefaultBranch(draft.repository, mention !== null);
  const branch = draft.branch ?? usual;
  const files = useQuery({
    queryKey: ["files", url, branch, mention?.words],
    queryFn: () => client.repository.files(url ?? "", branch ?? "", mention?.words),
    enabled: mention !== null && url !== null && typeof branch === "string",
    placeholderData: keepPreviousData,
    staleTime: 60_000,
    retry: false,
  });
  const paths = mention === null || url === null ? [] : (files.data?.paths ?? []);
  // The answer to fewer letters is still shown, except names without the current ones: Enter takes the first.
  const found = (files.isPlaceholderData ? paths.filter((path) => hasWords(path, mention?.words ?? "")) : paths).slice(
    0,
    mostShown,
  );
  const choose = (index: number): void => {
    const path = found[index];
    const element = field.current;
    if (path === undefined || element === null || mention === null) return;
    const after = draft.prompt.slice(mention.from + mention.words.length);
    onPrompt(`${draft.prompt.slice(0, mention.from)}${path}${after.startsWith(" ") ? "" : " "}${after}`);
    setMention(null);
    setInserted(mention.from + path.length + 1);
  };
  useEffect(() => {
    if (inserted !== null) field.current?.setSelectionRange(inserted, inserted);
  }, [field, inserted]);
  const isOpen = mention !== null;
  const options = useOptions(found, mention?.words ?? "", isOpen, choose);
  const look = (element: HTMLTextAreaElement): void => {
    setMention(
      element.selectionStart === element.selectionEnd ? mentionAt(element.value, element.selectionStart) : null,
    );
  };
  const onKeyDown = (event: KeyboardEvent<HTMLTextAreaElement>): void => {
    if (event.key === "Escape" && isOpen) {
      event.preventDefault();
      return setMention(null);
    }
    const isSubmit = event.key === "Enter" && (event.metaKey || event.ctrlKey);
    if (isSubmit) return onSubmit();
    options.onKey(event);
  };
  return (
    <div className="relative">
      <label htmlFor={id} className="sr-only">
        {texts.label}
      </label>
      <textarea
        {...options.textArea}
        ref={field}
        id={id}
        dir="auto"
        required
        rows={2}
        aria-invalid={errorId === undefined ? undefined : true}
        aria-describedby={errorId}
        placeholder={texts.placeholder}
        className="block max-h-[50dvh] w-full resize-none rounded-lg bg-transparent px-3 py-2.5 text-base -outline-offset-2 [field-sizing:content] placeholder:text-muted"
        value={draft.prompt}
        onChange={({ target }) => {
          onPrompt(target.value);
          look(target);
        }}
        onSelect={({ currentTarget }) => look(currentTarget)}
        onBlur={() => setMention(null)}
        onKeyDown={onKeyDown}
      />
      {isOpen && (
        <div className="popover absolute inset-x-2 top-full z-20 mt-1 max-w-xl p-1">
          <div {...options.list} aria-label={texts.files} className="max-h-64 overflow-y-auto">
            {found.map((path, index) => (
              <div
                key={path}
                {...options.option(index)}
                className={`flex cursor-pointer items-center gap-2 rounded px-2 py-1 font-mono text-xs ${index === options.active ? "bg-accent-soft" : ""}`}
              >
                <Icon name="file" className="size-3.5 text-muted" />
                <bdi className="min-w-0 truncate">{path}</bdi>
              </div>
            ))}
          </div>
          <FilesNote
            lacks={url === null ? "repository" : branch === null ? "branch" : null}
            isEmpty={found.length === 0}
            error={files.error}
            isLoading={branch === undefined || files.isLoading}
          />
        </div>
      )}
    </div>
  );
}

function FilesNote({
  lacks,
  isEmpty,
  error,
  isLoading,
}: {
  /** The missing choice before files can be listed. */
  lacks: "repository" | "branch" | null;
  isEmpty: boolean;
  error: Error | null;
  isLoading: boolean;
}) {
  const texts = useHomeTexts().composer;
  const { loading } = useElementTexts();
  if (lacks === null && !isEmpty) return null;
  const words =
    lacks !== null
      ? texts.choose[lacks]
      : error !== null
        ? texts.filesFailed(error.message)
        : isLoading
          ? loading
          : texts.noFiles;
  return <p className="px-2 py-1 text-xs text-muted">{words}</p>;
}
