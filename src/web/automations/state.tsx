import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useState, type FormEvent } from "react";
import type { StateEntry } from "../../domain/automations/state.ts";
import { ButtonDialog, ConfirmButton } from "../elements/dialog.tsx";
import { Field } from "../elements/field.tsx";
import { FormEnd } from "../elements/form-end.tsx";
import { Ago } from "../elements/time.tsx";
import { ErrorText } from "../elements/notice.tsx";
import { Unsaved } from "../elements/unsaved.tsx";
import { client, useMay } from "../query.ts";
import { useAutomationTexts } from "../texts/automations.ts";

/** The state of an automation's runs, entry by entry: shown, and changed and removed by those who may. */
export function State({ automationId }: { readonly automationId: string }) {
  const { state: texts, change: changeText } = useAutomationTexts();
  const queryKey = ["state", automationId];
  const state = useQuery({ queryKey, queryFn: () => client.automation.state(automationId) });
  const queries = useQueryClient();
  const change = useMutation({
    mutationFn: (body: Parameters<typeof client.automation.updateState>[1]) =>
      client.automation.updateState(automationId, body),
    onSuccess: (changed) => queries.setQueryData(queryKey, changed),
    // Others may have changed it: show the current state.
    onError: () => queries.invalidateQueries({ queryKey }),
  });
  const may = useMay("write");
  const entries = state.data?.entries ?? [];
  return (
    <section aria-labelledby="state" className="space-y-3">
      <div className="flex flex-wrap items-center gap-3">
        <h2 id="state" className="mr-auto font-medium">
          {texts.title}
        </h2>
        {may && (
          <ButtonDialog button={texts.add} title={texts.add}>
            {(close) => (
              <EntryForm
                save={async (key, value) => {
                  await change.mutateAsync({ set: { [key]: value as string }, versions: { [key]: 0 } });
                  close();
                }}
              />
            )}
          </ButtonDialog>
        )}
      </div>
      <ErrorText error={state.error ?? change.error} />
      {state.data !== undefined && entries.length === 0 && <p className="text-sm text-muted">{texts.none}</p>}
      {entries.length > 0 && (
        <ul aria-label={texts.title} className="card divide-y divide-line">
          {entries.map((entry) => (
            <li key={entry.key} className="space-y-2 px-4 py-3">
              <div className="flex flex-wrap items-center gap-2">
                <span className="font-mono text-sm break-all">{entry.key}</span>
                <span className="mr-auto text-sm text-muted">
                  {entry.sessionId === null ? texts.set : texts.byRun} <Ago at={entry.updatedAt} />
                </span>
                {may && (
                  <>
                    <ButtonDialog button={changeText} of={entry.key} title={texts.changeOf(entry.key)}>
                      {(close) => (
                        <EntryForm
                          entry={entry}
                          save={async (key, value) => {
                            await change.mutateAsync({
                              set: { [key]: value as string },
                              versions: { [key]: entry.version },
                            });
                            close();
                          }}
                        />
                      )}
                    </ButtonDialog>
                    <ConfirmButton
                      button={texts.remove}
                      of={entry.key}
                      disabled={change.isPending}
                      question={texts.removeOf(entry.key)}
                      onConfirm={() => change.mutate({ remove: [entry.key], versions: { [entry.key]: entry.version } })}
                    >
                      {texts.removeAbout}
                    </ConfirmButton>
                  </>
                )}
              </div>
              <pre tabIndex={0} aria-label={entry.key} className="max-h-40 overflow-auto text-xs">
                {JSON.stringify(entry.value, null, 2)}
              </pre>
            </li>
          ))}
        </ul>
      )}
    </section>
  );
}

function EntryForm({
  entry,
  save,
}: {
  /** Omitted: a new one. */
  readonly entry?: StateEntry;
  readonly save: (key: string, value: unknown) => Promise<void>;
}) {
  const { state: texts, ...common } = useAutomationTexts();
  const [key, setKey] = useState(entry?.key ?? "");
  const [value, setValue] = useState(entry === undefined ? "" : JSON.stringify(entry.value, null, 2));
  const [before] = useState({ key, value });
  const saving = useMutation({ mutationFn: () => save(key, parsed(value, texts.noJson)) });
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    if (!saving.isPending) saving.mutate();
  };
  return (
    <form onSubmit={submit} noValidate className="mt-4 space-y-4">
      {entry === undefined && (
        <Field label={texts.key} error={null}>
          {(attributes) => (
            <input
              {...attributes}
              className="field font-mono"
              value={key}
              onChange={({ target }) => setKey(target.value)}
              autoComplete="off"
              spellCheck={false}
            />
          )}
        </Field>
      )}
      <Field label={texts.value} hint={texts.valueHint} error={null}>
        {(attributes) => (
          <textarea
            {...attributes}
            className="field font-mono"
            rows={6}
            value={value}
            onChange={({ target }) => setValue(target.value)}
            spellCheck={false}
          />
        )}
      </Field>
      <Unsaved isChanged={key !== before.key || value !== before.value} />
      <FormEnd error={saving.error} isPending={saving.isPending} verb={common.save} pendingVerb={common.saving} />
    </form>
  );
}

/** @throws Error with a sentence for the form: `noJson` */
function parsed(value: string, noJson: string): unknown {
  try {
    return JSON.parse(value);
  } catch {
    throw new Error(noJson);
  }
}
