import { useEffect, useId, useRef, useState, type ReactNode } from "react";
import { useElementTexts } from "../texts/elements.ts";
import { Icon, type IconName } from "./icon.tsx";
import { useOptions } from "./options.ts";

/** Something that can be chosen in a picker. */
export interface PickerOption {
  readonly key: string;
  readonly name: string;
  /** Further words in addition to the name. */
  readonly about?: string;
}

/**
 * A button that shows what is chosen, and opens a list in which something else is found by its name.
 * @param words what was written to find it; the options are what fits
 */
export function Picker({
  label,
  icon,
  value,
  placeholder,
  words,
  onWords,
  options,
  chosen,
  onChoose,
  onEnd,
  note,
  isSmall = false,
}: {
  label: string;
  icon: IconName;
  value: string;
  placeholder: string;
  words: string;
  onWords: (words: string) => void;
  options: readonly PickerOption[];
  /** Key of what is chosen; null: none of the options. */
  chosen: string | null;
  onChoose: (key: string) => void;
  /** Called as the end of the options comes in sight: there are more. */
  onEnd?: () => void;
  /** Shown below the options: why there are none, or that they are loading. */
  note?: ReactNode;
  /** Whether it is among facts in small letters. */
  isSmall?: boolean;
}) {
  const { nothingMatches } = useElementTexts();
  const id = useId();
  const popover = useRef<HTMLDialogElement>(null);
  const [isOpen, setOpen] = useState(false);
  // The field is there only once this is drawn.
  useEffect(() => {
    if (isOpen) popover.current?.querySelector("input")?.focus();
  }, [isOpen]);
  const keys = options.map(({ key }) => key);
  const list = useOptions(keys, words, isOpen, (index) => {
    const option = options[index];
    if (option === undefined) return;
    onChoose(option.key);
    popover.current?.hidePopover();
  });
  return (
    <>
      <button
        type="button"
        popoverTarget={id}
        className={`button button-quiet max-w-64 min-w-0 ${isSmall ? "min-h-6 px-1 text-xs font-normal" : ""}`}
        aria-haspopup="dialog"
      >
        <Icon name={icon} className={isSmall ? "size-3.5" : "size-4"} />
        <span className="sr-only">{label}: </span>
        <bdi className="truncate">{value}</bdi>
        <Icon name="chevron" className="size-3 rotate-90" />
      </button>
      <dialog
        ref={popover}
        id={id}
        popover="auto"
        aria-label={label}
        className="popover m-1 w-[min(22rem,calc(100vw-1rem))] p-0 [position-area:block-end_span-inline-end] [position-try-fallbacks:flip-inline,flip-block]"
        onToggle={({ newState }) => {
          setOpen(newState === "open");
          if (newState !== "open") onWords("");
        }}
      >
        {isOpen && (
          <>
            <input
              {...list.field}
              aria-label={label}
              placeholder={placeholder}
              spellCheck={false}
              className="w-full rounded-t-lg border-b border-line bg-transparent px-3 py-2 text-sm -outline-offset-2 placeholder:text-muted pointer-coarse:text-base"
              value={words}
              onChange={({ target }) => onWords(target.value)}
              onKeyDown={(event) => {
                const isForList = list.onKey(event);
                // An Enter that chooses nothing would submit the form around the picker.
                if (!isForList && event.key === "Enter") event.preventDefault();
              }}
            />
            <div
              {...list.list}
              aria-label={label}
              className="max-h-72 overflow-y-auto p-1"
              onScroll={({ currentTarget: { scrollHeight, scrollTop, clientHeight } }) => {
                if (scrollHeight - scrollTop - clientHeight < clientHeight) onEnd?.();
              }}
            >
              {options.map(({ key, name, about }, index) => (
                <div
                  key={key}
                  {...list.option(index)}
                  className={`flex cursor-pointer items-center gap-2 rounded px-2 py-1.5 ${index === list.active ? "bg-accent-soft" : ""}`}
                >
                  <bdi className="min-w-0 flex-1 truncate">{name}</bdi>
                  {about !== undefined && <span className="shrink-0 text-xs text-muted">{about}</span>}
                  {key === chosen && <Icon name="check" className="size-3.5" />}
                </div>
              ))}
            </div>
            <div className="px-3 pb-2 text-xs text-muted empty:hidden">
              {note ?? (options.length === 0 ? nothingMatches : null)}
            </div>
          </>
        )}
      </dialog>
    </>
  );
}
