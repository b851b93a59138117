import { useMutation } from "@tanstack/react-query";
import { useState, type FormEvent } from "react";
import { useErasureTexts } from "../texts/erasure.ts";
import { announce } from "./announce.tsx";
import { ButtonDialog, CloseDialog } from "./dialog.tsx";
import { Field, fieldOf } from "./field.tsx";
import { ErrorText } from "./notice.tsx";

interface Erasing {
  /** The organization's name, which confirms it. */
  readonly name: string;
  /** Whether it is the reader's own. */
  readonly isOwn: boolean;
  /** @param written what the reader wrote as the name */
  readonly erase: (written: string) => Promise<unknown>;
}

/** A button with a dialog that erases an organization, once its name is written. @param onErased called when the erasure has begun */
export function EraseOrganization({
  button,
  onErased,
  ...erasing
}: Erasing & { readonly button: string; readonly onErased: () => Promise<void> }) {
  const { title } = useErasureTexts();
  const { name, isOwn } = erasing;
  return (
    <ButtonDialog button={button} {...(!isOwn && { of: name })} title={title(name)}>
      {(close) => (
        <EraseForm
          {...erasing}
          onErased={() => {
            close();
            return onErased();
          }}
        />
      )}
    </ButtonDialog>
  );
}

function EraseForm({ name, isOwn, erase, onErased }: Erasing & { readonly onErased: () => Promise<void> }) {
  const texts = useErasureTexts();
  const [written, setWritten] = useState("");
  const erasing = useMutation({
    mutationFn: () => erase(written.trim()),
    onSuccess: () => {
      announce(texts.done(name));
      return onErased();
    },
  });
  const wrong = fieldOf(erasing.error, ["name"]);
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    if (!erasing.isPending) erasing.mutate();
  };
  return (
    <form onSubmit={submit} noValidate className="mt-4 space-y-4">
      <div className="space-y-2 text-sm">
        <p className="font-medium">{texts.goes}</p>
        <ul className="list-disc space-y-1 ps-5">
          {texts.going(isOwn).map((one) => (
            <li key={one}>{one}</li>
          ))}
        </ul>
        <p className="text-muted">{texts.stays}</p>
      </div>
      <Field label={texts.name} hint={texts.nameHint(name)} error={wrong === null ? null : erasing.error}>
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
      <ErrorText error={wrong === null ? erasing.error : null} />
      <div className="flex justify-end gap-2">
        <CloseDialog />
        <button type="submit" className="button button-danger" disabled={erasing.isPending}>
          {erasing.isPending ? texts.pending : texts.verb}
        </button>
      </div>
    </form>
  );
}
