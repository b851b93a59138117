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
import { SecretOnce } from "../elements/secret-once.tsx";
import { Until } from "../elements/time.tsx";
import { ErrorText } from "../elements/notice.tsx";
import { Unsaved } from "../elements/unsaved.tsx";
import { client, useMay } from "../query.ts";
import { ConditionForm } from "./condition-form.tsx";
import { sampleEvent } from "./sample-event.ts";
import { triggerExamples } from "./setup/trigger-examples.ts";
import { hasSetUp, SetUp } from "./setup/set-up.tsx";
import { addressOf, settable, triggerNames, type TriggerList } from "./trigger-words.ts";

/** What starts an automation's runs, and a form to change it for those who may. */
export function Triggers({ automation, shownAs }: { readonly automation: Automation; readonly shownAs: string }) {
  const { id, macro, triggers } = automation;
  const queries = useQueryClient();
  const [made, setMade] = useState<readonly Trigger[]>([]);
  const show = (changed: Automation): void => {
    setMade(changed.triggers.filter((trigger) => "secret" in trigger && trigger.secret !== undefined));
    queries.setQueryData(["automation", shownAs], changed);
  };
  const rotate = useMutation({
    mutationFn: (triggerId: string) => client.automation.rotateTrigger(id, triggerId),
    onSuccess: async (trigger) => {
      setMade("secret" in trigger && trigger.secret !== undefined ? [trigger] : []);
      await queries.invalidateQueries({ queryKey: ["automation", shownAs] });
    },
  });
  const may = useMay("write");
  const isDone = (trigger: Trigger): void => setMade((all) => all.filter((each) => each.id !== trigger.id));
  return (
    <section aria-labelledby="triggers" className="space-y-3">
      <div className="flex flex-wrap items-center justify-between gap-2">
        <h2 id="triggers" className="font-medium">
          Triggers
        </h2>
        {may && (
          <ButtonDialog button="Change" title="Change the triggers">
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
      <ul aria-label="Triggers" className="card divide-y divide-line">
        {triggers.map((trigger) => (
          <li key={trigger.id} className="space-y-2 px-4 py-3 text-sm">
            <Head
              trigger={trigger}
              mayRotate={may}
              onRotate={rotate.isPending ? null : () => rotate.mutate(trigger.id)}
            >
              {may && (
                <>
                  <ButtonDialog button="Condition" of={nameOf(trigger)} title={`Condition: ${nameOf(trigger)}`} isWide>
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
                    <ButtonDialog button="Set up" of={nameOf(trigger)} title={`Set up: ${nameOf(trigger)}`} isWide>
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
            {trigger.problem !== null && <ErrorText error={new Error(`Last time: ${trigger.problem}`)} />}
          </li>
        ))}
      </ul>
    </section>
  );
}

function Head({
  trigger,
  mayRotate,
  onRotate,
  children,
}: {
  readonly trigger: Trigger;
  /** What else can be done with it. */
  readonly children: ReactNode;
  readonly mayRotate: boolean;
  readonly onRotate: (() => void) | null;
}) {
  const isSecret = isSigned(trigger);
  return (
    <div className="flex flex-wrap items-center gap-x-3 gap-y-2">
      <span className="font-medium">{triggerNames[trigger.type]}</span>
      <span className="min-w-0 flex-1 basis-40 text-muted">{aboutOf(trigger)}</span>
      {!trigger.enabled && <Badge tone="muted" label="Disabled" />}
      {children}
      {mayRotate && (trigger.type === "webhook" || trigger.type === "source") && (
        <ConfirmButton
          button={isSecret ? "Replace the secret" : "Replace the address"}
          disabled={onRotate === null}
          question={isSecret ? "Replace the secret?" : "Replace the address?"}
          onConfirm={() => onRotate?.()}
        >
          {isSecret ? "The present one counts for another day." : "The present one leads nowhere at once."}
        </ConfirmButton>
      )}
    </div>
  );
}

/** What a trigger is called among others. */
function nameOf(trigger: Trigger): string {
  return [triggerNames[trigger.type], aboutOf(trigger)].filter((part) => part !== "").join(", ");
}

function aboutOf(trigger: Trigger): string {
  switch (trigger.type) {
    case "api":
      return "";
    case "schedule":
      return `${trigger.cron} (${trigger.timeZone})`;
    case "webhook":
      return { none: "not signed", hmac: "signed by HMAC", standardWebhooks: "signed by Standard Webhooks" }[
        trigger.verify.type
      ];
    case "forge":
      return [
        trigger.events.join(", "),
        ...(trigger.repositories.length > 0 ? [trigger.repositories.join(", ")] : []),
      ].join(" in ");
    case "source":
      return `${trigger.source}: ${trigger.events.length === 0 ? "all events" : trigger.events.join(", ")}${trigger.hasReplyToken ? "; answers go back" : ""}`;
  }
}

function Address({ address }: { readonly address: string | null }) {
  if (address === null) return null;
  return (
    <p className="flex flex-wrap items-center gap-x-3 gap-y-2">
      <code className="min-w-0 flex-1 text-xs break-all">POST {address}</code>
      <CopyButton text={address} what="its address" />
    </p>
  );
}

function Policy({ trigger }: { readonly trigger: Trigger }) {
  const { condition, concurrency, debounceSeconds, maxPerHour } = trigger;
  const nextAt = trigger.type === "schedule" ? trigger.nextAt : null;
  const hasSome = condition !== "" || concurrency !== null || debounceSeconds !== null || maxPerHour !== null;
  if (!hasSome && nextAt === null) return null;
  return (
    <dl className="flex flex-wrap gap-x-5 gap-y-1">
      {nextAt !== null && (
        <Fact name="Next">
          <Until at={nextAt} />
        </Fact>
      )}
      {condition !== "" && (
        <Fact name="If">
          <code className="text-xs break-all">{condition}</code>
        </Fact>
      )}
      {concurrency !== null && (
        <Fact name={{ skip: "Skipped", queue: "Queued", cancelOlder: "Replaces the older" }[concurrency.policy]}>
          <code className="text-xs break-all">{concurrency.key}</code>
        </Fact>
      )}
      {debounceSeconds !== null && <Fact name="Quiet for">{debounceSeconds} s</Fact>}
      {maxPerHour !== null && <Fact name="An hour at most">{maxPerHour}</Fact>}
    </dl>
  );
}

function NewSecret({ trigger, onDone }: { readonly trigger: Trigger; readonly onDone: () => void }) {
  if (!("secret" in trigger) || trigger.secret === undefined) return null;
  return (
    <SecretOnce
      label={`Secret of ${trigger.url}`}
      about="Its sender signs with it. Give it to the sender now: it is shown this once."
      secret={trigger.secret}
      onDone={onDone}
    />
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
  const [text, setText] = useState(() => JSON.stringify(triggers.map(settable), null, 2));
  const [before] = useState(text);
  const save = useMutation({
    mutationFn: () => client.automation.update(id, { triggers: listOf(text) }),
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
      <Field
        label="Triggers"
        hint='A JSON list, such as [{ "type": "schedule", "cron": "0 9 * * 1-5" }]. The reference has all fields; those that are missing from the list are removed. A secret or a replyToken that is not named stays.'
        error={isWrong ? save.error : null}
      >
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
      <FormEnd error={isWrong ? null : save.error} isPending={save.isPending} verb="Save" pendingVerb="Saving …" />
    </form>
  );
}

/** Adds an example to the list, to be changed there. */
function AddExample({ text, onAdd }: { readonly text: string; readonly onAdd: (text: string) => void }) {
  const [chosen, setChosen] = useState(triggerExamples[0]?.name ?? "");
  const [error, setError] = useState<Error | null>(null);
  const add = (): void => {
    const example = triggerExamples.find(({ name }) => name === chosen);
    if (example === undefined) return;
    try {
      onAdd(JSON.stringify([...listOf(text), example.trigger], null, 2));
      setError(null);
    } catch (problem) {
      if (!(problem instanceof NoList)) throw problem;
      setError(problem);
    }
  };
  return (
    <div className="flex items-end gap-2">
      <div className="min-w-0 flex-1">
        <Field label="An example" error={error}>
          {(attributes) => (
            <select {...attributes} className="field" value={chosen} onChange={({ target }) => setChosen(target.value)}>
              {triggerExamples.map(({ name }) => (
                <option key={name}>{name}</option>
              ))}
            </select>
          )}
        </Field>
      </div>
      <button type="button" className="button" onClick={add}>
        Add to the list
      </button>
    </div>
  );
}

/** @throws NoList if the text is no JSON list; what its entries must be is said by the API */
function listOf(text: string): TriggerList {
  let value: unknown;
  try {
    value = JSON.parse(text.trim() === "" ? "[]" : text);
  } catch (error) {
    throw new NoList(`This is no JSON: ${messageOf(error)}`, { cause: error });
  }
  if (!z.array(z.record(z.string(), z.unknown())).safeParse(value).success) {
    throw new NoList("Triggers are a JSON list of objects: write them in [ and ].");
  }
  return value as TriggerList;
}
