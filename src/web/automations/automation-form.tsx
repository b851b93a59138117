import { useMutation, useQuery } from "@tanstack/react-query";
import { useId, useRef, useState, type FormEvent, type ReactNode } from "react";
import type { z } from "zod";
import type { Automation, createAutomationSchema } from "../../domain/automations/automation.ts";
import type { AutomationTemplate } from "../../domain/automations/automation-file.ts";
import { hasBadInput } from "../elements/bad-input.ts";
import { Field, fieldOf } from "../elements/field.tsx";
import { linesOf } from "../elements/lines.ts";
import { ErrorText } from "../elements/notice.tsx";
import { PullRequestFields } from "../elements/sessions/pull-request-fields.tsx";
import { pullRequestErrors, settingsOfValues, valuesOfSettings } from "../elements/sessions/pull-request-values.ts";
import { Unsaved } from "../elements/unsaved.tsx";
import { client } from "../query.ts";
import { useAutomationTexts } from "../texts/automations.ts";
import { CodeField } from "./editor/code-field.tsx";
import { placeOf } from "./editor/problem-place.ts";
import { LivePreview } from "./live-preview.tsx";
import { useChosenEvent } from "./use-chosen-event.ts";
import { usePreview } from "./use-preview.ts";

/** Values of the form. */
export type AutomationFormValues = z.input<typeof createAutomationSchema>;

/** Names of the API's fields: its messages begin with them. */
const fields = [
  "name",
  "macro",
  "instructions",
  "title",
  "gate",
  "repositories",
  "agent",
  "targetBranch",
  "priority",
  "budgetUsd",
  "failuresBeforePause",
  "expect.atLeast",
  "expect.everyHours",
  "fanOut",
  "pullRequestsTogether",
] as const;
type FieldName = (typeof fields)[number];
type Values = Readonly<Record<FieldName, string>>;

const priorities = [1, 2, 3, 4, 5, 6, 7, 8, 9];

