import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useId, useState, type FormEvent } from "react";
import { secretPhases, type SecretPhase } from "../../domain/environments/secret.ts";
import type { Organization, UpdateOrganization } from "../../domain/people/organization.ts";
import { roles, type Role, type User } from "../../domain/people/user.ts";
import { ConfirmButton } from "../elements/dialog.tsx";
import { formatDollars } from "../elements/dollars.ts";
import { Field, fieldOf } from "../elements/field.tsx";
import { linesOf } from "../elements/lines.ts";
import { Ago } from "../elements/time.tsx";
import { useTitle } from "../elements/use-title.ts";
import { ErrorText } from "../layout.tsx";
import { client } from "../query.ts";
import { Connections } from "../settings/connections.tsx";
import { Keys } from "../settings/keys.tsx";
import { SignIns } from "../settings/sign-ins.tsx";

/** Settings that admins make for all sessions, and the secrets for setups and agents. */
export function SettingsPage() {
  const organization = useQuery({ queryKey: ["organization"], queryFn: () => client.organization.get() });
  useTitle("Settings");
  return (
    <div className="space-y-6">
      <h1 className="text-xl font-semibold">Settings</h1>
      <ErrorText error={organization.error} />
      {organization.data === undefined && organization.error !== null && (
        <button type="button" className="button" onClick={() => void organization.refetch()}>
          Try again
        </button>
      )}
      {organization.data === undefined && organization.error === null && (
        <p className="text-muted">Loading the settings …</p>
      )}
      {organization.data !== undefined && (
        <>
          <OrganizationForm organization={organization.data} />
          <Connections />
          <Secrets />
          <Keys />
          <SignIns />
          <Users />
        </>
      )}
    </div>
  );
}

const budgets = [
  ["sessionBudgetUsd", "Each session"],
  ["runBudgetUsd", "Each run of an automation"],
  ["monthlyBudgetUsd", "All of them in a month"],
] as const;
/** Names of the API's fields that are not budgets. */
const others = ["defaultAgent", "maxRunningSessions", "models", "repositories", "egress"] as const;

function OrganizationForm({ organization }: { organization: Organization }) {
  const queries = useQueryClient();
  const [values, setValues] = useState<Record<string, string>>(() => ({
    ...Object.fromEntries(budgets.map(([name]) => [name, organization[name]?.toString() ?? ""])),
    defaultAgent: organization.defaultAgent ?? "",
    maxRunningSessions: organization.maxRunningSessions?.toString() ?? "",
    models: organization.models?.join("\n") ?? "",
    repositories: organization.repositories?.join("\n") ?? "",
    egress: organization.egress.join("\n"),
  }));
  const save = useMutation({
    mutationFn: (changes: UpdateOrganization) => client.organization.update(changes),
    onSuccess: (saved) => queries.setQueryData(["organization"], saved),
  });
  const field = (name: string) => ({
    value: values[name] ?? "",
    onChange: (event: { target: { value: string } }) => {
      setValues({ ...values, [name]: event.target.value });
      save.reset();
    },
  });
  const wrong = fieldOf(save.error, [...budgets.map(([name]) => name), ...others]);
  const errorOf = (name: typeof wrong): Error | null => (wrong === name ? save.error : null);
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    const models = linesOf(values["models"] ?? "");
    const repositories = linesOf(values["repositories"] ?? "");
    const agent = (values["defaultAgent"] ?? "").trim();
    const running = values["maxRunningSessions"] ?? "";
    save.mutate({
      defaultAgent: agent === "" ? null : agent,
      maxRunningSessions: running === "" ? null : Number(running),
      ...Object.fromEntries(budgets.map(([name]) => [name, values[name] === "" ? null : Number(values[name])])),
      models: models.length === 0 ? null : models,
      repositories: repositories.length === 0 ? null : repositories,
      egress: linesOf(values["egress"] ?? ""),
    });
  };
  return (
    <form onSubmit={submit} className="card space-y-4 p-4">
      <h2 className="font-medium">Sessions</h2>
      <p className="text-sm text-muted">Spent on models this month: {formatDollars(organization.spentUsd)}</p>
      <fieldset className="grid gap-3 sm:grid-cols-3">
        <legend className="mb-2 text-sm">Budgets in US dollars; empty for no limit</legend>
        {budgets.map(([name, label]) => (
          <Field key={name} label={label} error={errorOf(name)}>
            {(attributes) => (
              <input {...attributes} type="number" min="0" step="any" className="field" {...field(name)} />
            )}
          </Field>
        ))}
      </fieldset>
      <div className="grid gap-4 sm:grid-cols-2">
        <Field label="Default agent" hint="provider:model. Empty for the server’s." error={errorOf("defaultAgent")}>
          {(attributes) => (
            <input {...attributes} autoComplete="off" spellCheck={false} className="field" {...field("defaultAgent")} />
          )}
        </Field>
        <Field label="Sessions at once" hint="Empty for the server’s limit." error={errorOf("maxRunningSessions")}>
          {(attributes) => (
            <input {...attributes} type="number" min="1" step="1" className="field" {...field("maxRunningSessions")} />
          )}
        </Field>
      </div>
      <Field
        label="Allowed models"
        hint="One on each line, * for any characters. Empty for all."
        error={errorOf("models")}
      >
        {(attributes) => <textarea {...attributes} rows={3} className="field" {...field("models")} />}
      </Field>
      <Field
        label="Allowed repositories"
        hint="One on each line, such as github.com/acme/*. Empty for all."
        error={errorOf("repositories")}
      >
        {(attributes) => <textarea {...attributes} rows={3} className="field" {...field("repositories")} />}
      </Field>
      <Field label="Hosts that all sandboxes may reach" hint="One on each line." error={errorOf("egress")}>
        {(attributes) => <textarea {...attributes} rows={3} className="field" {...field("egress")} />}
      </Field>
      <div className="flex items-center gap-3">
        <button type="submit" className="button button-primary" disabled={save.isPending}>
          Save
        </button>
        <output className="text-sm text-good">{save.isSuccess ? "Saved" : ""}</output>
      </div>
      <ErrorText error={wrong === null ? save.error : null} />
    </form>
  );
}

