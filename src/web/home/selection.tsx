import { useMutation, useQueryClient } from "@tanstack/react-query";
import type { SessionDetail } from "../../domain/sessions/session.ts";
import { isFinal } from "../../domain/sessions/status.ts";
import { announce } from "../elements/announce.tsx";
import { ConfirmButton } from "../elements/dialog.tsx";
import { client } from "../query.ts";
import { useHomeTexts } from "../texts/home.ts";

type Verb = "cancel" | "queue" | "archive" | "delete";

/** The actions for all selected sessions; hidden while none is selected. */
export function SelectionBar({
  selected,
  onDone,
}: {
  selected: readonly SessionDetail[];
  /** Called when nothing is to be selected any more. */
  onDone: () => void;
}) {
  const texts = useHomeTexts().selection;
  const queries = useQueryClient();
  const change = useMutation({
    mutationFn: async ({ verb, ids }: { verb: Verb; ids: readonly string[] }) => {
      const results = await Promise.allSettled(ids.map((id) => client.session[verb](id)));
      const refused = results.filter((result) => result.status === "rejected");
      return { done: results.length - refused.length, refused: refused.map(({ reason }) => reason as Error) };
    },
    onSuccess: ({ done, refused }) => {
      const [first] = refused;
      announce(first === undefined ? texts.done(done) : texts.refused(refused.length, first.message));
      onDone();
      return queries.invalidateQueries({ queryKey: ["sessions"] });
    },
  });
  if (selected.length === 0) return null;
  // Not disabled meanwhile, because the button would lose the focus.
  const run = (verb: Verb, ids: readonly string[]): void => {
    if (!change.isPending) change.mutate({ verb, ids });
  };
  const of = (may: (session: SessionDetail) => boolean): string[] => selected.filter(may).map(({ id }) => id);
  const cancellable = of(({ status }) => !isFinal(status));
  const retryable = of(({ status }) => status === "failed" || status === "cancelled");
  const deletable = of(({ status }) => isFinal(status) || status === "draft");
  return (
    <div
      role="toolbar"
      aria-label={texts.count(selected.length)}
      className="sticky bottom-4 z-20 mx-auto flex w-fit max-w-full flex-wrap items-center gap-2 rounded-lg border border-line bg-surface px-3 py-2 shadow-xl"
    >
      <span className="pe-2 text-sm font-medium">{texts.count(selected.length)}</span>
      {cancellable.length > 0 && (
        <button type="button" className="button" onClick={() => run("cancel", cancellable)}>
          {texts.cancel}
        </button>
      )}
      {retryable.length > 0 && (
        <button type="button" className="button" onClick={() => run("queue", retryable)}>
          {texts.retry}
        </button>
      )}
      {deletable.length > 0 && (
        <button type="button" className="button" onClick={() => run("archive", deletable)}>
          {texts.archive}
        </button>
      )}
      {deletable.length > 0 && (
        <ConfirmButton
          button={texts.delete}
          disabled={change.isPending}
          question={texts.deleteQuestion(deletable.length)}
          onConfirm={() => run("delete", deletable)}
        >
          {texts.deleteText}
        </ConfirmButton>
      )}
      <button type="button" className="button button-quiet" onClick={onDone}>
        {texts.clear}
      </button>
    </div>
  );
}
