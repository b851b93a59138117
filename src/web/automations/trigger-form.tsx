import { useMutation } from "@tanstack/react-query";
import { useState, type FormEvent } from "react";
import type { Automation } from "../../domain/automations/automation.ts";
import { CloseDialog } from "../elements/dialog.tsx";
import { Field } from "../elements/field.tsx";
import { ErrorText } from "../elements/notice.tsx";
import { client } from "../query.ts";
import { useAutomationTexts } from "../texts/automations.ts";
import { eventOf, NoEvent } from "./event-json.ts";
import { sampleEvent } from "./sample-event.ts";

/** Triggers an automation with an event written by the user, after a preview of the prompt. */
export function TriggerForm({
  automation: { id, instructions },
  onTriggered,
}: {
  readonly automation: Automation;
  readonly onTriggered: () => void;
}) {
  const texts = useAutomationTexts();
  const [text, setText] = useState(() => JSON.stringify(sampleEvent(instructions), null, 2));
  const preview = useMutation({ mutationFn: async () => client.automation.preview(id, eventOf(text, texts)) });
  const trigger = useMutation({
    mutationFn: async () => client.automation.trigger(id, eventOf(text, texts)),
    onSuccess: onTriggered,
  });
  const error = trigger.error ?? preview.error;
  const isWrong = error instanceof NoEvent;
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    if (!trigger.isPending) trigger.mutate();
  };
  return (
    <form onSubmit={submit} className="mt-4 space-y-4">
      <Field label={texts.event.label} hint={texts.event.hint} error={isWrong ? error : null}>
        {(attributes) => (
          <textarea
            {...attributes}
            rows={8}
            spellCheck={false}
            className="field font-mono text-xs"
            value={text}
            onChange={({ target }) => {
              setText(target.value);
              preview.reset();
              trigger.reset();
            }}
          />
        )}
      </Field>
      {preview.data !== undefined && (
        <figure className="text-sm">
          <figcaption className="font-medium">{texts.preview.prompt}</figcaption>
          <pre
            tabIndex={0}
            aria-label={texts.preview.prompt}
            className="mt-1 max-h-60 overflow-auto rounded-md bg-sunken p-3 font-sans break-words whitespace-pre-wrap"
          >
            {preview.data.prompt}
          </pre>
        </figure>
      )}
      <ErrorText error={isWrong ? null : error} />
      <div className="flex flex-wrap justify-end gap-2">
        <CloseDialog />
        <button type="button" className="button" disabled={preview.isPending} onClick={() => preview.mutate()}>
          {texts.preview.title}
        </button>
        <button type="submit" className="button button-primary" disabled={trigger.isPending}>
          {trigger.isPending ? texts.trigger.pending : texts.trigger.verb}
        </button>
      </div>
    </form>
  );
}
