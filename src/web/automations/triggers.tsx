import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useState, type FormEvent, type ReactNode } from "react";
import { z } from "zod";
import type { Automation } from "../../domain/automations/automation.ts";
import { isSigned, type Trigger } from "../../domain/automations/trigger.ts";
import { messageOf } from "../../domain/errors/errors.ts";
import { Badge } from "../elements/badge.tsx";
import { CopyButton } from "../elements/copy-button.tsx";
import { ButtonDialog, ConfirmButton } from "../elements/dialog.tsx";
import { Fact } from "../elements/fact.tsx";
import { Field } from "../elements/field.tsx";
import { FormEnd } from "../elements/form-end.tsx";
import { SecretOnce } from "../elements/secrets/secret-once.tsx";
import { Until } from "../elements/time.tsx";
import { ErrorText } from "../elements/notice.tsx";
import { Unsaved } from "../elements/unsaved.tsx";
import { client, useMay } from "../query.ts";
import { useAutomationTexts, type AutomationTexts } from "../texts/automations.ts";
import { formatNumber } from "../texts/formats.ts";
import { ConditionForm } from "./condition-form.tsx";
import { sampleEvent } from "./sample-event.ts";
import { triggerExamples } from "./setup/trigger-examples.ts";
import { hasSetUp, SetUp } from "./setup/set-up.tsx";
import { addressOf, settable, type TriggerList } from "./trigger-words.ts";

/** The triggers of an automation, and forms to change them for those who may. */
export function Triggers({ automation, shownAs }: { readonly automation: Automation; readonly shownAs: string }) {
  const { id, macro, triggers } = automation;
  const { triggers: texts, ...common } = useAutomationTexts();
  const queries = useQueryClient();
  const [made, setMade] = useState<readonly Trigger[]>([]);
  const show = (changed: Automation): void => {
    // Each is shown until the user has copied it: the next save removes none of existing triggers.
    setMade((shown) => [
      ...shown.filter(({ id: known }) =>
        changed.triggers.some((trigger) => trigger.id === known && !hasSecret(trigger)),
      ),
      ...changed.triggers.filter(hasSecret),
    ]);
    queries.setQueryData(["automation", shownAs], changed);
  };
  const rotate = useMutation({
    mutationFn: (triggerId: string) => client.automation.rotateTrigger(id, triggerId),
    onSuccess: async (trigger) => {
      setMade((shown) => [...shown.filter(({ id: known }) => known !== trigger.id), trigger].filter(hasSecret));
      await queries.invalidateQueries({ queryKey: ["automation", shownAs] });
    },
  });
  const may = useMay("write");
  const isDone = (trigger: Trigger): void => setMade((all) => all.filter((each) => each.id !== trigger.id));
  return (
    <section aria-labelledby="triggers" className="space-y-3">
      <div className="flex flex-wrap items-center justify-between gap-2">
        <h2 id="triggers" className="font-medium">
          {texts.title}
        </h2>
        {may && (
          <ButtonDialog button={common.change} title={texts.change}>
            {(close) => (
              <TriggersForm
                automation={automation}
                onSaved={(changed) => {
                  show(changed);
                  close();
                }}
              />
            )}
          </ButtonDialog>
        )}
      </div>
      {made.map((trigger) => (
        <NewSecret key={trigger.id} trigger={trigger} onDone={() => isDone(trigger)} />
      ))}
      <ErrorText error={rotate.error} />
      <ul aria-label={texts.title} className="card divide-y divide-line">
        {triggers.map((trigger) => (
          <li key={trigger.id} className="space-y-2 px-4 py-3 text-sm">
            <Head
              trigger={trigger}
              mayRotate={may}
              onRotate={rotate.isPending ? null : () => rotate.mutate(trigger.id)}
            >
              {may && (
                <>
                  <ButtonDialog
                    button={texts.condition}
                    of={nameOf(trigger, texts)}
                    title={texts.conditionOf(nameOf(trigger, texts))}
                    isWide
                  >
                    {(close) => (
                      <ConditionForm
                        automation={automation}
                        trigger={trigger}
                        onSaved={(changed) => {
                          show(changed);
                          close();
                        }}
                      />
                    )}
                  </ButtonDialog>
                  {hasSetUp(trigger) && (
                    <ButtonDialog
                      button={texts.setUp}
                      of={nameOf(trigger, texts)}
                      title={texts.setUpOf(nameOf(trigger, texts))}
                      isWide
                    >
                      {() => (
                        <SetUp
                          trigger={trigger}
                          address={addressOf(trigger, macro)}
                          event={sampleEvent(automation.instructions)}
                        />
                      )}
                    </ButtonDialog>
                  )}
                </>
              )}
            </Head>
            <Address address={addressOf(trigger, macro)} />
            <Policy trigger={trigger} />
            {trigger.problem !== null && <ErrorText error={new Error(texts.lastProblem(trigger.problem))} />}
          </li>
        ))}
      </ul>
    </section>
  );
}

