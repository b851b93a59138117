import { useMutation } from "@tanstack/react-query";
import { useId, useState, type FormEvent } from "react";
import { secretPhases, type Secret, type SecretPhase } from "../../../domain/environments/secret.ts";
import { useSecretTexts } from "../../texts/secrets.ts";
import { Field, fieldOf } from "../field.tsx";
import { FormEnd } from "../form-end.tsx";
import { ErrorText } from "../notice.tsx";

/** The fields of a secret to save; an empty value: unchanged. */
export interface SecretValues {
  readonly name: string;
  readonly value: string;
  readonly phases: SecretPhase[];
}

/** Form of a new secret, or of another value and other phases of one. Its value is never shown. */
export function SecretForm({
  known,
  save,
}: {
  /** Omitted: a new one. */
  known?: Pick<Secret, "name" | "phases">;
  save: (values: SecretValues) => Promise<void>;
}) {
  const texts = useSecretTexts();
  const [values, setValues] = useState<SecretValues>({
    name: known?.name ?? "",
    value: "",
    phases: known?.phases ?? ["setup"],
  });
  // Its variables hold the value: the cache of mutations must not keep it.
  const saving = useMutation({ mutationFn: () => save(values), gcTime: 0 });
  const wrong = fieldOf(saving.error, ["name", "value", "phases"]);
  const about = useId();
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    if (!saving.isPending) saving.mutate();
  };
  return (
    <form onSubmit={submit} noValidate className="mt-4 space-y-4">
      {known === undefined && (
        <Field label={texts.name} hint={texts.nameHint} error={wrong === "name" ? saving.error : null}>
          {(attributes) => (
            <input
              {...attributes}
              className="field font-mono"
              autoComplete="off"
              autoCapitalize="none"
              spellCheck={false}
              value={values.name}
              onChange={({ target }) => setValues({ ...values, name: target.value.trim() })}
            />
          )}
        </Field>
      )}
      <Field
        label={known === undefined ? texts.value : texts.newValue}
        {...(known !== undefined && { hint: texts.newValueHint })}
        error={wrong === "value" ? saving.error : null}
      >
        {(attributes) => (
          // Of several lines, as private keys are. Its characters are shown as dots by its style.
          <textarea
            {...attributes}
            rows={2}
            className="field max-h-60 [-webkit-text-security:disc] field-sizing-content font-mono"
            autoComplete="off"
            autoCapitalize="none"
            spellCheck={false}
            value={values.value}
            onChange={({ target }) => setValues({ ...values, value: target.value })}
          />
        )}
      </Field>
      <fieldset aria-describedby={about} className="space-y-1 text-sm">
        <legend className="font-medium">{texts.seenBy}</legend>
        <div className="flex gap-4">
          {secretPhases.map((phase) => (
            <label key={phase} className="flex min-h-6 items-center gap-1.5">
              <input
                type="checkbox"
                checked={values.phases.includes(phase)}
                onChange={({ target }) =>
                  setValues({
                    ...values,
                    phases: secretPhases.filter((each) =>
                      each === phase ? target.checked : values.phases.includes(each),
                    ),
                  })
                }
              />
              {texts.phases[phase]}
            </label>
          ))}
        </div>
        <div id={about}>
          {wrong === "phases" ? (
            <ErrorText error={saving.error} />
          ) : (
            <p className="text-xs text-muted">{texts.seenByHint}</p>
          )}
        </div>
      </fieldset>
      <FormEnd
        error={wrong === null ? saving.error : null}
        isPending={saving.isPending}
        verb={texts.save}
        pendingVerb={texts.saving}
      />
    </form>
  );
}
