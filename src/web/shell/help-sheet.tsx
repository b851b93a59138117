import { Fragment, useSyncExternalStore } from "react";
import { Modal } from "../elements/dialog.tsx";
import { useShellTexts } from "../texts/shell.ts";
import { currentPreferences, onPreferences } from "./preferences.ts";
import { useShortcutGroups } from "./shortcuts.ts";

/** All shortcuts that do something on the present page. */
export function HelpSheet({ onClosed }: { onClosed: () => void }) {
  const texts = useShellTexts();
  const groups = useShortcutGroups();
  const { letters } = useSyncExternalStore(onPreferences, currentPreferences);
  return (
    <Modal title={texts.shortcuts} className="w-[min(44rem,94vw)]" closesOutside onClosed={onClosed}>
      {!letters && <p className="mt-2 text-sm text-warn">{texts.keys.off}</p>}
      <div className="mt-4 gap-8 space-y-5 sm:columns-2">
        {groups.map(({ title, shortcuts }) => (
          <section key={title} className="break-inside-avoid">
            <h3 className="label mb-1">{title}</h3>
            <dl className="text-sm">
              {shortcuts.map(({ keys, does }) => (
                <div key={keys} className="flex items-center gap-3 py-1">
                  <dt className="min-w-0 flex-1">{does}</dt>
                  <dd>
                    <KeyCaps keys={keys} />
                  </dd>
                </div>
              ))}
            </dl>
          </section>
        ))}
      </div>
    </Modal>
  );
}

const isMac = /mac|iphone|ipad/iu.test(navigator.userAgent);
const signs: Readonly<Record<string, string>> = {
  Mod: isMac ? "⌘" : "Ctrl",
  Enter: "↵",
  Escape: "Esc",
  ArrowUp: "↑",
  ArrowDown: "↓",
};

/** Keys as they are written on a keyboard. */
export function KeyCaps({ keys }: { keys: string }) {
  const texts = useShellTexts();
  return keys.split(" ").map((together, index) => (
    <Fragment key={index}>
      {index > 0 && <span className="text-xs text-muted"> {texts.keys.after} </span>}
      {together.split("+").map((key) => (
        <kbd key={key} className="key">
          {signs[key] ?? (key.length === 1 && together.length > 1 ? key.toUpperCase() : key)}
        </kbd>
      ))}
    </Fragment>
  ));
}