/** Whether its secret came with it, which is shown once. */
function hasSecret(trigger: Trigger): boolean {
  return "secret" in trigger && trigger.secret !== undefined;
}

function Head({
  trigger,
  mayRotate,
  onRotate,
  children,
}: {
  readonly trigger: Trigger;
  /** Further actions. */
  readonly children: ReactNode;
  readonly mayRotate: boolean;
  readonly onRotate: (() => void) | null;
}) {
  const texts = useAutomationTexts().triggers;
  const isSecret = isSigned(trigger);
  return (
    <div className="flex flex-wrap items-center gap-x-3 gap-y-2">
      <span className="font-medium">{texts.names[trigger.type]}</span>
      <span className="min-w-0 flex-1 basis-40 text-muted">{aboutOf(trigger, texts)}</span>
      {!trigger.enabled && <Badge tone="muted" label={texts.disabled} />}
      {children}
      {mayRotate && (trigger.type === "webhook" || trigger.type === "source") && (
        <ConfirmButton
          button={isSecret ? texts.replaceSecret : texts.replaceAddress}
          disabled={onRotate === null}
          question={isSecret ? texts.replaceSecretQuestion : texts.replaceAddressQuestion}
          onConfirm={() => onRotate?.()}
        >
          {isSecret ? texts.replaceSecretAbout : texts.replaceAddressAbout}
        </ConfirmButton>
      )}
    </div>
  );
}

/** The name of a trigger among others. */
function nameOf(trigger: Trigger, texts: AutomationTexts["triggers"]): string {
  return [texts.names[trigger.type], aboutOf(trigger, texts)].filter((part) => part !== "").join(", ");
}

function aboutOf(trigger: Trigger, texts: AutomationTexts["triggers"]): string {
  switch (trigger.type) {
    case "api":
      return "";
    case "schedule":
      return `${trigger.cron} (${trigger.timeZone})`;
    case "webhook":
      return texts.signed[trigger.verify.type];
    case "forge": {
      const events = trigger.events.join(", ");
      return trigger.repositories.length > 0 ? texts.eventsIn(events, trigger.repositories.join(", ")) : events;
    }
    case "source": {
      const events = trigger.events.length === 0 ? texts.allEvents : trigger.events.join(", ");
      return `${trigger.source}: ${events}${trigger.hasReplyToken ? texts.answersBack : ""}`;
    }
  }
}

function Address({ address }: { readonly address: string | null }) {
  const { copyAddress } = useAutomationTexts().triggers;
  if (address === null) return null;
  return (
    <p className="flex flex-wrap items-center gap-x-3 gap-y-2">
      <code className="min-w-0 flex-1 text-xs break-all">POST {address}</code>
      <CopyButton text={address} what={copyAddress} />
    </p>
  );
}

function Policy({ trigger }: { readonly trigger: Trigger }) {
  const texts = useAutomationTexts().triggers;
  const { condition, concurrency, debounceSeconds, maxPerHour } = trigger;
  const nextAt = trigger.type === "schedule" ? trigger.nextAt : null;
  const hasSome = condition !== "" || concurrency !== null || debounceSeconds !== null || maxPerHour !== null;
  if (!hasSome && nextAt === null) return null;
  return (
    <dl className="flex flex-wrap gap-x-5 gap-y-1">
      {nextAt !== null && (
        <Fact name={texts.next}>
          <Until at={nextAt} />
        </Fact>
      )}
      {condition !== "" && (
        <Fact name={texts.if}>
          <code className="text-xs break-all">{condition}</code>
        </Fact>
      )}
      {concurrency !== null && (
        <Fact name={texts.concurrency[concurrency.policy]}>
          <code className="text-xs break-all">{concurrency.key}</code>
        </Fact>
      )}
      {debounceSeconds !== null && <Fact name={texts.quiet}>{formatNumber(debounceSeconds)} s</Fact>}
      {maxPerHour !== null && <Fact name={texts.anHour}>{formatNumber(maxPerHour)}</Fact>}
    </dl>
  );
}

