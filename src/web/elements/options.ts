import { useEffect, useId, useState, type KeyboardEvent } from "react";

/** The result of `useOptions`: attributes of the field, of the list below it, and of each of its options. */
export interface Options {
  readonly active: number;
  readonly field: {
    readonly role: "combobox";
    readonly "aria-expanded": boolean;
    readonly "aria-controls": string;
    readonly "aria-autocomplete": "list";
    readonly "aria-activedescendant": string | undefined;
    readonly autoComplete: "off";
  };
  /** A field of several lines is no combobox (ARIA in HTML), but may have a list all the same. Nothing while that is not shown. */
  readonly textArea: Partial<Pick<Options["field"], "aria-controls" | "aria-autocomplete" | "aria-activedescendant">>;
  readonly list: { readonly id: string; readonly role: "listbox" };
  option(index: number): {
    readonly id: string;
    readonly role: "option";
    readonly tabIndex: -1;
    readonly "aria-selected": boolean;
    readonly onMouseMove: () => void;
    readonly onMouseDown: (event: { preventDefault(): void }) => void;
    readonly onClick: () => void;
  };
  /** Moves with the arrow keys, and chooses with Enter. @returns whether the key was for the list */
  onKey(event: KeyboardEvent): boolean;
}

/**
 * A field with a list of options below it, of which one is active while the focus stays in the field
 * (https://www.w3.org/WAI/ARIA/apg/patterns/combobox/).
 * @param keys of the options that there are now. One that was moved to stays active wherever it is after an answer of the server that came
 *   meanwhile; until then the first is
 * @param about what they depend on: if it changes, the first is active again
 * @param isOpen whether the list is shown
 */
export function useOptions(
  keys: readonly string[],
  about: string,
  isOpen: boolean,
  onChoose: (index: number) => void,
): Options {
  const id = useId();
  const [active, setActive] = useState<{ readonly index: number; readonly key: string | undefined } | null>(null);
  const [shownFor, setShownFor] = useState(about);
  if (shownFor !== about) {
    setShownFor(about);
    setActive(null);
  }
  const count = keys.length;
  const last = count - 1;
  const place = active === null ? 0 : keys.findIndex((key) => key === active.key);
  const index = place === -1 ? Math.min(active?.index ?? 0, Math.max(0, last)) : place;
  const moveTo = (option: number): void => setActive({ index: option, key: keys[option] });
  const idOf = (option: number): string => `${id}-${option}`;
  useEffect(() => {
    if (isOpen) document.getElementById(`${id}-${index}`)?.scrollIntoView({ block: "nearest" });
  }, [id, index, isOpen]);
  const toList = {
    "aria-controls": id,
    "aria-autocomplete": "list",
    "aria-activedescendant": isOpen && count > 0 ? idOf(index) : undefined,
  } as const;
  return {
    active: index,
    field: { role: "combobox", "aria-expanded": isOpen, ...toList, autoComplete: "off" },
    textArea: isOpen ? toList : {},
    list: { id, role: "listbox" },
    option: (option) => ({
      id: idOf(option),
      role: "option",
      tabIndex: -1,
      "aria-selected": option === index,
      onMouseMove: () => moveTo(option),
      // The focus stays in the field.
      onMouseDown: (event) => event.preventDefault(),
      onClick: () => onChoose(option),
    }),
    onKey(event) {
      if (!isOpen || count === 0 || event.nativeEvent.isComposing) return false;
      switch (event.key) {
        case "ArrowDown":
          moveTo(index === last ? 0 : index + 1);
          break;
        case "ArrowUp":
          moveTo(index === 0 ? last : index - 1);
          break;
        case "Enter":
          onChoose(index);
          break;
        default:
          return false;
      }
      event.preventDefault();
      return true;
    },
  };
}
