import { useNavigate, useSearch } from "@tanstack/react-router";
import { auditOutcomes, type AuditOutcome } from "../../domain/people/audit-outcome.ts";
import type { AuditEntry } from "../../domain/people/audit.ts";
import { PagedList } from "../elements/paged-list.tsx";
import { asOptions, Select } from "../elements/select.tsx";
import { Ago } from "../elements/time.tsx";
import { useTitle } from "../elements/use-title.ts";
import { client } from "../query.ts";
import { searchOfPage } from "../elements/search-of-page.ts";

/** The audit log, for admins. */
export function AuditPage() {
  const given = useSearch({ from: "/audit", shouldThrow: false });
  const { outcome } = searchOfPage(given);
  const navigate = useNavigate();
  useTitle("Audit log");
  return (
    <div className="space-y-4">
      <div className="flex flex-wrap items-center gap-3">
        <h1 className="mr-auto text-xl font-semibold">Audit log</h1>
        <Select
          label="Outcome"
          value={outcome}
          all="All outcomes"
          options={asOptions(auditOutcomes)}
          onChange={(chosen) => void navigate({ to: "/audit", search: { outcome: chosen }, replace: true })}
        />
      </div>
      <PagedList
        label="Entries"
        queryKey={["audit", outcome ?? ""]}
        readPage={(cursor) => client.audit.list({ limit: 50, cursor, outcome })}
        itemsOf={(page) => page.entries}
        empty="Nothing matches this filter."
      >
        {(entry) => <Row key={entry.id} entry={entry} />}
      </PagedList>
    </div>
  );
}

const looks: Record<AuditOutcome, string> = { allowed: "text-muted", refused: "text-bad", failed: "text-warn" };

function Row({ entry }: { entry: AuditEntry }) {
  return (
    <li className="flex items-baseline gap-x-3 px-4 py-2 text-sm">
      <div className="min-w-0 flex-1">
        <p className="flex flex-wrap items-baseline gap-x-3">
          <span className="font-medium break-all">{entry.action}</span>
          {entry.target !== null && <code className="text-xs break-all text-muted">{entry.target}</code>}
        </p>
        <p className="wrap-anywhere text-muted">
          {whoOf(entry)}
          {entry.address !== null && ` from ${entry.address}`} · <Ago at={entry.createdAt} />
        </p>
      </div>
      <span className={looks[entry.outcome]}>
        {entry.outcome} ({entry.status})
      </span>
    </li>
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
      return "the server, or a command on it";
    case "nobody":
      return "nobody known";
  }
}
