import { useMutation, useQuery } from "@tanstack/react-query";
import { useDeferredValue, useId, useState, type FormEvent } from "react";
import type { CreateRepository, Repository } from "../../domain/repositories/repository.ts";
import { Field, fieldOf } from "../elements/field.tsx";
import { FormEnd } from "../elements/form-end.tsx";
import { client, useMay } from "../query.ts";
import { useRepositoryTexts } from "../texts/repositories.ts";
import { calls } from "./calls.ts";

const fields = ["url", "name", "branch", "description"] as const;
type FieldName = (typeof fields)[number];

/** Connects a repository by its address. What is left empty is as the forge says. */
export function ConnectForm({ onConnected }: { onConnected: (repository: Repository) => Promise<void> }) {
  const texts = useRepositoryTexts();
  const isAdmin = useMay("admin");
  const [values, setValues] = useState<Readonly<Record<FieldName, string>>>({
    url: "",
    name: "",
    branch: "",
    description: "",
  });
  const asked = useDeferredValue(values.url.trim());
  const offered = useQuery({
    queryKey: ["repositories", "offered", asked],
    queryFn: () => client.repository.search(asked),
    staleTime: 60_000,
    retry: false,
  });
  const offeredId = useId();
  const connect = useMutation({
    mutationFn: async () => {
      const written = fields.map((name) => [name, values[name].trim()] as const).filter(([, value]) => value !== "");
      // The server says that an address is required.
      await onConnected(await calls.connect(Object.fromEntries(written) as CreateRepository));
    },
  });
  const wrong = fieldOf(connect.error, fields);
  const errorOf = (name: FieldName): Error | null => (wrong === name ? connect.error : null);
  const input = (name: FieldName) => ({
    className: "field",
    autoComplete: "off",
    autoCapitalize: "none",
    spellCheck: false,
    value: values[name],
    onChange: ({ target }: { target: { value: string } }) => setValues({ ...values, [name]: target.value }),
  });
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    if (!connect.isPending) connect.mutate();
  };
  return (
    <form onSubmit={submit} noValidate className="mt-4 space-y-4">
      <Field label={texts.connect.url} hint={texts.connect.urlHint} error={errorOf("url")}>
        {(attributes) => (
          <input
            {...attributes}
            {...input("url")}
            inputMode="url"
            list={offeredId}
            placeholder="https://github.com/owner/name"
          />
        )}
      </Field>
      <datalist id={offeredId}>
        {offered.data?.repositories.map(({ url, name }) => (
          <option key={url} value={url}>
            {name}
          </option>
        ))}
      </datalist>
      <div className="grid gap-4 sm:grid-cols-2">
        <Field label={texts.general.name} error={errorOf("name")}>
          {(attributes) => <input {...attributes} {...input("name")} placeholder="owner/name" />}
        </Field>
        <Field label={texts.general.note} error={errorOf("description")}>
          {(attributes) => <input {...attributes} {...input("description")} autoCapitalize="sentences" />}
        </Field>
      </div>
      {isAdmin && (
        <Field label={texts.general.branch} hint={texts.general.branchHint} error={errorOf("branch")}>
          {(attributes) => <input {...attributes} {...input("branch")} />}
        </Field>
      )}
      <FormEnd
        error={wrong === null ? connect.error : null}
        isPending={connect.isPending}
        verb={texts.connect.verb}
        pendingVerb={texts.connect.pending}
      />
    </form>
  );
}