/** Form of a new or an existing automation, with a preview of what its instructions become. */
export function AutomationForm({
  automation,
  template,
  verb,
  cancel,
  save,
}: {
  /** Initial values. */
  readonly automation?: Automation | undefined;
  /** Initial values of a new one. */
  readonly template?: AutomationTemplate | undefined;
  readonly verb: string;
  /** Link that leaves the form. */
  readonly cancel: ReactNode;
  /** @param changes those of the values that are others than at first */
  readonly save: (input: AutomationFormValues, changes: Partial<AutomationFormValues>) => Promise<unknown>;
}) {
  const { form: texts, ...common } = useAutomationTexts();
  const urgency: Readonly<Record<number, string>> = texts.urgency;
  const [values, setValues] = useState(() => valuesOf(automation ?? template?.automation));
  const [initial] = useState(values);
  const [pullRequest, setPullRequest] = useState(() =>
    valuesOfSettings((automation ?? template?.automation)?.pullRequest),
  );
  const [initialPullRequest] = useState(pullRequest);
  // The macro follows the name until the user edits it.
  const [ownMacro, setOwnMacro] = useState((automation ?? template) !== undefined);
  const saving = useMutation({
    mutationFn: () => {
      const input = { ...inputOf(values), pullRequest: settingsOfValues(pullRequest) };
      const before = { ...inputOf(initial), pullRequest: settingsOfValues(initialPullRequest) };
      return save(input, changesOf(before, input));
    },
  });
  const agents = useQuery({ queryKey: ["agents"], queryFn: () => client.agent.list() });
  const agentsId = useId();
  const instructionsField = useRef<HTMLTextAreaElement>(null);
  const { instructions } = values;
  const isEmpty = instructions.trim() === "";
  const event = useChosenEvent({ automation, template, instructions });
  const preview = usePreview(
    event.body && {
      ...event.body,
      // The values of the event are wanted before there is anything to render.
      instructions: isEmpty ? "-" : instructions,
      title: values.title.trim() === "" ? null : values.title,
      ...(values.name.trim() !== "" && { name: values.name.trim() }),
    },
  );
  const problemAt = preview.isPlaceholderData ? null : placeOf(preview.data?.problem ?? null, instructions);
  const showProblem = (): void => {
    instructionsField.current?.focus();
    instructionsField.current?.setSelectionRange(problemAt?.from ?? 0, problemAt?.until ?? 0);
  };
  const { error } = saving;
  const wrong = fieldOf(error, [...fields, ...pullRequestErrors]);
  const set = (name: FieldName, value: string): void => {
    const follows = name === "name" && !ownMacro;
    setValues({ ...values, [name]: value, ...(follows && { macro: macroOf(value) }) });
  };
  const input = (name: FieldName) => ({
    className: "field",
    value: values[name],
    onChange: ({ target }: { target: { value: string } }) => set(name, target.value),
  });
  const errorOf = (name: FieldName): Error | null => (wrong === name ? error : null);
  const submit = (submitted: FormEvent<HTMLFormElement>): void => {
    submitted.preventDefault();
    if (!saving.isPending && !hasBadInput(submitted.currentTarget)) saving.mutate();
  };
  return (
    <form
      onSubmit={submit}
      noValidate
      className="grid grid-cols-[minmax(0,1fr)] gap-x-6 gap-y-4 lg:grid-cols-[minmax(0,3fr)_minmax(0,2fr)] lg:grid-rows-[auto_1fr]"
    >
      <div className="min-w-0 space-y-4">
        <div className="grid gap-4 sm:grid-cols-2">
          <Field label={texts.name} error={errorOf("name")}>
            {(attributes) => <input {...attributes} {...input("name")} autoComplete="off" />}
          </Field>
          <Field label={texts.macro} hint={texts.macroHint} error={errorOf("macro")}>
            {(attributes) => (
              <input
                {...attributes}
                {...input("macro")}
                autoComplete="off"
                autoCapitalize="none"
                spellCheck={false}
                className="field font-mono"
                onInput={() => setOwnMacro(true)}
              />
            )}
          </Field>
        </div>
        <Field label={common.instructions} hint={texts.instructionsHint} error={errorOf("instructions")}>
          {(attributes) => (
            <CodeField
              attributes={attributes}
              field={instructionsField}
              language="liquid"
              rows={12}
              value={instructions}
              onChange={(value) => set("instructions", value)}
              roots={{ event: preview.data?.event }}
              problemAt={problemAt}
            />
          )}
        </Field>
        <Field label={texts.title} hint={texts.titleHint} error={errorOf("title")}>
          {(attributes) => <input {...attributes} {...input("title")} autoComplete="off" />}
        </Field>
      </div>
      <LivePreview event={event} preview={preview} isEmpty={isEmpty} onShowProblem={problemAt && showProblem} />
      <div className="min-w-0 space-y-4">
        <Field label={common.gate} hint={texts.gateHint} error={errorOf("gate")}>
          {(attributes) => (
            <textarea {...attributes} {...input("gate")} rows={3} spellCheck={false} className="field font-mono" />
          )}
        </Field>
        <Field label={texts.repositories} hint={texts.repositoriesHint} error={errorOf("repositories")}>
          {(attributes) => (
            <textarea
              {...attributes}
              {...input("repositories")}
              rows={2}
              spellCheck={false}
              placeholder="https://github.com/owner/name"
            />
          )}
        </Field>
        <label className="flex items-center gap-2 text-sm">
          <input
            type="checkbox"
            checked={values.fanOut === "true"}
            onChange={({ target }) => set("fanOut", String(target.checked))}
          />
          {texts.fanOut}
        </label>
        <ErrorText error={errorOf("fanOut")} />
        <label className="flex items-center gap-2 text-sm">
          <input
            type="checkbox"
            checked={values.pullRequestsTogether === "true"}
            onChange={({ target }) => set("pullRequestsTogether", String(target.checked))}
          />
          {texts.together}
        </label>
        <ErrorText error={errorOf("pullRequestsTogether")} />
        <PullRequestFields values={pullRequest} error={error} onChange={setPullRequest} />
        <div className="grid gap-4 sm:grid-cols-2">
          <Field label={texts.branch} hint={texts.branchHint} error={errorOf("targetBranch")}>
            {(attributes) => <input {...attributes} {...input("targetBranch")} autoComplete="off" spellCheck={false} />}
          </Field>
          <Field label={common.facts.agent} hint={texts.agentHint} error={errorOf("agent")}>
            {(attributes) => (
              <>
                <input {...attributes} {...input("agent")} list={agentsId} autoComplete="off" spellCheck={false} />
                <datalist id={agentsId}>
                  {agents.data?.agents
                    .filter(({ available }) => available)
                    .map(({ id, name, defaultModel }) => (
                      <option key={id} value={`${id}:${defaultModel ?? "default"}`}>
                        {name}
                      </option>
                    ))}
                </datalist>
              </>
            )}
          </Field>
          <Field label={common.facts.priority} error={errorOf("priority")}>
            {(attributes) => (
              <select {...attributes} {...input("priority")}>
                {priorities.map((priority) => (
                  <option key={priority} value={priority}>
                    {priority}
                    {urgency[priority]}
                  </option>
                ))}
              </select>
            )}
          </Field>
          <Field label={common.facts.budget} hint={texts.budgetHint} error={errorOf("budgetUsd")}>
            {(attributes) => <input {...attributes} {...input("budgetUsd")} type="number" min="0" step="any" />}
          </Field>
          <Field label={texts.failures} hint={texts.failuresHint} error={errorOf("failuresBeforePause")}>
            {(attributes) => <input {...attributes} {...input("failuresBeforePause")} type="number" min="0" />}
          </Field>
          <Field label={texts.expected} hint={texts.expectedHint} error={errorOf("expect.atLeast")}>
            {(attributes) => <input {...attributes} {...input("expect.atLeast")} type="number" min="1" />}
          </Field>
          <Field label={texts.hours} error={errorOf("expect.everyHours")}>
            {(attributes) => <input {...attributes} {...input("expect.everyHours")} type="number" min="1" />}
          </Field>
        </div>
        <ErrorText error={wrong === null ? error : null} />
        <Unsaved
          isChanged={
            fields.some((name) => values[name] !== initial[name]) ||
            JSON.stringify(pullRequest) !== JSON.stringify(initialPullRequest)
          }
        />
        <div className="flex justify-end gap-2">
          {cancel}
          <button type="submit" className="button button-primary" disabled={saving.isPending}>
            {saving.isPending ? common.saving : verb}
          </button>
        </div>
      </div>
    </form>
  );
}

