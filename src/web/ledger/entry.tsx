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

/** Null while they are being loaded. */
export type KnownAutomations = readonly Automation[] | null;

const underWay: { label: string; tone: Tone } = { label: "Under way", tone: "accent" };
const looks: Record<LedgerOutcome, { label: string; tone: Tone }> = {
  fired: { label: "Fired", tone: "good" },
  duplicate: { label: "Duplicate", tone: "muted" },
  filtered: { label: "Filtered", tone: "muted" },
  superseded: { label: "Superseded", tone: "muted" },
  missed: { label: "Missed", tone: "warn" },
  failed: { label: "Failed", tone: "bad" },
  "dead-lettered": { label: "Dead-lettered", tone: "bad" },
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
  const name = nameOf(entry, automations);
  const isThere = automations?.some(({ id }) => id === automationId) === true;
  const queries = useQueryClient();
  // With what the entry came with.
  const replay = useMutation({
    mutationFn: () => client.ledger.replay(entry.id),
    onSuccess: () => queries.invalidateQueries({ queryKey: ["ledger"] }),
  });
  const badge = <Badge {...(outcome === null ? underWay : looks[outcome])} moving={outcome === null} />;
  const may = useMay("write");
  const again = outcome !== null && may && (
    <button type="button" className="button shrink-0" disabled={replay.isPending} onClick={() => replay.mutate()}>
      Replay<span className="sr-only"> {name}</span>
    </button>
  );
  const detail = (
    <>
      {reason !== null && <p className="break-words text-muted first-letter:uppercase">{reason}</p>}
      <p className="flex flex-wrap gap-x-4 text-muted">
        <Ago at={entry.createdAt} />
        {sessionId !== null && (
          <Link to="/sessions/$id" params={{ id: sessionId }} className="text-accent underline">
            Session
          </Link>
        )}
        {isAlone && automationId !== null && isThere && (
          <Link to="/automations/$id" params={{ id: automationId }} className="text-accent underline">
            Automation
          </Link>
        )}
        {originalId !== null && (
          <Link to="/ledger" search={{ entry: originalId }} className="text-accent underline">
            {outcome === "duplicate" ? "The first one" : "Replay of an earlier one"}
          </Link>
        )}
      </p>
      <output className="block text-good empty:hidden">
        {replay.data !== undefined && (
          <Link to="/ledger" search={{ entry: replay.data.id }} className="underline">
            Triggered again
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

function nameOf({ automationId }: LedgerEntry, automations: KnownAutomations): string {
  if (automations === null) return "An automation";
  return automations.find(({ id }) => id === automationId)?.name ?? "An automation that was deleted";
}
