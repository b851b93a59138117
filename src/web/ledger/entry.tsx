import { useMutation, useQueryClient } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import type { Automation } from "../../domain/automations/automation.ts";
import type { LedgerEntry } from "../../domain/automations/ledger.ts";
import type { LedgerOutcome } from "../../domain/automations/ledger-outcome.ts";
import { Badge, type Tone } from "../elements/badge.tsx";
import { PageTitle } from "../elements/page-head.tsx";
import { Ago } from "../elements/time.tsx";
import { ErrorText } from "../elements/notice.tsx";
import { client, useMay } from "../query.ts";
import { useLedgerTexts, type LedgerTexts } from "../texts/ledger.ts";

/** Null while they are being loaded. */
export type KnownAutomations = readonly Automation[] | null;

const tones: Record<LedgerOutcome, Tone> = {
  fired: "good",
  duplicate: "muted",
  filtered: "muted",
  superseded: "muted",
  missed: "warn",
  failed: "bad",
  "dead-lettered": "bad",
};

/**
 * A trigger: its outcome, what it started, and a button to trigger again for those who may.
 * @param isAlone whether it is shown on its own page; otherwise it links to that page
 */
export function Entry({
  entry,
  automations,
  isAlone = false,
}: {
  entry: LedgerEntry;
  automations: KnownAutomations;
  isAlone?: boolean;
}) {
  const { outcome, reason, sessionId, originalId, automationId } = entry;
  const texts = useLedgerTexts();
  const name = nameOf(entry, automations, texts);
  const isThere = automations?.some(({ id }) => id === automationId) === true;
  const queries = useQueryClient();
  // With what the entry came with.
  const replay = useMutation({
    mutationFn: () => client.ledger.replay(entry.id),
    onSuccess: () => queries.invalidateQueries({ queryKey: ["ledger"] }),
  });
  const badge =
    outcome === null ? (
      <Badge tone="accent" label={texts.underWay} moving />
    ) : (
      <Badge tone={tones[outcome]} label={texts.outcomes[outcome]} />
    );
  const may = useMay("write");
  const again = outcome !== null && may && (
    <button type="button" className="button shrink-0" disabled={replay.isPending} onClick={() => replay.mutate()}>
      {texts.replay}
      <span className="sr-only"> {name}</span>
    </button>
  );
  const detail = (
    <>
      {reason !== null && <p className="break-words text-muted first-letter:uppercase">{reason}</p>}
      <p className="flex flex-wrap gap-x-4 text-muted">
        <Ago at={entry.createdAt} />
        {sessionId !== null && (
          <Link to="/sessions/$id" params={{ id: sessionId }} className="text-accent underline">
            {texts.session}
          </Link>
        )}
        {isAlone && automationId !== null && isThere && (
          <Link to="/automations/$id" params={{ id: automationId }} className="text-accent underline">
            {texts.automation}
          </Link>
        )}
        {originalId !== null && (
          <Link to="/ledger" search={{ entry: originalId }} className="text-accent underline">
            {outcome === "duplicate" ? texts.first : texts.replayOf}
          </Link>
        )}
      </p>
      <output className="block text-good empty:hidden">
        {replay.data !== undefined && (
          <Link
            to="/ledger"
            search={{ entry: "outcome" in replay.data ? replay.data.ledgerId : replay.data.id }}
            className="underline"
          >
            {texts.replayed}
          </Link>
        )}
      </output>
      <ErrorText error={replay.error} />
    </>
  );
  if (isAlone) {
    return (
      <div className="space-y-3 text-sm">
        <PageTitle title={name}>{badge}</PageTitle>
        {detail}
        {again}
      </div>
    );
  }
  return (
    <div className="flex items-center gap-x-4">
      <div className="min-w-0 flex-1 space-y-1 text-sm">
        <div className="flex flex-wrap items-center gap-x-3 gap-y-1 text-base">
          <Link to="/ledger" search={{ entry: entry.id }} className="min-w-0 font-medium break-words hover:underline">
            <bdi>{name}</bdi>
          </Link>
          {badge}
        </div>
        {detail}
      </div>
      {again}
    </div>
  );
}

function nameOf({ automationId }: LedgerEntry, automations: KnownAutomations, texts: LedgerTexts): string {
  if (automations === null) return texts.anAutomation;
  return automations.find(({ id }) => id === automationId)?.name ?? texts.deletedAutomation;
}
