import { useRef } from "react";
import { Icon } from "../elements/icon.tsx";
import { ErrorText } from "../elements/notice.tsx";
import { useRepositoryTexts } from "../texts/repositories.ts";

/** A variable while it is written. */
export interface Variable {
  /** Stays while the name changes. */
  readonly key: number;
  readonly name: string;
  readonly value: string;
}

/** Variables as rows, in the order of their names. */
export function rowsOf(variables: Readonly<Record<string, string>>): Variable[] {
  return Object.entries(variables)
    .toSorted(([a], [b]) => (a < b ? -1 : 1))
    .map(([name, value], key) => ({ key, name, value }));
}

/** Rows as variables; those without a name and value are left out. @throws Error if two have the same name */
export function variablesOf(rows: readonly Variable[], twice: (name: string) => string): Record<string, string> {
  const written = rows
    .map(({ name, value }) => [name.trim(), value] as const)
    .filter(([name, value]) => name !== "" || value !== "");
  const again = written.find(([name], index) => written.findIndex(([other]) => other === name) !== index);
  if (again !== undefined) throw new Error(twice(again[0]));
  return Object.fromEntries(written);
}

/** The row that an error of the API is about; null: it is about none of them. */
export function wrongRow(error: Error | null, rows: readonly Variable[]): Variable | null {
  if (error === null) return null;
  return rows.find(({ name }) => error.message.startsWith(`variables.${name.trim()} `)) ?? null;
}

/** Names and values of variables, each in a row. @param error of the rows, or of one */
export function Variables({
  rows,
  error,
  onChange,
}: {
  rows: readonly Variable[];
  error: Error | null;
  onChange: (rows: readonly Variable[]) => void;
}) {
  const texts = useRepositoryTexts().environment;
  const fieldset = useRef<HTMLFieldSetElement>(null);
  const wrong = wrongRow(error, rows);
  const set = (key: number, changes: Partial<Variable>): void =>
    onChange(rows.map((row) => (row.key === key ? { ...row, ...changes } : row)));
  const remove = (key: number): void => {
    onChange(rows.filter((row) => row.key !== key));
    // The button that had the focus is gone.
    fieldset.current?.focus();
  };
  return (
    <fieldset ref={fieldset} tabIndex={-1} className="min-w-0 space-y-2 text-sm outline-none">
      <legend className="font-medium">{texts.variables}</legend>
      <p className="text-xs text-muted">{texts.variablesHint}</p>
      {rows.map((row, index) => {
        const isWrong = row === wrong;
        const describedBy = isWrong ? { "aria-describedby": `variable-${row.key}-about`, "aria-invalid": true } : {};
        return (
          <div key={row.key} className="space-y-1">
            <div className="flex min-w-0 flex-wrap items-start gap-2 max-sm:border-s-2 max-sm:border-line max-sm:ps-2">
              <input
                {...describedBy}
                aria-label={texts.variableName(index + 1)}
                placeholder="NODE_ENV"
                autoComplete="off"
                autoCapitalize="none"
                spellCheck={false}
                className="field font-mono sm:w-56"
                value={row.name}
                onChange={({ target }) => set(row.key, { name: target.value })}
              />
              <textarea
                rows={1}
                aria-label={texts.variableValue(index + 1)}
                autoComplete="off"
                autoCapitalize="none"
                spellCheck={false}
                className="field max-h-40 min-w-0 flex-1 field-sizing-content font-mono"
                value={row.value}
                onChange={({ target }) => set(row.key, { value: target.value })}
              />
              <button type="button" className="button button-quiet px-1.5" onClick={() => remove(row.key)}>
                <Icon name="close" />
                <span className="sr-only">
                  {texts.removeVariable} {texts.variable(index + 1)}
                </span>
              </button>
            </div>
            {isWrong && (
              <div id={`variable-${row.key}-about`}>
                <ErrorText error={error} />
              </div>
            )}
          </div>
        );
      })}
      {wrong === null && <ErrorText error={error} />}
      <button
        type="button"
        className="button"
        onClick={() =>
          onChange([...rows, { key: 1 + Math.max(-1, ...rows.map(({ key }) => key)), name: "", value: "" }])
        }
      >
        <Icon name="add" />
        {texts.addVariable}
      </button>
    </fieldset>
  );
}
