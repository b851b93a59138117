import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useState, type FormEvent, type ReactNode } from "react";
import type { Environment } from "../../domain/environments/environment.ts";
import { Field, fieldOf } from "../elements/field.tsx";
import { linesOf } from "../elements/lines.ts";
import { Unsaved } from "../elements/unsaved.tsx";
import { useMay } from "../query.ts";
import { useRepositoryTexts } from "../texts/repositories.ts";
import { calls } from "./calls.ts";
import { Loaded, SaveBar, Section, Shown } from "./section.tsx";
import { SetupTrial } from "./setup-trial.tsx";
import { rowsOf, type Variable, Variables, variablesOf } from "./variables.tsx";

/** How a repository's clones are made ready, and a trial of it. */
export function EnvironmentSettings({ id }: { id: string }) {
  const texts = useRepositoryTexts().environment;
  const environment = useQuery({ queryKey: ["repository", id, "environment"], queryFn: () => calls.environment(id) });
  // The script runs with setup secrets.
  const isAdmin = useMay("admin");
  return (
    <Section title={texts.title} about={texts.about}>
      <Loaded query={environment}>
        {(found) =>
          isAdmin ? (
            <EnvironmentForm id={id} environment={found} />
          ) : (
            <>
              <EnvironmentFacts environment={found} />
              <SetupTrial id={id} saveFirst={null} />
            </>
          )
        }
      </Loaded>
    </Section>
  );
}

function EnvironmentFacts({ environment: { setupScript, variables, sparse } }: { environment: Environment }) {
  const texts = useRepositoryTexts().environment;
  const lines = rowsOf(variables).map(({ name, value }) => `${name}=${value}`);
  return (
    <>
      <Shown name={texts.setup} value={setupScript ?? texts.byFile} isCode={setupScript !== null} />
      <Shown name={texts.variables} value={lines.join("\n")} isCode />
      <Shown name={texts.folders} value={sparse.length === 0 ? texts.everything : sparse.join("\n")} />
    </>
  );
}

const fields = ["setupScript", "variables", "sparse"] as const;

/** A form's or the saved environment as a text, to compare them. */
function textOf(of: Pick<Environment, "setupScript" | "sparse"> & { readonly variables: readonly Variable[] }): string {
  const variables = of.variables.map(({ name, value }) => JSON.stringify([name.trim(), value])).toSorted();
  return JSON.stringify([of.setupScript, of.sparse, variables]);
}

function EnvironmentForm({ id, environment }: { id: string; environment: Environment }) {
  const all = useRepositoryTexts();
  const texts = all.environment;
  const queries = useQueryClient();
  const [byScript, setByScript] = useState(environment.setupScript !== null);
  const [script, setScript] = useState(environment.setupScript ?? "");
  const [rows, setRows] = useState<readonly Variable[]>(() => rowsOf(environment.variables));
  const [folders, setFolders] = useState(environment.sparse.join("\n"));
  // Text that is typed during a save is a later edit than the saved one.
  const [edits, setEdits] = useState({ last: 0, saved: 0 });
  const isChanged = edits.last !== edits.saved;
  const [shownOf, setShownOf] = useState(environment);
  // Another person has set it meanwhile. The text written here stays until it is saved.
  if (shownOf !== environment && !isChanged) {
    setShownOf(environment);
    const shown = { setupScript: byScript ? script : null, sparse: linesOf(folders), variables: rows };
    if (textOf(shown) !== textOf({ ...environment, variables: rowsOf(environment.variables) })) {
      setByScript(environment.setupScript !== null);
      setScript(environment.setupScript ?? "");
      setRows(rowsOf(environment.variables));
      setFolders(environment.sparse.join("\n"));
    }
  }
  const save = useMutation({
    mutationFn: async (_edit: number) =>
      calls.setEnvironment(id, {
        setupScript: byScript ? script : null,
        variables: variablesOf(rows, (name) => `variables: ${texts.twice(name)}`),
        sparse: linesOf(folders),
      }),
    onSuccess: (saved, edit) => {
      setEdits(({ last }) => ({ last, saved: edit }));
      queries.setQueryData(["repository", id, "environment"], saved);
    },
  });
  const { error } = save;
  const wrong = error !== null && error.message.startsWith("variables") ? "variables" : fieldOf(error, fields);
  const change = <Value,>(set: (value: Value) => void) => {
    return (value: Value): void => {
      set(value);
      setEdits((before) => ({ ...before, last: before.last + 1 }));
      save.reset();
    };
  };
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    if (!save.isPending) save.mutate(edits.last);
  };
  return (
    <>
      <form onSubmit={submit} noValidate className="space-y-4">
        <SetupChoice byScript={byScript} onChange={change(setByScript)}>
          <Field label={texts.script} hint={texts.scriptHint} error={wrong === "setupScript" ? error : null}>
            {(attributes) => (
              <textarea
                {...attributes}
                rows={5}
                spellCheck={false}
                autoCapitalize="none"
                autoComplete="off"
                className="field max-h-[32rem] min-h-28 field-sizing-content font-mono"
                placeholder="npm ci"
                value={script}
                onChange={({ target }) => change(setScript)(target.value)}
              />
            )}
          </Field>
        </SetupChoice>
        <Variables rows={rows} error={wrong === "variables" ? error : null} onChange={change(setRows)} />
        <Field label={texts.folders} hint={texts.foldersHint} error={wrong === "sparse" ? error : null}>
          {(attributes) => (
            <textarea
              {...attributes}
              rows={2}
              spellCheck={false}
              autoCapitalize="none"
              className="field max-h-60 field-sizing-content font-mono"
              value={folders}
              onChange={({ target }) => change(setFolders)(target.value)}
            />
          )}
        </Field>
        <Unsaved isChanged={isChanged} />
        <SaveBar isPending={save.isPending} isSaved={save.isSuccess} error={wrong === null ? error : null} />
      </form>
      <SetupTrial id={id} saveFirst={isChanged ? () => save.mutateAsync(edits.last) : null} />
    </>
  );
}

/** Whether the setup is a script of these settings, which is then written, or what a file of the repository says. */
function SetupChoice({
  byScript,
  onChange,
  children,
}: {
  byScript: boolean;
  onChange: (byScript: boolean) => void;
  children: ReactNode;
}) {
  const texts = useRepositoryTexts().environment;
  return (
    <>
      <fieldset className="space-y-1 text-sm">
        <legend className="font-medium">{texts.setup}</legend>
        <div className="flex flex-wrap gap-x-4">
          {[false, true].map((value) => (
            <label key={String(value)} className="flex min-h-6 items-center gap-1.5">
              <input type="radio" name="setup" checked={byScript === value} onChange={() => onChange(value)} />
              {value ? texts.byScript : texts.byFile}
            </label>
          ))}
        </div>
      </fieldset>
      {byScript && children}
    </>
  );
}
