import { useQuery } from "@tanstack/react-query";
import { useNavigate, useSearch } from "@tanstack/react-router";
import type { Automation } from "../../domain/automations/automation.ts";
import { ledgerOutcomes } from "../../domain/automations/ledger-outcome.ts";
import { Fact } from "../elements/fact.tsx";
import { BackLink } from "../elements/page-head.tsx";
import { PagedList } from "../elements/paged-list.tsx";
import { Select } from "../elements/select.tsx";
import { formatTime } from "../texts/formats.ts";
import { useLedgerTexts } from "../texts/ledger.ts";
import { useTitle } from "../elements/use-title.ts";
import { ErrorText } from "../elements/notice.tsx";
import { Entry, type KnownAutomations } from "../ledger/entry.tsx";
import { client } from "../query.ts";
import { searchOfPage } from "../elements/search-of-page.ts";

/** The ledger of triggers, the newest first, with their outcomes; or one entry. */
export function LedgerPage() {
  const given = useSearch({ from: "/ledger", shouldThrow: false });
  const { entry } = searchOfPage(given);
  const automations = useQuery({ queryKey: ["automations"], queryFn: allAutomations });
  const texts = useLedgerTexts();
  useTitle(texts.title);
  const known = automations.data ?? null;
  return (
    <div className="space-y-4">
      {entry === undefined ? (
        <div className="flex flex-wrap items-center gap-3">
          <h1 className="mr-auto text-xl font-semibold">{texts.title}</h1>
          <Filters automations={known ?? []} />
        </div>
      ) : (
        <BackLink to="/ledger" name={texts.title} />
      )}
      <ErrorText error={automations.error} />
      {entry === undefined ? <Entries automations={known} /> : <OneEntry key={entry} id={entry} automations={known} />}
    </div>
  );
}

async function allAutomations(): Promise<readonly Automation[]> {
  const found: Automation[] = [];
  let cursor: string | undefined;
  do {
    const page = await client.automation.list({ limit: 100, cursor });
    found.push(...page.automations);
    cursor = page.nextCursor ?? undefined;
  } while (cursor !== undefined);
  return found;
}

function Filters({ automations }: { automations: readonly Automation[] }) {
  const given = useSearch({ from: "/ledger", shouldThrow: false });
  const search = searchOfPage(given);
  const navigate = useNavigate();
  const texts = useLedgerTexts();
  const show = (changes: typeof search): void => {
    // Undefined values are removed from the address.
    void navigate({ to: "/ledger", search: { ...search, ...changes }, replace: true });
  };
  return (
    <div className="grid w-full grid-cols-2 gap-3 sm:flex sm:w-auto">
      <Select
        label={texts.automation}
        value={search.automation}
        all={texts.allAutomations}
        options={automations.map(({ id, name }) => ({ value: id, name }))}
        onChange={(automation) => show({ automation })}
      />
      <Select
        label={texts.outcome}
        value={search.outcome}
        all={texts.allOutcomes}
        options={ledgerOutcomes.map((value) => ({ value, name: texts.outcomes[value] }))}
        onChange={(outcome) => show({ outcome })}
      />
    </div>
  );
}

function Entries({ automations }: { automations: KnownAutomations }) {
  const given = useSearch({ from: "/ledger", shouldThrow: false });
  const { automation, outcome } = searchOfPage(given);
  const texts = useLedgerTexts();
  const isFiltered = automation !== undefined || outcome !== undefined;
  return (
    <PagedList
      label={texts.list}
      queryKey={["ledger", automation ?? "", outcome ?? ""]}
      readPage={(cursor) =>
        client.ledger.list({
          limit: 30,
          cursor,
          ...(automation !== undefined && { automationId: automation }),
          ...(outcome !== undefined && { outcome }),
        })
      }
      itemsOf={(page) => page.entries}
      refreshMs={3_000}
      empty={isFiltered ? texts.nothingMatches : texts.empty}
    >
      {(entry) => (
        <li key={entry.id} className="px-4 py-3">
          <Entry entry={entry} automations={automations} />
        </li>
      )}
    </PagedList>
  );
}

/** One entry with its job. */
function OneEntry({ id, automations }: { id: string; automations: KnownAutomations }) {
  const { facts: texts, loading, jobStatuses } = useLedgerTexts();
  const found = useQuery({
    queryKey: ["ledger", "entry", id],
    queryFn: () => client.ledger.get(id),
    refetchInterval: ({ state }) => (state.data?.outcome === null ? 1_000 : false),
  });
  const entry = found.data;
  // A duplicate has no job.
  const job = useQuery({
    queryKey: ["job", id, entry?.updatedAt],
    queryFn: () => client.job.get(id),
    enabled: entry !== undefined && entry.outcome !== "duplicate",
    placeholderData: (before) => before,
  });
  return (
    <>
      <ErrorText error={found.error} />
      {entry === undefined && found.error === null && <p className="text-muted">{loading}</p>}
      {entry !== undefined && (
        <div className="space-y-3">
          <Entry entry={entry} automations={automations} isAlone />
          <dl className="card space-y-1 p-4 text-sm">
            <Fact name={texts.accepted}>{formatTime(entry.createdAt)}</Fact>
            {entry.outcome !== null && <Fact name={texts.ended}>{formatTime(entry.updatedAt)}</Fact>}
            {job.data === undefined ? (
              <Fact name={texts.entry}>{id}</Fact>
            ) : (
              <>
                <Fact name={texts.job}>{id}</Fact>
                <Fact name={texts.status}>{jobStatuses[job.data.status]}</Fact>
                <Fact name={texts.priority}>{job.data.priority}</Fact>
              </>
            )}
          </dl>
        </div>
      )}
    </>
  );
}
