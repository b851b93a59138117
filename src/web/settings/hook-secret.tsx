import { useMutation } from "@tanstack/react-query";
import { useState, type FormEvent } from "react";
import type { z } from "zod";
import type { Connection, connectionWithSecretSchema } from "../../domain/repositories/connection.ts";
import { Field, fieldOf } from "../elements/field.tsx";
import { FormEnd } from "../elements/form-end.tsx";
import { client } from "../query.ts";
import { useSettingsTexts } from "../texts/settings.ts";

/** A field for a webhook secret that the forge has made itself. */
export function HookSecretField({
  value,
  error,
  onChange,
}: {
  value: string;
  error: Error | null;
  onChange: (value: string) => void;
}) {
  const texts = useSettingsTexts().connection;
  return (
    <Field label={texts.hookSecret} hint={texts.hookSecretHint} error={error}>
      {(attributes) => (
        <input
          {...attributes}
          type="password"
          autoComplete="off"
          className="field"
          value={value}
          onChange={({ target }) => onChange(target.value)}
        />
      )}
    </Field>
  );
}

/**
 * Another webhook secret of a connection: a new one, or one that the forge has made.
 * @param onSaved gets what is to be shown; null: the secret is the forge's, which has it
 */
export function HookSecretForm({
  connection,
  onSaved,
}: {
  connection: Connection;
  onSaved: (rotated: z.infer<typeof connectionWithSecretSchema> | null) => void;
}) {
  const words = useSettingsTexts();
  const texts = words.connections;
  const [secret, setSecret] = useState("");
  const own = secret.trim();
  const rotate = useMutation({
    mutationFn: () => client.connection.rotateSecret(connection.id, own === "" ? undefined : own),
    onSuccess: (rotated) => onSaved(own === "" ? rotated : null),
    // Don't keep the secret in the cache.
    gcTime: 0,
  });
  const wrong = fieldOf(rotate.error, ["webhookSecret"]);
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    if (!rotate.isPending) rotate.mutate();
  };
  return (
    <form onSubmit={submit} noValidate className="mt-4 space-y-4">
      <p className="text-sm text-muted">{texts.rotateAbout}</p>
      <HookSecretField value={secret} error={wrong === null ? null : rotate.error} onChange={setSecret} />
      <FormEnd
        error={wrong === null ? rotate.error : null}
        isPending={rotate.isPending}
        verb={texts.rotate}
        pendingVerb={words.saving}
      />
    </form>
  );
}
