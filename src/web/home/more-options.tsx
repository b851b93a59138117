import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { Field, fieldOf } from "../elements/field.tsx";
import { PullRequestFields } from "../elements/sessions/pull-request-fields.tsx";
import { ErrorText } from "../elements/notice.tsx";
import { Picker, type PickerOption } from "../elements/picker.tsx";
import { client } from "../query.ts";
import { useMoreOptionsTexts } from "../texts/more-options.ts";
import type { MoreOptions as Options } from "./draft.ts";

/** Further options of a new session: its branch, labels and further repositories, and how pull requests are opened. */
export function MoreOptions({
  options,
  error,
  onChange,
}: {
  options: Options;
  /** A problem with one of these, which is shown at its field. */
  error: Error | null;
  onChange: (options: Options) => void;
}) {
  const texts = useMoreOptionsTexts();
  const wrong = fieldOf(error, ["branchName", "labels", "repositories", "pullRequestsTogether"]);
  const input = (name: "branchName" | "repositories") => ({
    className: "field max-h-40",
    autoComplete: "off",
    spellCheck: false,
    value: options[name],
    onChange: ({ target }: { target: { value: string } }) => onChange({ ...options, [name]: target.value }),
  });
  return (
    <div className="space-y-4 border-t border-line p-3">
      <div className="grid grid-cols-[minmax(0,1fr)] gap-4 sm:grid-cols-2">
        <Field label={texts.branchName} hint={texts.branchNameHint} error={wrong === "branchName" ? error : null}>
          {(attributes) => <input {...attributes} {...input("branchName")} autoCapitalize="none" />}
        </Field>
        <Labels
          labels={options.labels}
          error={wrong === "labels" ? error : null}
          onChange={(labels) => onChange({ ...options, labels })}
        />
      </div>
      <Field label={texts.repositories} hint={texts.repositoriesHint} error={wrong === "repositories" ? error : null}>
        {(attributes) => (
          <textarea
            {...attributes}
            {...input("repositories")}
            rows={1}
            placeholder="https://github.com/owner/name"
            className="field max-h-40 field-sizing-content"
          />
        )}
      </Field>
      {options.repositories.trim() !== "" && (
        <label className="flex min-h-6 items-center gap-2 text-sm">
          <input
            type="checkbox"
            checked={options.together}
            onChange={({ target }) => onChange({ ...options, together: target.checked })}
          />
          {texts.together}
        </label>
      )}
      <ErrorText error={wrong === "pullRequestsTogether" ? error : null} />
      <PullRequestFields
        values={options.pullRequest}
        error={error}
        onChange={(pullRequest) => onChange({ ...options, pullRequest })}
      />
    </div>
  );
}

/** The labels that a session gets: some that others have, or new ones. */
function Labels({
  labels,
  error,
  onChange,
}: {
  labels: readonly string[];
  error: Error | null;
  onChange: (labels: string[]) => void;
}) {
  const texts = useMoreOptionsTexts();
  const [words, setWords] = useState("");
  const known = useQuery({
    queryKey: ["labels"],
    queryFn: () => client.label.list({ limit: 100 }),
    staleTime: 60_000,
  });
  const written = words.trim();
  const all = [...new Set([...labels, ...(known.data?.labels ?? [])])];
  const options: PickerOption[] = [
    ...all
      .filter((label) => label.toLowerCase().includes(written.toLowerCase()))
      .map((label) => ({ key: label, name: label, ...(labels.includes(label) && { about: texts.chosenLabel }) })),
    ...(written === "" || all.includes(written) ? [] : [{ key: written, name: texts.addLabel(written) }]),
  ];
  return (
    <fieldset className="min-w-0 space-y-1 text-sm">
      <legend className="font-medium">{texts.labels}</legend>
      <Picker
        label={texts.labels}
        icon="label"
        value={labels.length === 0 ? texts.noLabels : labels.join(", ")}
        placeholder={texts.findLabel}
        words={words}
        onWords={setWords}
        options={options}
        chosen={null}
        onChoose={(label) =>
          onChange(labels.includes(label) ? labels.filter((each) => each !== label) : [...labels, label])
        }
      />
      <ErrorText error={error} />
    </fieldset>
  );
}
