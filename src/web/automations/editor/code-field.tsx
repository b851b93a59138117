import { useLayoutEffect, useMemo, useRef, useState, type KeyboardEvent, type ReactNode, type RefObject } from "react";
import type { FieldAttributes } from "../../elements/field.tsx";
import { useOptions } from "../../elements/options.ts";
import { useAutomationTexts } from "../../texts/automations.ts";
import { celTokens } from "./cel-tokens.ts";
import type { Place } from "./problem-place.ts";
import { Highlighted } from "./highlighted.tsx";
import { liquidTokens } from "./liquid-tokens.ts";
import type { Tokenizer } from "./token.ts";
import { celNaming, liquidNaming, valuesFor, valuesOf, type BegunName, type Naming } from "./values.ts";

/** The languages of a field: their colours, and their names of values. */
const languages: Readonly<Record<"liquid" | "cel", { readonly tokens: Tokenizer; readonly naming: Naming }>> = {
  liquid: { tokens: liquidTokens, naming: liquidNaming },
  cel: { tokens: celTokens, naming: celNaming },
};

/** Both layers are set alike to the last letter: what differs moves the colours away from their words. */
const setting =
  "col-start-1 row-start-1 m-0 min-w-0 px-2.5 py-[0.3125rem] font-mono text-sm leading-6 tracking-normal whitespace-pre-wrap wrap-anywhere [font-variant-ligatures:none] [text-rendering:geometricPrecision] [tab-size:2] [text-align:start] pointer-coarse:text-base pointer-coarse:leading-6";

/**
 * A field for a template or a condition: a text area over the same text in colours. While a value is being named, those of an event
 * are offered: chosen with the arrow keys and Enter, left with Escape, asked for with Ctrl and space.
 */
export function CodeField({
  attributes,
  field: given,
  language,
  rows,
  value,
  onChange,
  roots,
  problemAt = null,
}: {
  readonly attributes: FieldAttributes;
  /** For who moves the cursor in it. */
  readonly field?: RefObject<HTMLTextAreaElement | null>;
  readonly language: keyof typeof languages;
  readonly rows: number;
  readonly value: string;
  readonly onChange: (value: string) => void;
  /** The values that can be named, by their names in the language. */
  readonly roots: Readonly<Record<string, unknown>>;
  /** The part that is underlined as wrong. */
  readonly problemAt?: Place | null;
}) {
  const texts = useAutomationTexts().editor;
  const { tokens, naming } = languages[language];
  const own = useRef<HTMLTextAreaElement>(null);
  const field = given ?? own;
  const layer = useRef<HTMLPreElement>(null);
  const [begun, setBegun] = useState<BegunName | null>(null);
  const [scrolled, setScrolled] = useState(0);
  const values = useMemo(() => valuesOf(roots, naming), [roots, naming]);
  const found = begun === null ? [] : valuesFor(begun.words, values);
  const isOpen = found.length > 0;
  const choose = (index: number): void => {
    const chosen = found[index];
    if (chosen === undefined || begun === null) return;
    field.current?.setSelectionRange(begun.from, begun.from + begun.words.length);
    insert(`${chosen.path}${chosen.hasMore ? "." : ""}`);
  };
  const keys = found.map(({ path }) => path);
  const options = useOptions(keys, begun?.words ?? "", isOpen, choose);
  const look = ({ value: text, selectionStart, selectionEnd }: HTMLTextAreaElement): void =>
    setBegun(selectionStart === selectionEnd ? naming.begunAt(text, selectionStart) : null);
  const onKeyDown = (event: KeyboardEvent<HTMLTextAreaElement>): void => {
    if (event.key === "Escape" && isOpen) {
      // Not the dialog around it.
      event.preventDefault();
      return setBegun(null);
    }
    if (event.key === " " && event.ctrlKey) {
      event.preventDefault();
      return look(event.currentTarget);
    }
    options.onKey(event);
  };
  return (
    <div className="relative">
      <div
        className={`field grid max-h-[60dvh] overflow-y-auto p-0 has-[:focus-visible]:outline-2 has-[:focus-visible]:outline-offset-2 has-[:focus-visible]:outline-accent ${attributes["aria-invalid"] === true ? "border-bad" : ""}`}
        onScroll={({ currentTarget }) => setScrolled(currentTarget.scrollTop)}
      >
        <Highlighted layer={layer} className={setting} tokens={tokens} text={value} problemAt={problemAt} />
        <textarea
          {...attributes}
          {...options.textArea}
          ref={field}
          rows={rows}
          dir="auto"
          spellCheck={language === "liquid"}
          autoCapitalize="none"
          className={`${setting} resize-none overflow-hidden border-0 bg-transparent outline-none [-webkit-text-fill-color:transparent] forced-colors:[-webkit-text-fill-color:currentcolor]`}
          value={value}
          onChange={({ target }) => {
            onChange(target.value);
            look(target);
          }}
          // The arrow keys move through a text with names; only writing opens the list.
          onSelect={({ currentTarget }) => begun !== null && look(currentTarget)}
          onBlur={() => setBegun(null)}
          onKeyDown={onKeyDown}
        />
      </div>
      {isOpen && (
        <Below layer={layer} at={begun?.from ?? 0} scrolled={scrolled}>
          <div {...options.list} aria-label={texts.values} className="max-h-64 overflow-y-auto">
            {found.map(({ path, value: shown }, index) => (
              <div
                key={path}
                {...options.option(index)}
                className={`flex cursor-pointer gap-3 rounded px-2 py-1 font-mono text-xs ${index === options.active ? "bg-accent-soft" : ""}`}
              >
                <bdi className="shrink-0 max-w-3/4 break-all">{path}</bdi>
                <bdi className="ms-auto min-w-0 truncate text-muted">{shown}</bdi>
              </div>
            ))}
          </div>
        </Below>
      )}
      <output className="sr-only">{isOpen ? texts.count(found.length) : ""}</output>
    </div>
  );
}

