import { useMutation } from "@tanstack/react-query";
import { useState, type FormEvent } from "react";
import type { Connection } from "../../domain/repositories/connection.ts";
import { Field, fieldOf } from "../elements/field.tsx";
import { FormEnd } from "../elements/form-end.tsx";
import { client } from "../query.ts";
import { useSettingsTexts } from "../texts/settings.ts";

/** The field for bots' value if none may steer, whatever the server says. */
const noBot = "none";

/** The mention and trusted bots for comments of a connection. Empty fields mean the server's settings. */
export function CallingForm({ connection, onSaved }: { connection: Connection; onSaved: () => void }) {
  const all = useSettingsTexts();
  const texts = all.calling;
  const [mention, setMention] = useState(connection.mention ?? "");
  const [bots, setBots] = useState(inWords(connection.allowedBots));
  const save = useMutation({
    mutationFn: () =>
      client.connection.update(connection.id, {
        mention: mention.trim() === "" ? null : mention.trim(),
        allowedBots: read(bots),
      }),
    onSuccess: onSaved,
  });
  const wrong = fieldOf(save.error, ["mention", "allowedBots"]);
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    if (!save.isPending) save.mutate();
  };
  const attributesOfAll = {
    autoComplete: "off",
    autoCapitalize: "none",
    spellCheck: false,
    className: "field",
  } as const;
  return (
    <form onSubmit={submit} noValidate className="mt-4 space-y-4">
      <Field label={texts.mention} hint={texts.mentionHint} error={wrong === "mention" ? save.error : null}>
        {(attributes) => (
          <input
            {...attributes}
            {...attributesOfAll}
            placeholder="@offstage"
            value={mention}
            onChange={({ target }) => setMention(target.value)}
          />
        )}
      </Field>
      <Field label={texts.bots} hint={texts.botsHint(noBot)} error={wrong === "allowedBots" ? save.error : null}>
        {(attributes) => (
          <input
            {...attributes}
            {...attributesOfAll}
            placeholder="renovate[bot]"
            value={bots}
            onChange={({ target }) => setBots(target.value)}
          />
        )}
      </Field>
      <FormEnd
        error={wrong === null ? save.error : null}
        isPending={save.isPending}
        verb={all.save}
        pendingVerb={all.saving}
      />
    </form>
  );
}

function inWords(bots: Connection["allowedBots"]): string {
  if (bots === null) return "";
  return bots.length === 0 ? noBot : bots.join(", ");
}

function read(bots: string): string[] | null {
  const logins = bots.split(/[\s,]+/u).filter((login) => login !== "");
  if (logins.length === 0) return null;
  return logins.length === 1 && logins[0] === noBot ? [] : logins;
}
