import { useMutation, useQueryClient } from "@tanstack/react-query";
import type { FormEvent } from "react";
import type { Organization, UpdateOrganization } from "../../domain/people/organization.ts";
import { Field, fieldOf } from "../elements/field.tsx";
import { linesOf } from "../elements/lines.ts";
import { ErrorText } from "../elements/notice.tsx";
import { Unsaved } from "../elements/unsaved.tsx";
import { useEdits } from "../elements/use-edits.ts";
import { client } from "../query.ts";
import { formatDollars } from "../texts/formats.ts";
import { useSettingsTexts } from "../texts/settings.ts";
import { Section } from "./section.tsx";

const budgets = ["sessionBudgetUsd", "runBudgetUsd", "monthlyBudgetUsd"] as const;
/** Names of the API's fields that are not budgets. */
const others = ["defaultAgent", "maxRunningSessions", "models", "repositories", "egress"] as const;

type Name = (typeof budgets)[number] | (typeof others)[number];
type Values = Readonly<Record<Name, string>>;

function valuesOf(organization: Organization): Values {
  return {
    sessionBudgetUsd: organization.sessionBudgetUsd?.toString() ?? "",
    runBudgetUsd: organization.runBudgetUsd?.toString() ?? "",
    monthlyBudgetUsd: organization.monthlyBudgetUsd?.toString() ?? "",
    defaultAgent: organization.defaultAgent ?? "",
    maxRunningSessions: organization.maxRunningSessions?.toString() ?? "",
    models: organization.models?.join("\n") ?? "",
    repositories: organization.repositories?.join("\n") ?? "",
    egress: organization.egress.join("\n"),
  };
}

/** The fields to send: only changed ones, so that another admin's setting stays. */
function changesOf(values: Values, changed: readonly Name[]): UpdateOrganization {
  const numberOf = (text: string): number | null => (text === "" ? null : Number(text));
  const listOf = (text: string): string[] | null => (linesOf(text).length === 0 ? null : linesOf(text));
  const agent = values.defaultAgent.trim();
  const all: UpdateOrganization = {
    sessionBudgetUsd: numberOf(values.sessionBudgetUsd),
    runBudgetUsd: numberOf(values.runBudgetUsd),
    monthlyBudgetUsd: numberOf(values.monthlyBudgetUsd),
    defaultAgent: agent === "" ? null : agent,
    maxRunningSessions: numberOf(values.maxRunningSessions),
    models: listOf(values.models),
    repositories: listOf(values.repositories),
    egress: linesOf(values.egress),
  };
  return Object.fromEntries(changed.map((name) => [name, all[name]]));
}

/** The defaults and limits of all sessions of the organization: budgets, limits, models, repositories, hosts. */
export function OrganizationForm({ organization }: { organization: Organization }) {
  const words = useSettingsTexts();
  const texts = words.organization;
  const queries = useQueryClient();
  const { values, changed, edit, onSaved } = useEdits(valuesOf(organization));
  const save = useMutation({
    mutationFn: (sent: Values) => client.organization.update(changesOf(sent, changed)),
    onSuccess: (saved, sent) => {
      queries.setQueryData(["organization"], saved);
      onSaved(sent, valuesOf(saved));
    },
  });
  const field = (name: Name) => ({
    value: values[name],
    onChange: ({ target }: { target: { value: string } }) => {
      edit(name, target.value);
      save.reset();
    },
  });
  const wrong = fieldOf(save.error, [...budgets, ...others]);
  const errorOf = (name: typeof wrong): Error | null => (wrong === name ? save.error : null);
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    save.mutate(values);
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
        <Unsaved isChanged={changed.length > 0} />
      </form>
    </Section>
  );
}
