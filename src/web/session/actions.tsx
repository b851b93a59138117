import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import type { SessionDetail } from "../../domain/sessions/session.ts";
import { isFinal } from "../../domain/sessions/status.ts";
import { ConfirmButton } from "../elements/dialog.tsx";
import { Icon } from "../elements/icon.tsx";
import { ErrorText } from "../elements/notice.tsx";
import { client, useMay } from "../query.ts";
import { useSessionTexts } from "../texts/session.ts";

/** What can be done with a session as it is: start or retry it, resolve its conflicts, cancel it, delete it; by those who may. */
export function SessionActions({ session: { id, status, retry, pullRequests } }: { session: SessionDetail }) {
  const texts = useSessionTexts().actions;
  const queries = useQueryClient();
  const change = useMutation({
    mutationFn: (verb: "cancel" | "queue" | "resolveConflicts") => client.session[verb](id),
    onSuccess: (session) => queries.setQueryData(["session", id], session),
  });
  const navigate = useNavigate();
  const remove = useMutation({
    mutationFn: () => client.session.delete(id),
    onSuccess: async () => {
      await navigate({ to: "/" });
      queries.removeQueries({ queryKey: ["session", id] });
      await queries.invalidateQueries({ queryKey: ["sessions"] });
    },
  });
  const verb =
    status === "failed" || status === "cancelled"
      ? texts.retry
      : status === "draft"
        ? texts.start
        : retry !== null
          ? texts.tryNow
          : null;
  const isConflicted = pullRequests.some(({ state, mergeable }) => state === "open" && mergeable === false);
  const may = useMay("write");
  if (!may) return null;
  // A running attempt ends a moment after the request.
  const isCancelling = change.variables === "cancel" && change.error === null && !change.isIdle;
  return (
    <>
      {verb !== null && (
        <button
          type="button"
          className={`button ${status === "draft" || status === "failed" ? "button-primary" : ""}`}
          disabled={change.isPending}
          onClick={() => change.mutate("queue")}
        >
          <Icon name={status === "draft" ? "send" : "retry"} />
          {verb}
        </button>
      )}
      {isFinal(status) && isConflicted && (
        <button
          type="button"
          className="button"
          disabled={change.isPending}
          onClick={() => change.mutate("resolveConflicts")}
        >
          {texts.resolve}
        </button>
      )}
      {!isFinal(status) && (
        <button
          type="button"
          className="button"
          disabled={change.isPending || isCancelling}
          onClick={() => change.mutate("cancel")}
        >
          <Icon name="stop" />
          {isCancelling ? texts.cancelling : texts.cancel}
        </button>
      )}
      {(isFinal(status) || status === "draft") && (
        <ConfirmButton
          button={texts.delete}
          disabled={change.isPending || remove.isPending}
          question={texts.deleteQuestion}
          onConfirm={() => remove.mutate()}
        >
          {texts.deleteText}
        </ConfirmButton>
      )}
      <ErrorText error={change.error ?? remove.error} />
    </>
  );
}
