import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useId, useState, type FormEvent } from "react";
import type { SessionDetail } from "../../domain/sessions/session.ts";
import { ErrorText } from "../elements/notice.tsx";
import { client, useMay } from "../query.ts";
import { formatDollars } from "../texts/formats.ts";
import { useSessionTexts } from "../texts/session.ts";

/** The reason why a session waits; if it is the session's own budget, with a field to raise it for those who may. */
export function RaiseBudget({ session }: { session: SessionDetail }) {
  const { budget: texts, banners } = useSessionTexts();
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
      <p className="font-medium text-warn">
        {banners.waiting}: {waiting?.text}
      </p>
      {budgetUsd !== null && !may && (
        <p>
          {texts.spentOf(formatDollars(spentUsd), formatDollars(budgetUsd))} {texts.adminCan}
        </p>
      )}
      {budgetUsd !== null && may && (
        <div className="flex flex-wrap items-center gap-2">
          <label htmlFor={fieldId}>
            {texts.spentOf(formatDollars(spentUsd), formatDollars(budgetUsd))} {texts.newBudget}
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
            {texts.raise}
          </button>
        </div>
      )}
      <ErrorText error={raise.error} />
    </form>
  );
}
