import type { Secret, SecretPhase } from "../../../domain/environments/secret.ts";
import { useSecretTexts } from "../../texts/secrets.ts";
import { ButtonDialog } from "../dialog.tsx";
import { SecretForm } from "./secret-form.tsx";

/** A button that opens the form of another value and other phases of a secret. */
export function ChangeSecret({
  secret,
  save,
  onSaved,
}: {
  readonly secret: Pick<Secret, "name" | "phases">;
  /** `value` is left out if the secret keeps the one that it has. */
  readonly save: (changes: { readonly phases: SecretPhase[]; readonly value?: string }) => Promise<unknown>;
  readonly onSaved: () => Promise<void>;
}) {
  const texts = useSecretTexts();
  return (
    <ButtonDialog button={texts.change} of={secret.name} title={texts.changeOf(secret.name)}>
      {(close) => (
        <SecretForm
          known={secret}
          save={async ({ value, phases }) => {
            await save({ phases, ...(value !== "" && { value }) });
            close();
            await onSaved();
          }}
        />
      )}
    </ButtonDialog>
  );
}
