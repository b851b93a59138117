import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useState, type FormEvent } from "react";
import type { Organization, UpdateOrganization } from "../../domain/people/organization.ts";
import { Field, fieldOf } from "../elements/field.tsx";
import { linesOf } from "../elements/lines.ts";
import { ErrorText } from "../elements/notice.tsx";
import { Unsaved } from "../elements/unsaved.tsx";
import { client } from "../query.ts";
import { formatDollars } from "../texts/formats.ts";
import { useSettingsTexts } from "../texts/settings.ts";
import { Section } from "./section.tsx";

const budgets = ["sessionBudgetUsd", "runBudgetUsd", "monthlyBudgetUsd"] as const;
/** Names of the API's fields that are not budgets. */
const others = ["defaultAgent", "maxRunningSessions", "models", "repositories", "egress"] as const;

/** What all sessions of the organization start with and may do: budgets, limits, models, repositories, hosts. */
export function OrganizationForm({ organization }: { organization: Organization }) {
  const words = useSettingsTexts();
  const texts = words.organization;
  const queries = useQueryClient();
  const [values, setValues] = useState<Record<string, string>>(() => ({
    ...Object.fromEntries(budgets.map((name) => [name, organization[name]?.toString() ?? ""])),
    defaultAgent: organization.defaultAgent ?? "",
    maxRunningSessions: organization.maxRunningSessions?.toString() ?? "",
    models: organization.models?.join("\n") ?? "",
    repositories: organization.repositories?.join("\n") ?? "",
    egress: organization.egress.join("\n"),
  }));
  const [before] = useState(values);
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
  const wrong = fieldOf(save.error, [...budgets, ...others]);
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
      ...Object.fromEntries(budgets.map((name) => [name, values[name] === "" ? null : Number(values[name])])),
      models: models.length === 0 ? null : models,
      repositories: repositories.length === 0 ? null : repositories,
      egress: linesOf(values["egress"] ?? ""),
    });
  };
  return (
    <Section id="sessions" title={texts.title}>
      <form onSubmit={submit} className="space-y-4">
        <p className="text-sm text-muted">{texts.spent(formatDollars(organization.spentUsd))}</p>
        <fieldset className="grid gap-3 sm:grid-cols-3">
          <legend className="mb-2 text-sm">{texts.budgets}</legend>
          {budgets.map((name) => (
            <Field key={name} label={texts[name]} error={errorOf(name)}>
              {(attributes) => (
                <input {...attributes} type="number" min="0" step="any" className="field" {...field(name)} />
              )}
            </Field>
          ))}
        </fieldset>
        <div className="grid gap-4 sm:grid-cols-2">
          <Field label={texts.agent} hint={texts.agentHint} error={errorOf("defaultAgent")}>
            {(attributes) => (
              <input
                {...attributes}
                autoComplete="off"
                spellCheck={false}
                className="field"
                {...field("defaultAgent")}
              />
            )}
          </Field>
          <Field label={texts.running} hint={texts.runningHint} error={errorOf("maxRunningSessions")}>
            {(attributes) => (
              <input
                {...attributes}
                type="number"
                min="1"
                step="1"
                className="field"
                {...field("maxRunningSessions")}
              />
            )}
          </Field>
        </div>
        <Field label={texts.models} hint={texts.modelsHint} error={errorOf("models")}>
          {(attributes) => <textarea {...attributes} rows={3} className="field" {...field("models")} />}
        </Field>
        <Field label={texts.repositories} hint={texts.repositoriesHint} error={errorOf("repositories")}>
          {(attributes) => <textarea {...attributes} rows={3} className="field" {...field("repositories")} />}
        </Field>
        <Field label={texts.egress} hint={texts.egressHint} error={errorOf("egress")}>
          {(attributes) => <textarea {...attributes} rows={3} className="field" {...field("egress")} />}
        </Field>
        <div className="flex items-center gap-3">
          <button type="submit" className="button button-primary" disabled={save.isPending}>
            {words.save}
          </button>
          <output className="text-sm text-good">{save.isSuccess ? words.saved : ""}</output>
        </div>
        <ErrorText error={wrong === null ? save.error : null} />
        <Unsaved isChanged={!save.isSuccess && values !== before} />
      </form>
    </Section>
  );
}
