import { useId, useSyncExternalStore } from "react";
import { Modal } from "../elements/dialog.tsx";
import {
  chooseLanguage,
  chosenLanguage,
  languageNames,
  languages,
  showLanguage,
  wantedLanguage,
} from "../texts/language.ts";
import { useShellTexts } from "../texts/shell.ts";
import { loadTexts } from "../texts/texts.ts";
import { changePreferences, choices, currentPreferences, onPreferences } from "./preferences.ts";

/** How this browser shows the app: language, colours, contrast, motion, and whether single letters are shortcuts. */
export function Display({ onClosed }: { onClosed: () => void }) {
  const texts = useShellTexts().preferences;
  const { display } = useShellTexts();
  const preferences = useSyncExternalStore(onPreferences, currentPreferences);
  const change = (name: keyof typeof choices, value: string): void => {
    const values: readonly string[] = choices[name];
    changePreferences({ [name]: values.includes(value) ? value : "system" });
  };
  const lettersId = useId();
  return (
    <Modal title={display} className="w-[min(24rem,94vw)]" closesOutside onClosed={onClosed}>
      <div className="mt-4 space-y-4 text-sm">
        <LanguageChoice />
        <Choice
          label={texts.theme}
          value={preferences.theme}
          names={texts.themes}
          onChange={(value) => change("theme", value)}
        />
        <Choice
          label={texts.contrast}
          value={preferences.contrast}
          names={texts.contrasts}
          onChange={(value) => change("contrast", value)}
        />
        <Choice
          label={texts.motion}
          value={preferences.motion}
          names={texts.motions}
          onChange={(value) => change("motion", value)}
        />
        <div className="flex items-start gap-2">
          <input
            id={lettersId}
            type="checkbox"
            className="mt-1 size-4"
            checked={preferences.letters}
            onChange={({ target }) => changePreferences({ letters: target.checked })}
          />
          <label htmlFor={lettersId}>{texts.letters}</label>
        </div>
        <p className="text-xs text-muted">{texts.remembered}</p>
      </div>
    </Modal>
  );
}

function LanguageChoice() {
  const texts = useShellTexts().preferences;
  const browsers = languageNames[wantedLanguage(null)];
  return (
    <Choice
      label={texts.language}
      value={chosenLanguage() ?? ""}
      names={{ "": texts.ofBrowser(browsers), ...languageNames }}
      onChange={(value) => {
        chooseLanguage(languages.find((language) => language === value) ?? null);
        const language = wantedLanguage();
        void loadTexts(language).then(() => showLanguage(language));
      }}
    />
  );
}

function Choice({
  label,
  value,
  names,
  onChange,
}: {
  label: string;
  value: string;
  names: Readonly<Record<string, string>>;
  onChange: (value: string) => void;
}) {
  const id = useId();
  return (
    <div className="space-y-1">
      <label htmlFor={id} className="block font-medium">
        {label}
      </label>
      <select id={id} className="field" value={value} onChange={({ target }) => onChange(target.value)}>
        {Object.entries(names).map(([name, words]) => (
          <option key={name} value={name}>
            {words}
          </option>
        ))}
      </select>
    </div>
  );
}
