import { useInfiniteQuery } from "@tanstack/react-query";
import { useEffect, useId, useState } from "react";
import { auditOutcomes, type AuditEntry, type AuditOutcome } from "../../domain/audit.ts";
import { ErrorText } from "../layout.tsx";
import { client } from "../query.ts";
import { ShowMore } from "../show-more.tsx";
import { Ago } from "../time.tsx";

/** Who changed what, from where, and what was refused: for admins. */
export function AuditPage() {
  const fieldId = useId();
  const [outcome, setOutcome] = useState<AuditOutcome | "">("");
  const entries = useInfiniteQuery({
    queryKey: ["audit", outcome],
    queryFn: ({ pageParam }) =>
      client.audit.list({ limit: 50, cursor: pageParam, outcome: outcome === "" ? undefined : outcome }),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: (page) => page.nextCursor ?? undefined,
  });
  useEffect(() => {
    document.title = "Audit log · Offstage";
  }, []);
  const found = entries.data?.pages.flatMap((page) => page.entries);
  return (
    <div className="space-y-4">
      <div className="flex flex-wrap items-center gap-3">
        <h1 className="mr-auto text-xl font-semibold">Audit log</h1>
        <label htmlFor={fieldId} className="text-sm">
          Show
        </label>
        <select
          id={fieldId}
          className="field w-auto"
          value={outcome}
          onChange={(event) => setOutcome(auditOutcomes.find((known) => known === event.target.value) ?? "")}
        >
          <option value="">everything</option>
          {auditOutcomes.map((known) => (
            <option key={known}>{known}</option>
          ))}
        </select>
      </div>
      <ErrorText error={entries.error} />
      {found === undefined && entries.error === null && <p className="text-muted">Loading the log …</p>}
      {found?.length === 0 && <p className="py-8 text-center text-muted">There is nothing of this kind.</p>}
      {found !== undefined && found.length > 0 && <Entries entries={found} />}
      <ShowMore list={entries} />
    </div>
  );
}

const looks: Record<AuditOutcome, string> = { allowed: "text-good", refused: "text-bad", failed: "text-warn" };

function Entries({ entries }: { entries: readonly AuditEntry[] }) {
  return (
    <ul aria-label="Entries" className="card divide-y divide-line text-sm">
      {entries.map((entry) => (
        <li key={entry.id} className="flex flex-wrap items-baseline gap-x-3 gap-y-0.5 px-4 py-2">
          <span className="font-medium break-all">{entry.action}</span>
          {entry.target !== null && <code className="text-xs break-all text-muted">{entry.target}</code>}
          <span className={looks[entry.outcome]}>
            {entry.outcome} ({entry.status})
          </span>
          <span className="ml-auto text-muted">
            {whoOf(entry)}
            {entry.address !== null && ` from ${entry.address}`} · <Ago at={entry.createdAt} />
          </span>
        </li>
      ))}
    </ul>
  );
}

function whoOf({ actor, keyName, userId }: AuditEntry): string {
  switch (actor) {
    case "key":
      return keyName ?? "a key";
    case "user":
      return `user ${userId?.slice(0, 8) ?? ""}`;
    case "browser":
      return "a browser signed in by a link";
    case "command":
      return "a command on the server";
    case "nobody":
      return "nobody known";
  }
}
