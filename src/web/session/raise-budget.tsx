import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useId, useState, type FormEvent } from "react";
import type { SessionDetail } from "../../domain/sessions/session.ts";
import { formatDollars } from "../elements/dollars.ts";
import { ErrorText } from "../layout.tsx";
import { client, useMay } from "../query.ts";

/** What a waiting session waits for; if it is the session's own budget, with a field to raise it for those who may. */
export function RaiseBudget({ session }: { session: SessionDetail }) {
  const { id, budgetUsd, spentUsd, waiting } = session;
  const queries = useQueryClient();
  const fieldId = useId();
  const [text, setText] = useState(() => String(Math.ceil(Math.max(1, (budgetUsd ?? spentUsd) * 2))));
  const raise = useMutation({
    mutationFn: (budget: number) => client.session.setBudget(id, { budgetUsd: budget }),
    onSuccess: (raised) => queries.setQueryData(["session", id], raised),
  });
  const may = useMay("admin");
  const amount = Number(text);
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    if (amount > 0) raise.mutate(amount);
  };
  return (
    <form onSubmit={submit} className="space-y-2 rounded-lg bg-warn-soft px-4 py-3 text-sm">
      <p className="font-medium text-warn">Waiting: {waiting?.text}</p>
      {budgetUsd !== null && !may && (
        <p>
          Spent {formatDollars(spentUsd)} of {formatDollars(budgetUsd)}. An admin can raise its budget.
        </p>
      )}
      {budgetUsd !== null && may && (
        <div className="flex flex-wrap items-center gap-2">
          <label htmlFor={fieldId}>
            Spent {formatDollars(spentUsd)} of {formatDollars(budgetUsd)}. New budget in US dollars:
          </label>
          <input
            id={fieldId}
            className="field w-28"
            type="number"
            min="0"
            step="any"
            value={text}
            onChange={(event) => setText(event.target.value)}
          />
          <button type="submit" className="button" disabled={raise.isPending || !(amount > 0)}>
            Raise and go on
          </button>
        </div>
      )}
      <ErrorText error={raise.error} />
    </form>
  );
}
