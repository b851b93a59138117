import { useMutation, useQuery } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { Dialog } from "radix-ui";
import { useId, useState, type ComponentProps, type FormEvent, type ReactNode } from "react";
import { ErrorText } from "./layout.tsx";
import { client } from "./query.ts";

/** A button, and the dialog in which a session is written. */
export function NewSession() {
  const [open, setOpen] = useState(false);
  return (
    <Dialog.Root open={open} onOpenChange={setOpen}>
      <Dialog.Trigger className="button button-primary">New session</Dialog.Trigger>
      <Dialog.Portal>
        <Dialog.Overlay className="fixed inset-0 bg-black/50" />
        <Dialog.Content
          aria-describedby={undefined}
          className="fixed top-1/2 left-1/2 max-h-[92dvh] w-[min(36rem,94vw)] -translate-x-1/2 -translate-y-1/2 overflow-y-auto rounded-lg border border-line bg-surface p-5"
        >
          <Dialog.Title className="text-lg font-semibold">New session</Dialog.Title>
          <NewSessionForm />
        </Dialog.Content>
      </Dialog.Portal>
    </Dialog.Root>
  );
}

function NewSessionForm() {
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
        prompt: value("prompt"),
        ...(value("repository") !== "" && { repositories: [value("repository")] }),
        ...(value("targetBranch") !== "" && { targetBranch: value("targetBranch") }),
        ...(value("agent") !== "" && { agent: value("agent") }),
      });
    },
    onSuccess: ({ id }) => navigate({ to: "/sessions/$id", params: { id } }),
  });
  const submit = (event: FormEvent<HTMLFormElement>): void => {
    event.preventDefault();
    create.mutate(new FormData(event.currentTarget));
  };
  const listId = useId();
  const available = agents.data?.agents.filter((agent) => agent.available) ?? [];
  return (
    <form onSubmit={submit} className="mt-4 space-y-4">
      <Field label="What should be done?">
        {(id) => <textarea id={id} name="prompt" required rows={6} className="field" />}
      </Field>
      <Field label="Repository" hint="Its URL. Empty for a session without one.">
        {(id) => (
          <>
            <input
              id={id}
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
        <Field label="Target branch" hint="Empty for the default branch.">
          {(id) => <input id={id} name="targetBranch" className="field" />}
        </Field>
        <Field label="Agent">
          {(id) => (
            <select id={id} name="agent" className="field">
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
      <ErrorText error={create.error} />
      <div className="flex justify-end gap-2">
        <Dialog.Close className="button">Close</Dialog.Close>
        <button type="submit" className="button button-primary" disabled={create.isPending}>
          {create.isPending ? "Starting …" : "Start"}
        </button>
      </div>
    </form>
  );
}

interface FieldProps extends Omit<ComponentProps<"div">, "children"> {
  readonly label: string;
  readonly hint?: string;
  readonly children: (id: string) => ReactNode;
}

function Field({ label, hint, children }: FieldProps) {
  const id = useId();
  return (
    <div className="space-y-1">
      <label htmlFor={id} className="text-sm font-medium">
        {label}
      </label>
      {children(id)}
      {hint !== undefined && <p className="text-xs text-muted">{hint}</p>}
    </div>
  );
}
