import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { ClientError } from "../../client.ts";
import type { LedgerEntry } from "../../domain/automations/ledger.ts";
import type { TriggerPreview } from "../../domain/automations/preview.ts";
import type { Trigger } from "../../domain/automations/trigger.ts";
import { Badge } from "../elements/badge.tsx";
import { ErrorText, Loading } from "../elements/notice.tsx";
import { Ago } from "../elements/time.tsx";
import { client } from "../query.ts";
import { useAutomationTexts, type AutomationTexts } from "../texts/automations.ts";
import { settable } from "./trigger-words.ts";

/** A condition is tried with so many deliveries. */
const mostTried = 10;

/** A condition's result for one delivery. */
type Verdict = Pick<TriggerPreview, "passes" | "problem" | "listsEvent" | "listsRepository">;

/** Tries a condition with what came to its trigger last: what would pass, what would not, and what can't be evaluated. */
export function ConditionTester({
  automationId,
  trigger,
  condition,
  deliveries,
  error,
}: {
  readonly automationId: string;
  readonly trigger: Trigger;
  readonly condition: string;
  /** Null until they are loaded. */
  readonly deliveries: readonly LedgerEntry[] | null;
  readonly error: Error | null;
}) {
  const texts = useAutomationTexts().condition;
  const last = deliveries?.slice(0, mostTried) ?? [];
  const [asked, setAsked] = useState<string | null>(null);
  const tried = useQuery({
    queryKey: ["preview", "condition", trigger.id, asked, last.map(({ id }) => id)],
    queryFn: async ({ signal }) => {
      const draft = { ...settable(trigger), condition: asked ?? "" };
      const found = await tryCondition(automationId, draft, last, signal);
      if (found === null) throw new Error(texts.unknown);
      return found;
    },
    enabled: asked !== null,
    staleTime: Infinity,
    gcTime: 0,
    retry: false,
  });
  // Results of another condition do not apply to this one.
  const verdicts = asked === condition ? tried.data : undefined;
  const isTrying = asked === condition && tried.isFetching;
  if (deliveries === null) return error === null ? <Loading lines={2} /> : <ErrorText error={error} />;
  if (last.length === 0) return <p className="text-sm text-muted">{texts.nothing}</p>;
  return (
    <section aria-labelledby="tried" className="space-y-2 text-sm">
      <div className="flex flex-wrap items-center gap-2">
        <h3 id="tried" className="me-auto font-medium">
          {texts.last(last.length)}
        </h3>
        <output className="text-muted">{verdicts !== undefined && summaryOf(verdicts, texts)}</output>
        {/* Not disabled while it is trying, because it would lose the focus. */}
        <button type="button" className="button" aria-busy={isTrying} onClick={() => setAsked(condition)}>
          {isTrying ? texts.trying : texts.try}
        </button>
      </div>
      <ErrorText error={asked === condition ? tried.error : null} />
      <ul aria-labelledby="tried" className="card divide-y divide-line">
        {last.map((entry, index) => (
          <Tried key={entry.id} entry={entry} verdict={verdicts?.[index]} />
        ))}
      </ul>
    </section>
  );
}

/**
 * One delivery after the other: each counts for how often this browser may ask.
 * @returns null if the server did not say what the trigger makes of one
 */
async function tryCondition(
  automation: string,
  trigger: ReturnType<typeof settable>,
  deliveries: readonly LedgerEntry[],
  signal: AbortSignal,
): Promise<Verdict[] | null> {
  const verdicts: Verdict[] = [];
  for (const { id: ledgerId } of deliveries) {
    signal.throwIfAborted();
    const verdict = await verdictOf({ automation, ledgerId, triggers: [trigger] });
    if (verdict === undefined) return null;
    verdicts.push(verdict);
  }
  return verdicts;
}

async function verdictOf(question: Parameters<typeof client.automation.previewDraft>[0]): Promise<Verdict | undefined> {
  try {
    return (await client.automation.previewDraft(question)).triggers[0];
  } catch (error) {
    // Old deliveries may be deleted by now: the others can be tried.
    const isGone = error instanceof ClientError && (error.status === 404 || error.status === 409);
    if (isGone) return { passes: null, problem: error.message, listsEvent: null, listsRepository: null };
    throw error;
  }
}

function wouldPass({ passes, listsEvent, listsRepository }: Verdict): boolean {
  return passes === true && listsEvent !== false && listsRepository !== false;
}

function summaryOf(verdicts: readonly Verdict[], texts: AutomationTexts["condition"]): string {
  const passed = verdicts.filter(wouldPass).length;
  const failed = verdicts.filter(({ problem }) => problem !== null).length;
  const others = verdicts.length - passed - failed;
  return texts.summary(passed, others, failed);
}

function Tried({ entry, verdict }: { readonly entry: LedgerEntry; readonly verdict: Verdict | undefined }) {
  const { name, reason, createdAt } = entry;
  const { outcomes } = useAutomationTexts();
  return (
    <li className="space-y-1 px-3 py-2">
      <div className="flex flex-wrap items-center gap-x-3 gap-y-1">
        <span className="min-w-0 flex-1">
          {name !== null && <code className="text-xs">{name} </code>}
          <span className="text-muted">
            <Ago at={createdAt} />
            {entry.outcome !== null && `, ${outcomes[entry.outcome]}`}
          </span>
        </span>
        {verdict !== undefined && <VerdictBadge verdict={verdict} />}
      </div>
      {verdict !== undefined && verdict.problem !== null && <p className="wrap-anywhere text-bad">{verdict.problem}</p>}
      {verdict === undefined && reason !== null && <p className="wrap-anywhere text-muted">{reason}</p>}
    </li>
  );
}

function VerdictBadge({ verdict }: { readonly verdict: Verdict }) {
  const { problem, listsEvent, listsRepository } = verdict;
  const texts = useAutomationTexts().condition;
  if (problem !== null) return <Badge tone="bad" label={texts.error} />;
  if (wouldPass(verdict)) return <Badge tone="good" label={texts.passes} />;
  if (listsEvent === false) return <Badge tone="muted" label={texts.otherEvent} />;
  return <Badge tone="muted" label={listsRepository === false ? texts.otherRepository : texts.fails} />;
}
