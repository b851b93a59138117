import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import type { SessionDetail } from "../../domain/sessions/session.ts";
import { isFinal } from "../../domain/sessions/status.ts";
import { ConfirmButton } from "../elements/dialog.tsx";
import { ErrorText } from "../layout.tsx";
import { client, useMay } from "../query.ts";

/** What can be done with a session as it is: start or retry it, resolve its conflicts, cancel it, delete it; by those who may. */
export function SessionActions({ session: { id, status, retry, pullRequests } }: { session: SessionDetail }) {
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
      ? "Retry"
      : status === "draft"
        ? "Start"
        : retry !== null
          ? "Try again now"
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
          className={`button ${status === "draft" ? "button-primary" : ""}`}
          disabled={change.isPending}
          onClick={() => change.mutate("queue")}
        >
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
          Resolve conflicts
        </button>
      )}
      {!isFinal(status) && (
        <button
          type="button"
          className="button"
          disabled={change.isPending || isCancelling}
          onClick={() => change.mutate("cancel")}
        >
          {isCancelling ? "Cancelling …" : "Cancel"}
        </button>
      )}
      {(isFinal(status) || status === "draft") && (
        <ConfirmButton
          button="Delete"
          disabled={change.isPending || remove.isPending}
          question="Delete the session?"
          onConfirm={() => remove.mutate()}
        >
          Its conversation and changes are gone then. Its branch and pull request stay.
        </ConfirmButton>
      )}
      <ErrorText error={change.error ?? remove.error} />
    </>
  );
}
