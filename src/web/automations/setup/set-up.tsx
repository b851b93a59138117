import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import type { ReactNode } from "react";
import type { EventContext } from "../../../domain/automations/automation.ts";
import type { Trigger } from "../../../domain/automations/trigger.ts";
import { CopyButton } from "../../elements/copy-button.tsx";
import { ErrorText, Loading } from "../../elements/notice.tsx";
import { client, useMay } from "../../query.ts";
import { useAutomationTexts } from "../../texts/automations.ts";
import { choicesFor } from "./forge-choices.ts";
import { apiExamples, sourceExample, webhookExample, type ShellExample } from "./shell-examples.ts";
import { sourceSetups } from "./source-setups.ts";

/** How to set up an automation's senders outside of Offstage: the address, how to sign, with lines to copy. */
export function SetUp({
  trigger,
  address,
  event,
}: {
  readonly trigger: Trigger;
  /** The address to which its senders post; null: it has none. */
  readonly address: string | null;
  /** The contents of the examples. */
  readonly event: EventContext;
}) {
  const texts = useAutomationTexts().setUp;
  return (
    <div className="mt-4 space-y-4 text-sm">
      {address !== null && <Copyable label={texts.address} text={address} />}
      {trigger.type === "api" &&
        apiExamples(address ?? "", event).map((example) => <Example key={example.about} example={example} />)}
      {trigger.type === "webhook" && <Example example={webhookExample(trigger, event)} />}
      {trigger.type === "source" && <Source trigger={trigger} />}
      {trigger.type === "forge" && <Forges trigger={trigger} />}
    </div>
  );
}

/** Whether there is anything to set up for a trigger outside of Offstage. */
export function hasSetUp({ type }: Trigger): boolean {
  return type !== "schedule";
}

function Example({ example: { about, code } }: { readonly example: ShellExample }) {
  const texts = useAutomationTexts().setUp;
  return <Copyable label={texts.shell} about={texts.examples[about]} text={code} />;
}

/** Lines to copy. */
function Copyable({
  label,
  about,
  text,
}: {
  readonly label: string;
  readonly about?: ReactNode;
  readonly text: string;
}) {
  return (
    <figure className="space-y-1">
      <figcaption className="flex flex-wrap items-center gap-x-3">
        <span className="font-medium">{label}</span>
        <span className="me-auto text-muted">{about}</span>
        <CopyButton text={text} what={label} />
      </figcaption>
      <pre
        tabIndex={0}
        aria-label={label}
        className="overflow-x-auto rounded-md bg-sunken p-3 text-xs whitespace-pre-wrap wrap-anywhere"
      >
        {text}
      </pre>
    </figure>
  );
}

function Source({ trigger }: { readonly trigger: Extract<Trigger, { type: "source" }> }) {
  const { setUp: texts, ...common } = useAutomationTexts();
  const { condition, instructions } = sourceSetups[trigger.source];
  const example = sourceExample(trigger);
  return (
    <>
      <ol className="list-decimal space-y-1 ps-5">
        {texts.sources[trigger.source].map((step) => (
          <li key={step}>{step}</li>
        ))}
      </ol>
      <p className="text-muted">{texts.ownSecret}</p>
      {example !== null && <Example example={example} />}
      <Copyable label={texts.condition} about={texts.forExample} text={condition} />
      <Copyable label={common.instructions} about={texts.forExample} text={instructions} />
    </>
  );
}

function Forges({ trigger: { connectionId, events } }: { readonly trigger: Extract<Trigger, { type: "forge" }> }) {
  const texts = useAutomationTexts().setUp;
  const may = useMay("admin");
  const list = useQuery({
    queryKey: ["connections", "hooks"],
    queryFn: () => client.connection.list({ limit: 100 }),
    enabled: may,
  });
  const own = events.filter((name) => choicesFor("github", [name]).choose.length === 0);
  const others = events.filter((name) => !own.includes(name));
  const connections = (list.data?.connections ?? []).filter(
    ({ id, kind }) => kind !== "git" && (connectionId === null || id === connectionId),
  );
  return (
    <>
      {own.length > 0 && <p>{texts.byItself(own.join(", "))}</p>}
      {others.length > 0 && !may && <p>{texts.askAdmin}</p>}
      {others.length > 0 && may && (
        <>
          <ErrorText error={list.error} />
          {list.isLoading && <Loading />}
          {list.data !== undefined && connections.length === 0 && (
            <p>
              {texts.noForge}{" "}
              <Link to="/settings" hash="connections" className="text-accent underline">
                {texts.connect}
              </Link>
              .
            </p>
          )}
          {connections.map(({ id, kind, name, hookUrl }) => {
            const { choose, untold } = choicesFor(kind, others);
            return (
              <section key={id} aria-label={name} className="space-y-2">
                <Copyable label={texts.addressFor(name)} text={hookUrl} />
                {choose.length > 0 && (
                  <p>
                    {texts.choose} <b className="font-medium">{choose.join(", ")}</b>
                    {texts.enterSecret}
                  </p>
                )}
                {untold.length > 0 && <p className="text-muted">{texts.untold(untold.join(", "))}</p>}
              </section>
            );
          })}
        </>
      )}
    </>
  );
}
