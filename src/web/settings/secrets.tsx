import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { secretPhases, type SecretPhase } from "../../domain/environments/secret.ts";
import { ConfirmButton } from "../elements/dialog.tsx";
import { Field } from "../elements/field.tsx";
import { Ago } from "../elements/time.tsx";
import { ErrorText } from "../elements/notice.tsx";
import { client } from "../query.ts";
import { useSettingsTexts } from "../texts/settings.ts";

/** The secrets of setups and agents: named, added and deleted, never read. */
export function Secrets() {
  const words = useSettingsTexts();
  const texts = words.secrets;
  const queries = useQueryClient();
  const secrets = useQuery({ queryKey: ["secrets"], queryFn: () => client.secret.list({ limit: 100 }) });
  const reload = () => queries.invalidateQueries({ queryKey: ["secrets"] });
  const remove = useMutation({ mutationFn: (id: string) => client.secret.delete(id), onSuccess: reload });
  return (
    <section aria-labelledby="secrets" className="card space-y-4 p-4">
      <h2 id="secrets" className="font-medium">
        {texts.title}
      </h2>
      <p className="text-sm text-muted">{texts.about}</p>
      <ErrorText error={secrets.error ?? remove.error} />
      {secrets.data !== undefined && secrets.data.secrets.length > 0 && (
        <ul aria-label={texts.title} className="divide-y divide-line text-sm">
          {secrets.data.secrets.map((secret) => (
            <li key={secret.id} className="flex items-center gap-x-3 py-2">
              <div className="min-w-0 flex-1">
                <code className="font-medium break-all">{secret.name}</code>
                <p className="text-muted">
                  {secret.phases.map((phase) => texts.phases[phase]).join(` ${words.and} `)}
                  {secret.repositoryId !== null && texts.oneRepository} · <Ago at={secret.updatedAt} />
                </p>
              </div>
              <ConfirmButton
                button={words.delete}
                of={secret.name}
                disabled={remove.isPending}
                question={words.deleteQuestion(secret.name)}
                onConfirm={() => remove.mutate(secret.id)}
              >
                {texts.deleteAbout}
              </ConfirmButton>
            </li>
          ))}
        </ul>
      )}
      <NewSecret onMade={reload} />
    </section>
  );
}

function NewSecret({ onMade }: { onMade: () => Promise<void> }) {
  const texts = useSettingsTexts().secrets;
  const [name, setName] = useState("");
  const [value, setValue] = useState("");
  const [phases, setPhases] = useState<readonly SecretPhase[]>(["setup"]);
  const create = useMutation({
    mutationFn: () => client.secret.create({ name, value, phases: [...phases] }),
    onSuccess: async () => {
      setName("");
      setValue("");
      await onMade();
    },
  });
  return (
    <form
      className="grid gap-3 sm:grid-cols-[1fr_1fr_auto_auto] sm:items-end"
      onSubmit={(event) => {
        event.preventDefault();
        create.mutate();
      }}
    >
      <Field label={texts.name}>
        {(attributes) => (
          <input
            {...attributes}
            className="field"
            required
            value={name}
            onChange={(event) => setName(event.target.value)}
          />
        )}
      </Field>
      <Field label={texts.value}>
        {(attributes) => (
          <input
            {...attributes}
            type="password"
            autoComplete="off"
            className="field"
            required
            value={value}
            onChange={(event) => setValue(event.target.value)}
          />
        )}
      </Field>
      <fieldset className="flex gap-3 text-sm sm:pb-2">
        <legend className="sr-only">{texts.seenBy}</legend>
        {secretPhases.map((phase) => (
          <label key={phase} className="flex items-center gap-1.5">
            <input
              type="checkbox"
              checked={phases.includes(phase)}
              onChange={({ target }) =>
                setPhases(target.checked ? [...phases, phase] : phases.filter((known) => known !== phase))
              }
            />
            {texts.phases[phase]}
          </label>
        ))}
      </fieldset>
      <button type="submit" className="button justify-self-start" disabled={create.isPending || phases.length === 0}>
        {texts.add}
      </button>
      {create.error !== null && (
        <div className="sm:col-span-4">
          <ErrorText error={create.error} />
        </div>
      )}
    </form>
  );
}
