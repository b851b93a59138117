import { useMutation } from "@tanstack/react-query";
import { useState, type FormEvent } from "react";
import { webhookEvents, type Webhook } from "../../domain/webhooks/webhook.ts";
import { Field, fieldOf } from "../elements/field.tsx";
import { FormEnd } from "../elements/form-end.tsx";
import { ErrorText } from "../elements/notice.tsx";
import { Unsaved } from "../elements/unsaved.tsx";
import { useWebhookTexts } from "../texts/webhooks.ts";

/** Values of the form. */
export interface WebhookInput {
  readonly url: string;
  readonly events: (typeof webhookEvents)[number][];
}

const groups = [
  ["sessions", "session."],
  ["jobs", "job."],
  ["pullRequests", "pullRequest."],
  ["automations", "automation."],
] as const;

/** Address and events of a new or an existing webhook. */
export function WebhookForm({
  webhook,
  verb,
  save,
}: {
  /** Initial values. */
  readonly webhook?: Webhook;
  readonly verb: string;
  readonly save: (input: WebhookInput) => Promise<unknown>;
}) {
  const texts = useWebhookTexts();
  const [url, setUrl] = useState(webhook?.url ?? "");
  const [everything, setEverything] = useState(webhook === undefined || webhook.events.length === 0);
  const [chosen, setChosen] = useState<Webhook["events"]>(webhook?.events ?? []);
  const [before] = useState({ url, everything, chosen });
  const saving = useMutation({
    mutationFn: async () => {
      // For the API an empty list means all events.
      if (!everything && chosen.length === 0) throw new NothingChosen(texts.form.nothingChosen);
      // One that a newer server stored is refused by one that does not know it: what is not shown here is not dropped either.
      await save({ url: url.trim(), events: everything ? [] : (chosen as WebhookInput["events"]) });
    },
  });
  const { error } = saving;
  const wrong = error instanceof NothingChosen ? "events" : fieldOf(error, ["url", "events"]);
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    saving.mutate();
  };
  return (
    <form onSubmit={submit} noValidate className="mt-4 space-y-4">
      <Field label={texts.form.url} hint={texts.form.urlHint} error={wrong === "url" ? error : null}>
        {(attributes) => (
          <input
            {...attributes}
            inputMode="url"
            autoComplete="off"
            autoCapitalize="none"
            spellCheck={false}
            className="field"
            placeholder="https://example.com/offstage"
            value={url}
            onChange={({ target }) => setUrl(target.value)}
          />
        )}
      </Field>
      <fieldset className="space-y-2 text-sm">
        <legend className="mb-1 font-medium">{texts.form.told}</legend>
        <div className="flex flex-wrap gap-x-5 gap-y-1">
          <Choice label={texts.form.everything} checked={everything} onChoose={() => setEverything(true)} />
          <Choice label={texts.form.chosen} checked={!everything} onChoose={() => setEverything(false)} />
        </div>
        {!everything && <Events chosen={chosen} onChange={setChosen} />}
        <ErrorText error={wrong === "events" ? error : null} />
      </fieldset>
      <Unsaved isChanged={url !== before.url || everything !== before.everything || chosen !== before.chosen} />
      <FormEnd
        error={wrong === null ? error : null}
        isPending={saving.isPending}
        verb={verb}
        pendingVerb={texts.saving}
      />
    </form>
  );
}

class NothingChosen extends Error {}

function Choice({ label, checked, onChoose }: { label: string; checked: boolean; onChoose: () => void }) {
  return (
    <label className="flex items-center gap-2 py-1">
      <input type="radio" name="told" checked={checked} onChange={onChoose} />
      {label}
    </label>
  );
}

function Events({ chosen, onChange }: { chosen: Webhook["events"]; onChange: (chosen: Webhook["events"]) => void }) {
  const names = useWebhookTexts().form.groups;
  return (
    <div className="grid gap-x-4 gap-y-3 rounded-md border border-line p-3 sm:grid-cols-2">
      {groups.map(([name, prefix]) => (
        <fieldset key={prefix} className="min-w-0">
          <legend className="mb-1 text-xs text-muted">{names[name]}</legend>
          {webhookEvents
            .filter((event) => event.startsWith(prefix))
            .map((event) => (
              <label key={event} className="flex items-center gap-2 py-1 text-xs">
                <input
                  type="checkbox"
                  checked={chosen.includes(event)}
                  onChange={({ target }) =>
                    onChange(target.checked ? [...chosen, event] : chosen.filter((known) => known !== event))
                  }
                />
                <code className="break-all">{event}</code>
              </label>
            ))}
        </fieldset>
      ))}
    </div>
  );
}
