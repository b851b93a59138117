import { useMutation, useQueryClient } from "@tanstack/react-query";
import type { SessionDetail } from "../../domain/sessions/session.ts";
import { isFinal } from "../../domain/sessions/status.ts";
import { Icon } from "../elements/icon.tsx";
import { ErrorText } from "../elements/notice.tsx";
import { client, useMay } from "../query.ts";
import { useSessionTexts } from "../texts/session.ts";

/** The actions for a session in its current state: start, retry, resolve conflicts, cancel; for those who may. */
export function SessionActions({ session: { id, status, retry, pullRequests } }: { session: SessionDetail }) {
  const texts = useSessionTexts().actions;
  const queries = useQueryClient();
  const change = useMutation({
    mutationFn: (verb: "cancel" | "queue" | "resolveConflicts") => client.session[verb](id),
    onSuccess: (session) => queries.setQueryData(["session", id], session),
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
      <ErrorText error={change.error} />
    </>
  );
}