/** The form's initial automation: an existing one, or a template's, which names no repositories. */
type Initial = AutomationTemplate["automation"] &
  Partial<
    Pick<Automation, "repositories" | "gate" | "failuresBeforePause" | "fanOut" | "pullRequestsTogether" | "expect">
  >;

function valuesOf(automation: Automation | Initial | undefined): Values {
  return {
    name: automation?.name ?? "",
    macro: automation?.macro ?? "",
    instructions: automation?.instructions ?? "",
    title: automation?.title ?? "",
    gate: automation?.gate ?? "",
    repositories: automation?.repositories?.map(({ url }) => url).join("\n") ?? "",
    agent: automation?.agent ?? "",
    targetBranch: automation?.targetBranch ?? "",
    priority: String(automation?.priority ?? 5),
    budgetUsd: automation?.budgetUsd?.toString() ?? "",
    failuresBeforePause:
      (automation?.failuresBeforePause === undefined ? 3 : automation.failuresBeforePause)?.toString() ?? "",
    fanOut: String(automation?.fanOut ?? false),
    pullRequestsTogether: String(automation?.pullRequestsTogether ?? false),
    "expect.atLeast": automation?.expect?.atLeast.toString() ?? "",
    "expect.everyHours": automation?.expect?.everyHours.toString() ?? "24",
  };
}

function inputOf(values: Values): AutomationFormValues {
  const orNull = (text: string): string | null => (text.trim() === "" ? null : text.trim());
  const numberOrNull = (text: string): number | null => (text.trim() === "" ? null : Number(text));
  const atLeast = numberOrNull(values["expect.atLeast"]);
  return {
    name: values.name.trim(),
    macro: values.macro.trim(),
    instructions: values.instructions,
    title: orNull(values.title),
    gate: values.gate.trim() === "" ? null : values.gate,
    repositories: linesOf(values.repositories),
    agent: orNull(values.agent),
    targetBranch: orNull(values.targetBranch),
    priority: Number(values.priority),
    budgetUsd: numberOrNull(values.budgetUsd),
    fanOut: values.fanOut === "true",
    pullRequestsTogether: values.pullRequestsTogether === "true",
    failuresBeforePause: numberOrNull(values.failuresBeforePause),
    expect: atLeast === null ? null : { atLeast, everyHours: Number(values["expect.everyHours"]) },
  };
}

/** The fields that have another value than before. */
function changesOf<Input extends object>(before: Input, now: Input): Partial<Input> {
  const textsBefore = new Map(Object.entries(before).map(([name, value]) => [name, JSON.stringify(value)]));
  const changed = Object.entries(now).filter(([name, value]) => textsBefore.get(name) !== JSON.stringify(value));
  return Object.fromEntries(changed) as Partial<Input>;
}

function macroOf(name: string): string {
  return name
    .normalize("NFKD")
    .toLowerCase()
    .replace(/\p{M}/gu, "")
    .replace(/[^a-z0-9]+/gu, "-")
    .slice(0, 63)
    .replace(/^-+|-+$/gu, "");
}
