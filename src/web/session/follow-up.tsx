import { useMutation } from "@tanstack/react-query";
import { useId, useState, type FormEvent, type KeyboardEvent } from "react";
import { ErrorText } from "../layout.tsx";
import { client } from "../query.ts";

/** Sends a follow-up message: to the running agent, or else as a new turn on the same branch. */
export function FollowUp({ id, onSent }: { id: string; onSent: () => void }) {
  const [text, setText] = useState("");
  const fieldId = useId();
  const send = useMutation({
    mutationFn: (message: string) => client.session.message(id, { message }),
    onSuccess: () => {
      setText("");
      onSent();
    },
  });
  const submit = (event: FormEvent | KeyboardEvent): void => {
    event.preventDefault();
    if (text.trim() !== "" && !send.isPending) send.mutate(text);
  };
  return (
    <form onSubmit={submit} className="card space-y-2 p-3">
      <label htmlFor={fieldId} className="text-sm font-medium">
        Follow up
      </label>
      <textarea
        id={fieldId}
        dir="auto"
        className="field"
        rows={3}
        value={text}
        placeholder="Ask for a change, or say what comes next"
        onChange={(event) => setText(event.target.value)}
        onKeyDown={(event) => {
          if (event.key === "Enter" && (event.metaKey || event.ctrlKey)) submit(event);
        }}
      />
      <div className="flex items-center justify-between gap-3">
        <span className="text-xs text-muted">Ctrl or ⌘ with Enter sends</span>
        <button type="submit" className="button button-primary" disabled={send.isPending || text.trim() === ""}>
          {send.isPending ? "Sending …" : "Send"}
        </button>
      </div>
      <ErrorText error={send.error} />
    </form>
  );
}