function NewSecret({ trigger, onDone }: { readonly trigger: Trigger; readonly onDone: () => void }) {
  const texts = useAutomationTexts().triggers;
  if (!("secret" in trigger) || trigger.secret === undefined) return null;
  return (
    <SecretOnce label={texts.secretOf(trigger.url)} about={texts.secretAbout} secret={trigger.secret} onDone={onDone} />
  );
}

class NoList extends Error {}

/** The triggers as JSON: what the API takes. */
function TriggersForm({
  automation: { id, triggers },
  onSaved,
}: {
  readonly automation: Automation;
  readonly onSaved: (changed: Automation) => void;
}) {
  const texts = useAutomationTexts();
  const [text, setText] = useState(() => JSON.stringify(triggers.map(settable), null, 2));
  const [before] = useState(text);
  const save = useMutation({
    mutationFn: () => client.automation.update(id, { triggers: listOf(text, texts) }),
    onSuccess: onSaved,
  });
  const isWrong = save.error instanceof NoList;
  const change = (changed: string): void => {
    setText(changed);
    save.reset();
  };
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    if (!save.isPending) save.mutate();
  };
  return (
    <form onSubmit={submit} className="mt-4 space-y-4">
      <Field label={texts.triggers.title} hint={texts.triggers.hint} error={isWrong ? save.error : null}>
        {(attributes) => (
          <textarea
            {...attributes}
            rows={16}
            spellCheck={false}
            className="field font-mono text-xs"
            value={text}
            onChange={({ target }) => change(target.value)}
          />
        )}
      </Field>
      <AddExample text={text} onAdd={change} />
      <Unsaved isChanged={text !== before} />
      <FormEnd
        error={isWrong ? null : save.error}
        isPending={save.isPending}
        verb={texts.save}
        pendingVerb={texts.saving}
      />
    </form>
  );
}

/** Adds an example to the list, to be changed there. */
function AddExample({ text, onAdd }: { readonly text: string; readonly onAdd: (text: string) => void }) {
  const texts = useAutomationTexts();
  const [chosen, setChosen] = useState<string>(triggerExamples[0]?.name ?? "");
  const [error, setError] = useState<Error | null>(null);
  const add = (): void => {
    const example = triggerExamples.find(({ name }) => name === chosen);
    if (example === undefined) return;
    try {
      onAdd(JSON.stringify([...listOf(text, texts), example.trigger], null, 2));
      setError(null);
    } catch (problem) {
      if (!(problem instanceof NoList)) throw problem;
      setError(problem);
    }
  };
  return (
    <div className="flex items-end gap-2">
      <div className="min-w-0 flex-1">
        <Field label={texts.triggers.example} error={error}>
          {(attributes) => (
            <select {...attributes} className="field" value={chosen} onChange={({ target }) => setChosen(target.value)}>
              {triggerExamples.map(({ name }) => (
                <option key={name} value={name}>
                  {texts.triggers.examples[name]}
                </option>
              ))}
            </select>
          )}
        </Field>
      </div>
      <button type="button" className="button" onClick={add}>
        {texts.triggers.add}
      </button>
    </div>
  );
}

/** @throws NoList if the text is no JSON list; what its entries must be is said by the API */
function listOf(text: string, texts: AutomationTexts): TriggerList {
  let value: unknown;
  try {
    value = JSON.parse(text.trim() === "" ? "[]" : text);
  } catch (error) {
    throw new NoList(texts.noJson(messageOf(error)), { cause: error });
  }
  if (!z.array(z.record(z.string(), z.unknown())).safeParse(value).success) {
    throw new NoList(texts.triggers.noList);
  }
  return value as TriggerList;
}
