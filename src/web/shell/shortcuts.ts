import { useEffect, useRef, useSyncExternalStore } from "react";
import { currentPreferences } from "./preferences.ts";

/** A key, or keys one after the other, that do something while their component is shown. */
export interface Shortcut {
  /** As `KeyboardEvent.key` names it, `Mod+` before it for Ctrl or ⌘; keys one after the other with a space: `g s`. */
  readonly keys: string;
  /** Its action, for the help sheet and the palette. */
  readonly does: string;
  readonly run: () => void;
  /** Whether the palette offers it as a command; default true. False for what only moves about. */
  readonly isCommand?: boolean;
}

/** Shortcuts of one part of the page. */
export interface ShortcutGroup {
  readonly title: string;
  readonly shortcuts: readonly Shortcut[];
}

const groups = new Map<symbol, ShortcutGroup>();
const listeners = new Set<() => void>();
let snapshot: readonly ShortcutGroup[] = [];

function changed(): void {
  snapshot = [...groups.values()];
  for (const listener of listeners) listener();
}

/** Adds shortcuts while the component is shown. Later ones go before earlier ones of the same keys. */
export function useShortcuts(title: string, shortcuts: readonly Shortcut[]): void {
  const latest = useRef(shortcuts);
  useEffect(() => {
    latest.current = shortcuts;
  });
  // Only what the help sheet shows changes the list: a new function for the same keys is looked up when it is needed.
  const described = JSON.stringify(shortcuts.map(({ keys, does, isCommand }) => ({ keys, does, isCommand })));
  useEffect(() => {
    const id = Symbol(title);
    const run = (keys: string) => (): void => latest.current.find((shortcut) => shortcut.keys === keys)?.run();
    const listed = JSON.parse(described) as Omit<Shortcut, "run">[];
    groups.set(id, { title, shortcuts: listed.map((shortcut) => ({ ...shortcut, run: run(shortcut.keys) })) });
    changed();
    return () => {
      groups.delete(id);
      changed();
    };
  }, [title, described]);
}

/** All shortcuts that do something now. */
export function useShortcutGroups(): readonly ShortcutGroup[] {
  return useSyncExternalStore(subscribe, () => snapshot);
}

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

/** How long the next key of a sequence may take, in ms. */
const sequenceMs = 1_500;

/** Runs shortcuts as keys are pressed. @returns a function that ends this */
export function listenForShortcuts(): () => void {
  let before = { key: "", at: 0 };
  const onKey = (event: KeyboardEvent): void => {
    if (event.defaultPrevented || event.isComposing || event.altKey) return;
    const isMod = event.metaKey || event.ctrlKey;
    const key = `${isMod ? "Mod+" : ""}${event.key}`;
    if (!isMod && (isForField(event.target) || !currentPreferences().letters)) return;
    // A dialog has the keyboard for itself.
    if (document.querySelector("dialog:modal") !== null) return;
    const sequence = event.timeStamp - before.at < sequenceMs ? `${before.key} ${key}` : key;
    const shortcut = find(sequence) ?? find(key);
    before = shortcut === undefined && key.length === 1 ? { key, at: event.timeStamp } : { key: "", at: 0 };
    if (shortcut === undefined) return;
    event.preventDefault();
    shortcut.run();
  };
  document.addEventListener("keydown", onKey);
  return () => document.removeEventListener("keydown", onKey);
}

function find(keys: string): Shortcut | undefined {
  return snapshot.flatMap(({ shortcuts }) => shortcuts).findLast((shortcut) => shortcut.keys === keys);
}

/** Whether a key that was pressed there is written, or chooses something. */
function isForField(target: EventTarget | null): boolean {
  if (!(target instanceof HTMLElement)) return false;
  if (target.isContentEditable || target instanceof HTMLTextAreaElement || target instanceof HTMLSelectElement)
    return true;
  return target instanceof HTMLInputElement && !["button", "checkbox", "radio", "submit"].includes(target.type);
}
