import { useMutation, useQuery } from "@tanstack/react-query";
import { useState, type FormEvent } from "react";
import type { Automation } from "../../domain/automations/automation.ts";
import type { Trigger } from "../../domain/automations/trigger.ts";
import { CloseDialog } from "../elements/dialog.tsx";
import { Field } from "../elements/field.tsx";
import { ErrorText } from "../elements/notice.tsx";
import { Unsaved } from "../elements/unsaved.tsx";
import { client } from "../query.ts";
import { useAutomationTexts } from "../texts/automations.ts";
import { ConditionTester } from "./condition-tester.tsx";
import { deliveriesTo, useDeliveries } from "./deliveries.ts";
import { CodeField } from "./editor/code-field.tsx";
import { samplesFor } from "./samples.ts";
import { settable } from "./trigger-words.ts";
import { useTemplates } from "./use-chosen-event.ts";

/** The condition of one trigger: written with the values of what came to it, and tried with that. */
export function ConditionForm({
  automation,
  trigger,
  onSaved,
}: {
  readonly automation: Automation;
  readonly trigger: Trigger;
  readonly onSaved: (changed: Automation) => void;
}) {
  const texts = useAutomationTexts();
  const [condition, setCondition] = useState(trigger.condition);
  const [before] = useState(condition);
  const found = useDeliveries(automation);
  const deliveries = deliveriesTo(trigger, found.data ?? []);
  const roots = useRoots(automation.id, trigger, deliveries[0]?.id, found.isFetched);
  const save = useMutation({
    mutationFn: () => saveCondition(automation.id, trigger.id, condition),
    onSuccess: onSaved,
  });
  const isWrong = / ?\.condition\b/u.test(save.error?.message ?? "");
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    if (!save.isPending) save.mutate();
  };
  const { file } = automation;
  return (
    <form onSubmit={submit} className="mt-4 space-y-4">
      <Field label={texts.triggers.condition} hint={texts.condition.hint} error={isWrong ? save.error : null}>
        {(attributes) => (
          <CodeField
            attributes={attributes}
            language="cel"
            rows={3}
            value={condition}
            onChange={(value) => {
              setCondition(value);
              save.reset();
            }}
            roots={roots}
          />
        )}
      </Field>
      <ConditionTester
        automationId={automation.id}
        trigger={trigger}
        condition={condition}
        deliveries={found.data === undefined ? null : deliveries}
        error={found.error}
      />
      <ErrorText error={isWrong ? null : save.error} />
      {file !== null && <p className="text-sm text-muted">{texts.condition.inFile(file.path)}</p>}
      <Unsaved isChanged={condition !== before} />
      <div className="flex justify-end gap-2">
        <CloseDialog />
        {file === null && (
          <button type="submit" className="button button-primary" disabled={save.isPending}>
            {save.isPending ? texts.saving : texts.save}
          </button>
        )}
      </div>
    </form>
  );
}

/** The names of conditions, with the values of a delivery, or of a sample if none came. */
function useRoots(
  automation: string,
  trigger: Trigger,
  ledgerId: string | undefined,
  isKnown: boolean,
): Readonly<Record<string, unknown>> {
  const templates = useTemplates().data?.templates;
  const sample = samplesFor([trigger], templates ?? []).fitting[0]?.name;
  const event = useQuery({
    queryKey: ["preview", "values", automation, ledgerId ?? sample],
    queryFn: () =>
      client.automation.previewDraft({
        automation,
        triggers: [],
        ...(ledgerId !== undefined ? { ledgerId } : sample !== undefined && { sample }),
      }),
    enabled: isKnown && templates !== undefined,
    staleTime: 60_000,
    retry: false,
  });
  const { id, type } = trigger;
  return { event: event.data?.event, trigger: { id, type }, repository: event.data?.repository };
}

/** Changes one condition of the current list: others' changes since stay. */
async function saveCondition(automationId: string, triggerId: string, condition: string): Promise<Automation> {
  const { triggers } = await client.automation.get(automationId);
  return client.automation.update(automationId, {
    triggers: triggers.map((each) => ({ ...settable(each), ...(each.id === triggerId && { condition }) })),
  });
}
