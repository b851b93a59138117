import { useMutation } from "@tanstack/react-query";
import { useState, type FormEvent } from "react";
import type { Connection } from "../../domain/repositories/connection.ts";
import { Field, fieldOf } from "../elements/field.tsx";
import { FormEnd } from "../elements/form-end.tsx";
import { linesOf } from "../elements/lines.ts";
import { client } from "../query.ts";
import { useSettingsTexts } from "../texts/settings.ts";

/** A connection's name, and at Azure DevOps the repositories that work items are about. */
export function ConnectionChange({ connection, onSaved }: { connection: Connection; onSaved: () => void }) {
  const words = useSettingsTexts();
  const texts = words.connection;
  const hasWorkItems = connection.kind === "azure";
  const [name, setName] = useState(connection.name);
  const [workItems, setWorkItems] = useState(inWords(connection.workItemRepositories));
  const save = useMutation({
    mutationFn: () =>
      client.connection.update(connection.id, {
        name: name.trim(),
        ...(hasWorkItems && { workItemRepositories: read(workItems) }),
      }),
    onSuccess: onSaved,
  });
  const wrong = fieldOf(save.error, ["name", "workItemRepositories"]);
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    if (!save.isPending) save.mutate();
  };
  return (
    <form onSubmit={submit} noValidate className="mt-4 space-y-4">
      <Field label={texts.name} error={wrong === "name" ? save.error : null}>
        {(attributes) => (
          <input
            {...attributes}
            autoComplete="off"
            className="field"
            value={name}
            onChange={({ target }) => setName(target.value)}
          />
        )}
      </Field>
      {hasWorkItems && (
        <Field
          label={texts.workItems}
          hint={texts.workItemsHint}
          error={wrong === "workItemRepositories" ? save.error : null}
        >
          {(attributes) => (
            <textarea
              {...attributes}
              rows={3}
              autoCapitalize="none"
              spellCheck={false}
              placeholder="Shop = backend"
              className="field"
              value={workItems}
              onChange={({ target }) => setWorkItems(target.value)}
            />
          )}
        </Field>
      )}
      <FormEnd
        error={wrong === null ? save.error : null}
        isPending={save.isPending}
        verb={words.save}
        pendingVerb={words.saving}
      />
    </form>
  );
}

function inWords(repositories: Connection["workItemRepositories"]): string {
  return Object.entries(repositories ?? {})
    .map(([project, repository]) => `${project} = ${repository}`)
    .join("\n");
}

/** No name of a project has a "=". What has none is sent without a repository, which the API refuses by the project's name. */
function read(text: string): Record<string, string> | null {
  const entries = linesOf(text).map((line): [string, string] => {
    const [project = "", ...repository] = line.split("=");
    return [project.trim(), repository.join("=").trim()];
  });
  return entries.length === 0 ? null : Object.fromEntries(entries);
}
