import { usePullRequestTexts } from "../../texts/pull-requests.ts";
import { Field, fieldOf } from "../field.tsx";
import { namedFields, pullRequestErrors, type PullRequestValues } from "./pull-request-values.ts";

/** Part of a form: how the pull requests of a session, or of an automation's runs, are opened. */
export function PullRequestFields({
  values,
  error,
  onChange,
}: {
  readonly values: PullRequestValues;
  /** The form's error: a problem with one of these fields is shown there. */
  readonly error: Error | null;
  readonly onChange: (values: PullRequestValues) => void;
}) {
  const texts = usePullRequestTexts();
  const wrong = fieldOf(error, pullRequestErrors);
  return (
    <fieldset className="min-w-0 space-y-3">
      <legend className="text-sm font-medium">{texts.title}</legend>
      <label className="flex min-h-6 items-center gap-2 text-sm">
        <input
          type="checkbox"
          checked={values.draft}
          onChange={({ target }) => onChange({ ...values, draft: target.checked })}
        />
        {texts.draft}
      </label>
      <div className="grid grid-cols-[minmax(0,1fr)] gap-4 sm:grid-cols-3">
        {namedFields.map((name) => (
          <Field
            key={name}
            label={texts[name]}
            hint={texts.hints[name]}
            error={wrong === `pullRequest.${name}` ? error : null}
          >
            {(attributes) => (
              <textarea
                {...attributes}
                rows={2}
                autoCapitalize="none"
                spellCheck={false}
                className="field max-h-40 field-sizing-content"
                value={values[name]}
                onChange={({ target }) => onChange({ ...values, [name]: target.value })}
              />
            )}
          </Field>
        ))}
      </div>
    </fieldset>
  );
}
