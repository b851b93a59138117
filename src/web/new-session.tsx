import { useMutation, useQuery } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { useId, useState, type FormEvent, type KeyboardEvent } from "react";
import { ButtonDialog } from "./elements/dialog.tsx";
import { Field, fieldOf } from "./elements/field.tsx";
import { FormEnd } from "./elements/form-end.tsx";
import { client, useMay } from "./query.ts";

/** A button and the dialog that creates a session; nothing for those who may not. */
export function NewSession() {
  // Kept outside of the dialog, so that closing it by mistake loses nothing.
  const [prompt, setPrompt] = useState("");
  if (!useMay("write")) return null;
  return (
    <ButtonDialog button="New session" className="button button-primary" title="New session">
      {() => <NewSessionForm prompt={prompt} onPrompt={setPrompt} />}
    </ButtonDialog>
  );
}

function NewSessionForm({ prompt, onPrompt }: { prompt: string; onPrompt: (prompt: string) => void }) {
  const navigate = useNavigate();
  const repositories = useQuery({ queryKey: ["repositories"], queryFn: () => client.repository.list({ limit: 100 }) });
  const agents = useQuery({ queryKey: ["agents"], queryFn: () => client.agent.list() });
  const create = useMutation({
    mutationFn: (form: FormData) => {
      const value = (name: string): string => {
        const entry = form.get(name);
        return typeof entry === "string" ? entry.trim() : "";
      };
      return client.session.create({
        prompt: prompt.trim(),
        ...(value("repository") !== "" && { repositories: [value("repository")] }),
        ...(value("targetBranch") !== "" && { targetBranch: value("targetBranch") }),
        ...(value("agent") !== "" && { agent: value("agent") }),
      });
    },
    onSuccess: ({ id }) => navigate({ to: "/sessions/$id", params: { id } }),
  });
  const { error } = create;
  const wrong = fieldOf(error, ["prompt", "repositories", "targetBranch", "agent"]);
  const errorOf = (name: typeof wrong): Error | null => (wrong === name ? error : null);
  const submit = (event: FormEvent<HTMLFormElement>): void => {
    event.preventDefault();
    if (!create.isPending) create.mutate(new FormData(event.currentTarget));
  };
  const submitByKeys = (event: KeyboardEvent<HTMLTextAreaElement>): void => {
    if (event.key === "Enter" && (event.metaKey || event.ctrlKey)) event.currentTarget.form?.requestSubmit();
  };
  const listId = useId();
  const available = agents.data?.agents.filter((agent) => agent.available) ?? [];
  return (
    <form onSubmit={submit} className="mt-4 space-y-4">
      <Field label="What should be done?" error={errorOf("prompt")}>
        {(attributes) => (
          <textarea
            {...attributes}
            dir="auto"
            required
            rows={6}
            className="field"
            value={prompt}
            onChange={({ target }) => onPrompt(target.value)}
            onKeyDown={submitByKeys}
          />
        )}
      </Field>
      <Field label="Repository" hint="Its URL. Empty for a session without one." error={errorOf("repositories")}>
        {(attributes) => (
          <>
            <input
              {...attributes}
              name="repository"
              list={listId}
              className="field"
              placeholder="https://github.com/owner/name"
            />
            <datalist id={listId}>
              {repositories.data?.codeRepositories.map(({ id: key, name, url }) => (
                <option key={key} value={url}>
                  {name}
                </option>
              ))}
            </datalist>
          </>
        )}
      </Field>
      <div className="grid gap-4 sm:grid-cols-2">
        <Field label="Target branch" hint="Empty for the default branch." error={errorOf("targetBranch")}>
          {(attributes) => <input {...attributes} name="targetBranch" className="field" />}
        </Field>
        <Field label="Agent" error={errorOf("agent")}>
          {(attributes) => (
            <select {...attributes} name="agent" className="field">
              <option value="">Default</option>
              {available.map(({ id: provider, name, defaultModel }) => (
                <option key={provider} value={`${provider}:${defaultModel ?? "default"}`}>
                  {name}
                </option>
              ))}
            </select>
          )}
        </Field>
      </div>
      <FormEnd
        error={wrong === null ? error : null}
        isPending={create.isPending}
        verb="Start"
        pendingVerb="Starting …"
      />
    </form>
  );
}
