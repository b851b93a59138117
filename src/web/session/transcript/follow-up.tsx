import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useId, type FormEvent, type KeyboardEvent, type RefObject } from "react";
import { ErrorText } from "../../elements/notice.tsx";
import { client } from "../../query.ts";
import { useSessionTexts } from "../../texts/session.ts";

/** Sends a follow-up message: to the running agent, or else as a new turn on the same branch. */
export function FollowUp({
  id,
  field,
  text,
  onText,
  isRunning,
  onSent,
}: {
  id: string;
  field: RefObject<HTMLTextAreaElement | null>;
  /** The text; the parent component keeps it. */
  text: string;
  onText: (change: (text: string) => string) => void;
  /** Whether an agent is at work, so that the message waits. */
  isRunning: boolean;
  onSent: () => void;
}) {
  const texts = useSessionTexts().followUp;
  const fieldId = useId();
  const queries = useQueryClient();
  const mutationKey = ["send message", id];
  const send = useMutation({
    mutationKey,
    mutationFn: (message: string) => client.session.message(id, { message }),
    onSuccess: (_, message) => {
      // Meanwhile the user may have begun the next one.
      onText((now) => (now.startsWith(message) ? now.slice(message.length).trimStart() : now));
      onSent();
    },
  });
  const submit = (event: FormEvent | KeyboardEvent): void => {
    event.preventDefault();
    // Not what was drawn last: keys that are pressed at once come before the next picture.
    if (text.trim() !== "" && queries.isMutating({ mutationKey }) === 0) send.mutate(text);
  };
  return (
    <form onSubmit={submit} className="card focus-within:border-accent">
      <label htmlFor={fieldId} className="sr-only">
        {texts.label}
      </label>
      <textarea
        ref={field}
        id={fieldId}
        dir="auto"
        rows={1}
        className="block max-h-[40dvh] w-full resize-none rounded-lg bg-transparent px-3 py-2.5 text-sm -outline-offset-2 [field-sizing:content] placeholder:text-muted pointer-coarse:text-base"
        value={text}
        placeholder={texts.placeholder}
        onChange={({ target: { value } }) => onText(() => value)}
        onKeyDown={(event) => {
          if (event.key === "Enter" && (event.metaKey || event.ctrlKey)) submit(event);
        }}
      />
      <div className="flex items-center justify-between gap-3 px-3 pb-2">
        <span className="text-xs text-muted">{isRunning && text !== "" ? texts.waits : texts.keys}</span>
        <button type="submit" className="button button-primary" disabled={send.isPending || text.trim() === ""}>
          {send.isPending ? texts.sending : texts.send}
        </button>
      </div>
      <div className="px-3 pb-2 empty:hidden">
        <ErrorText error={send.error} />
      </div>
    </form>
  );
}
