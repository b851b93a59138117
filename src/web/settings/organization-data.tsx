import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { useState, type FormEvent } from "react";
import { announce } from "../elements/announce.tsx";
import { ButtonDialog, CloseDialog } from "../elements/dialog.tsx";
import { Field, fieldOf } from "../elements/field.tsx";
import { ErrorText } from "../elements/notice.tsx";
import { useSettingsTexts } from "../texts/settings.ts";
import { calls, exportAddress } from "./calls.ts";
import { Section } from "./section.tsx";

/** All data of the organization: exported as an archive, or erased for ever. */
export function OrganizationData({ name }: { name: string }) {
  const texts = useSettingsTexts().data;
  return (
    <Section id="data" title={texts.title}>
      <div className="space-y-2 text-sm text-muted">
        <p>{texts.exportAbout}</p>
        <a href={exportAddress} download className="button">
          {texts.export}
        </a>
      </div>
      <div className="space-y-2 text-sm text-muted">
        <p>{texts.eraseAbout}</p>
        <ButtonDialog button={texts.erase} title={texts.eraseTitle(name)}>
          {() => <EraseForm name={name} />}
        </ButtonDialog>
      </div>
    </Section>
  );
}

function EraseForm({ name }: { name: string }) {
  const texts = useSettingsTexts().data;
  const queries = useQueryClient();
  const navigate = useNavigate();
  const [written, setWritten] = useState("");
  const erase = useMutation({
    mutationFn: () => calls.erase(written.trim()),
    onSuccess: async () => {
      announce(texts.erased(name));
      // Whatever else is not saved is not asked about: there is nothing any more to save it to.
      await navigate({ to: "/sign-in", ignoreBlocker: true });
      queries.clear();
    },
  });
  const wrong = fieldOf(erase.error, ["name"]);
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    if (!erase.isPending) erase.mutate();
  };
  return (
    <form onSubmit={submit} noValidate className="mt-4 space-y-4">
      <div className="space-y-2 text-sm">
        <p className="font-medium">{texts.goes}</p>
        <ul className="list-disc space-y-1 ps-5">
          {texts.going.map((one) => (
            <li key={one}>{one}</li>
          ))}
        </ul>
        <p className="text-muted">{texts.stays}</p>
      </div>
      <Field label={texts.name} hint={texts.nameHint(name)} error={wrong === null ? null : erase.error}>
        {(attributes) => (
          <input
            {...attributes}
            autoComplete="off"
            autoCapitalize="none"
            spellCheck={false}
            className="field"
            value={written}
            onChange={({ target }) => setWritten(target.value)}
          />
        )}
      </Field>
      <ErrorText error={wrong === null ? erase.error : null} />
      <div className="flex justify-end gap-2">
        <CloseDialog />
        <button type="submit" className="button button-danger" disabled={erase.isPending}>
          {erase.isPending ? texts.erasing : texts.eraseVerb}
        </button>
      </div>
    </form>
  );
}