/** Inserts a text at the cursor, or replaces the selection, as if typed: it can be undone. */
function insert(text: string): void {
  // Nothing that is not deprecated is undone by the browser's own undo.
  // oxlint-disable-next-line typescript/no-deprecated
  document.execCommand("insertText", false, text);
}

/** An element below a place of the text. */
function Below({
  layer,
  at,
  scrolled,
  children,
}: {
  readonly layer: RefObject<HTMLPreElement | null>;
  readonly at: number;
  /** By which the text was moved: the place moves along. */
  readonly scrolled: number;
  readonly children: ReactNode;
}) {
  const box = useRef<HTMLDivElement>(null);
  const [place, setPlace] = useState({ left: 0, top: 0 });
  useLayoutEffect(() => {
    const around = box.current?.parentElement?.getBoundingClientRect();
    const own = box.current?.getBoundingClientRect();
    if (around === undefined || own === undefined || layer.current === null) return;
    const { left, bottom } = rectangleAt(layer.current, at);
    const most = around.width - own.width;
    const moved = layer.current.parentElement?.scrollTop ?? 0;
    setPlace({ left: Math.max(0, Math.min(left - around.left, most)), top: bottom - around.top + moved });
  }, [layer, at]);
  return (
    <div
      ref={box}
      className="popover absolute z-20 mt-0.5 w-[min(34rem,100%)] p-1"
      style={{ left: place.left, top: place.top - scrolled }}
    >
      {children}
    </div>
  );
}

/** The rectangle in which a character of the layer's text is drawn. */
function rectangleAt(layer: HTMLElement, at: number): DOMRect {
  const texts = document.createTreeWalker(layer, NodeFilter.SHOW_TEXT);
  let passed = 0;
  const range = document.createRange();
  range.selectNodeContents(layer);
  while (texts.nextNode() !== null) {
    const { length } = texts.currentNode as Text;
    if (at < passed + length) {
      range.setStart(texts.currentNode, at - passed);
      range.setEnd(texts.currentNode, at - passed + 1);
      break;
    }
    passed += length;
  }
  return range.getBoundingClientRect();
}