function Secrets() {
  const queries = useQueryClient();
  const secrets = useQuery({ queryKey: ["secrets"], queryFn: () => client.secret.list({ limit: 100 }) });
  const reload = () => queries.invalidateQueries({ queryKey: ["secrets"] });
  const remove = useMutation({ mutationFn: (id: string) => client.secret.delete(id), onSuccess: reload });
  return (
    <section aria-labelledby="secrets" className="card space-y-4 p-4">
      <h2 id="secrets" className="font-medium">
        Secrets
      </h2>
      <p className="text-sm text-muted">
        Environment variables of setup scripts and agents. A value can be set, never read back.
      </p>
      <ErrorText error={secrets.error ?? remove.error} />
      {secrets.data !== undefined && secrets.data.secrets.length > 0 && (
        <ul aria-label="Secrets" className="divide-y divide-line text-sm">
          {secrets.data.secrets.map((secret) => (
            <li key={secret.id} className="flex items-center gap-x-3 py-2">
              <div className="min-w-0 flex-1">
                <code className="font-medium break-all">{secret.name}</code>
                <p className="text-muted">
                  {secret.phases.join(" and ")}
                  {secret.repositoryId !== null && ", one repository"} · <Ago at={secret.updatedAt} />
                </p>
              </div>
              <ConfirmButton
                button="Delete"
                of={secret.name}
                disabled={remove.isPending}
                question={`Delete ${secret.name}?`}
                onConfirm={() => remove.mutate(secret.id)}
              >
                Setups and agents no longer get it, and its value can’t be read back.
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
      <Field label="Name">
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
      <Field label="Value">
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
        <legend className="sr-only">Who sees it</legend>
        {secretPhases.map((phase) => (
          <label key={phase} className="flex items-center gap-1.5">
            <input
              type="checkbox"
              checked={phases.includes(phase)}
              onChange={({ target }) =>
                setPhases(target.checked ? [...phases, phase] : phases.filter((known) => known !== phase))
              }
            />
            {phase}
          </label>
        ))}
      </fieldset>
      <button type="submit" className="button justify-self-start" disabled={create.isPending || phases.length === 0}>
        Add
      </button>
      {create.error !== null && (
        <div className="sm:col-span-4">
          <ErrorText error={create.error} />
        </div>
      )}
    </form>
  );
}

function Users() {
  const users = useQuery({ queryKey: ["users"], queryFn: () => client.user.list({ limit: 100 }) });
  return (
    <section aria-labelledby="users" className="card space-y-4 p-4">
      <h2 id="users" className="font-medium">
        Users
      </h2>
      <p className="text-sm text-muted">Who signed in by an identity provider. A change counts at once.</p>
      <ErrorText error={users.error} />
      {users.data?.users.length === 0 && <p className="text-sm text-muted">Nobody so far.</p>}
      {users.data !== undefined && users.data.users.length > 0 && (
        <ul aria-label="Users" className="divide-y divide-line text-sm">
          {users.data.users.map((user) => (
            <UserRow key={user.id} user={user} />
          ))}
        </ul>
      )}
    </section>
  );
}

function UserRow({ user }: { user: User }) {
  const queries = useQueryClient();
  const id = useId();
  const update = useMutation({
    mutationFn: (change: { role?: Role; disabled?: boolean }) => client.user.update(user.id, change),
    onSuccess: () => queries.invalidateQueries({ queryKey: ["users"] }),
  });
  const isDisabled = user.disabledAt !== null;
  return (
    <li className="flex flex-wrap items-center gap-x-3 gap-y-1 py-2">
      <div className="min-w-0 flex-1 basis-full sm:basis-48">
        <span className={`font-medium wrap-anywhere ${isDisabled ? "text-muted line-through" : ""}`}>{user.name}</span>
        <p className="wrap-anywhere text-muted">
          {user.email ?? user.issuer} · signed in <Ago at={user.lastSignInAt} />
        </p>
      </div>
      <label htmlFor={id} className="sr-only">
        Role of {user.name}
      </label>
      <select
        id={id}
        className="field w-auto"
        value={user.role}
        disabled={update.isPending}
        onChange={({ target }) => {
          const role = roles.find((known) => known === target.value);
          if (role !== undefined) update.mutate({ role });
        }}
      >
        {roles.map((role) => (
          <option key={role}>{role}</option>
        ))}
      </select>
      <button
        type="button"
        className="button"
        disabled={update.isPending}
        onClick={() => update.mutate({ disabled: !isDisabled })}
      >
        {isDisabled ? "Enable" : "Disable"}
        <span className="sr-only"> {user.name}</span>
      </button>
      <ErrorText error={update.error} />
    </li>
  );
}
