import { useNavigate, useSearch } from "@tanstack/react-router";
import { shortId } from "../../domain/fields/short-id.ts";
import { auditOutcomes, type AuditOutcome } from "../../domain/people/audit-outcome.ts";
import type { AuditEntry } from "../../domain/people/audit.ts";
import { PagedList } from "../elements/paged-list.tsx";
import { Select } from "../elements/select.tsx";
import { Ago } from "../elements/time.tsx";
import { useTitle } from "../elements/use-title.ts";
import { client } from "../query.ts";
import { searchOfPage } from "../elements/search-of-page.ts";
import { useAuditTexts, type AuditTexts } from "../texts/audit.ts";

/** The audit log, for admins. */
export function AuditPage() {
  const texts = useAuditTexts();
  const given = useSearch({ from: "/audit", shouldThrow: false });
  const { outcome } = searchOfPage(given);
  const navigate = useNavigate();
  useTitle(texts.title);
  return (
    <div className="space-y-4">
      <div className="flex flex-wrap items-center gap-3">
        <h1 className="mr-auto text-xl font-semibold">{texts.title}</h1>
        <Select
          label={texts.outcome}
          value={outcome}
          all={texts.allOutcomes}
          options={auditOutcomes.map((each) => ({ value: each, name: texts.choices[each] }))}
          onChange={(chosen) => void navigate({ to: "/audit", search: { outcome: chosen }, replace: true })}
        />
      </div>
      <PagedList
        label={texts.entries}
        queryKey={["audit", outcome ?? ""]}
        readPage={(cursor) => client.audit.list({ limit: 50, cursor, outcome })}
        itemsOf={(page) => page.entries}
        empty={texts.nothing}
      >
        {(entry) => <Row key={entry.id} entry={entry} />}
      </PagedList>
    </div>
  );
}

const looks: Record<AuditOutcome, string> = { allowed: "text-muted", refused: "text-bad", failed: "text-warn" };

function Row({ entry }: { entry: AuditEntry }) {
  const texts = useAuditTexts();
  return (
    <li className="flex items-baseline gap-x-3 px-4 py-2 text-sm">
      <div className="min-w-0 flex-1">
        <p className="flex flex-wrap items-baseline gap-x-3">
          <span className="font-medium break-all">{entry.action}</span>
          {entry.target !== null && <code className="text-xs break-all text-muted">{entry.target}</code>}
        </p>
        <p className="wrap-anywhere text-muted">
          {whoOf(entry, texts.actors)}
          {entry.address !== null && texts.from(entry.address)} · <Ago at={entry.createdAt} />
        </p>
      </div>
      <span className={looks[entry.outcome]}>
        {texts.outcomes[entry.outcome]} ({entry.status})
      </span>
    </li>
  );
}

function whoOf({ actor, keyName, userId, userName }: AuditEntry, texts: AuditTexts["actors"]): string {
  switch (actor) {
    case "key":
      return keyName ?? texts.key;
    case "user":
      return userName ?? texts.user(userId === null ? "" : shortId(userId));
    case "browser":
    case "command":
    case "nobody":
      return texts[actor];
  }
}
