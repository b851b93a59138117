import { useInfiniteQuery, useQuery } from "@tanstack/react-query";
import { Link, useNavigate, useSearch } from "@tanstack/react-router";
import { useEffect, useId, type ReactNode } from "react";
import type { Automation } from "../../domain/automation.ts";
import { ledgerOutcomes } from "../../domain/ledger.ts";
import { Fact } from "../fact.tsx";
import { ErrorText } from "../layout.tsx";
import { Entry, type KnownAutomations } from "../ledger/entry.tsx";
import { client } from "../query.ts";
import { ShowMore } from "../show-more.tsx";

/** Every trigger that was accepted, the newest first, and how it ended; or one of them. */
export function LedgerPage() {
  const { entry } = useSearch({ from: "/ledger" });
  const automations = useQuery({ queryKey: ["automations"], queryFn: allAutomations });
  useEffect(() => {
    document.title = "Ledger · Offstage";
  }, []);
  const known = automations.data ?? null;
  return (
    <div className="space-y-4">
      <div className="flex flex-wrap items-center gap-3">
        <h1 className="mr-auto text-xl font-semibold">Ledger</h1>
        {entry === undefined && <Filters automations={known ?? []} />}
        {entry !== undefined && (
          <Link to="/ledger" className="button">
            Show all
          </Link>
        )}
      </div>
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
  const search = useSearch({ from: "/ledger" });
  const navigate = useNavigate();
  const show = (changes: typeof search): void => {
    // What is undefined leaves the address.
    void navigate({ to: "/ledger", search: { ...search, ...changes }, replace: true });
  };
  return (
    <div className="grid w-full grid-cols-2 gap-3 sm:flex sm:w-auto">
      <Select
        label="Automation"
        value={search.automation ?? ""}
        onChange={(value) => show({ automation: value === "" ? undefined : value })}
      >
        <option value="">all automations</option>
        {automations.map(({ id, name }) => (
          <option key={id} value={id}>
            {name}
          </option>
        ))}
      </Select>
      <Select
        label="Outcome"
        value={search.outcome ?? ""}
        onChange={(value) => show({ outcome: ledgerOutcomes.find((known) => known === value) })}
      >
        <option value="">all outcomes</option>
        {ledgerOutcomes.map((known) => (
          <option key={known}>{known}</option>
        ))}
      </Select>
    </div>
  );
}

function Select({
  label,
  value,
  onChange,
  children,
}: {
  label: string;
  value: string;
  onChange: (value: string) => void;
  children: ReactNode;
}) {
  const id = useId();
  return (
    <div className="min-w-0">
      <label htmlFor={id} className="sr-only">
        {label}
      </label>
      <select id={id} className="field sm:max-w-56" value={value} onChange={(event) => onChange(event.target.value)}>
        {children}
      </select>
    </div>
  );
}

function Entries({ automations }: { automations: KnownAutomations }) {
  const { automation, outcome } = useSearch({ from: "/ledger" });
  const isFiltered = automation !== undefined || outcome !== undefined;
  const entries = useInfiniteQuery({
    queryKey: ["ledger", automation ?? "", outcome ?? ""],
    queryFn: ({ pageParam }) =>
      client.ledger.list({
        limit: 30,
        cursor: pageParam,
        ...(automation !== undefined && { automationId: automation }),
        ...(outcome !== undefined && { outcome }),
      }),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: (page) => page.nextCursor ?? undefined,
    refetchInterval: 3_000,
  });
  const found = entries.data?.pages.flatMap((page) => page.entries);
  return (
    <>
      <ErrorText error={entries.error} />
      {found === undefined && entries.error === null && <p className="text-muted">Loading the ledger …</p>}
      {found?.length === 0 && (
        <div className="card px-4 py-12 text-center text-muted">
          {isFiltered
            ? "There is nothing of this kind."
            : "No triggers yet. Every one that an automation accepts stands here, with how it ended."}
        </div>
      )}
      {found !== undefined && found.length > 0 && (
        <ul aria-label="Entries" className="card divide-y divide-line">
          {found.map((entry) => (
            <li key={entry.id} className="px-4 py-3 text-sm">
              <Entry entry={entry} automations={automations} />
            </li>
          ))}
        </ul>
      )}
      <ShowMore list={entries} />
    </>
  );
}

/** One entry with its job. */
function OneEntry({ id, automations }: { id: string; automations: KnownAutomations }) {
  const found = useQuery({
    queryKey: ["ledger", "entry", id],
    queryFn: () => client.ledger.get(id),
    refetchInterval: ({ state }) => (state.data?.outcome === null ? 1_000 : false),
  });
  const entry = found.data;
  // A duplicate has none.
  const job = useQuery({
    queryKey: ["job", id, entry?.updatedAt],
    queryFn: () => client.job.get(id),
    enabled: entry !== undefined && entry.outcome !== "duplicate",
    placeholderData: (before) => before,
  });
  return (
    <>
      <ErrorText error={found.error} />
      {entry === undefined && found.error === null && <p className="text-muted">Loading the entry …</p>}
      {entry !== undefined && (
        <div className="card space-y-3 p-4 text-sm">
          <Entry entry={entry} automations={automations} isAlone />
          <dl className="space-y-1 border-t border-line pt-3">
            <Fact name="Accepted">{new Date(entry.createdAt).toLocaleString()}</Fact>
            {entry.outcome !== null && <Fact name="Ended">{new Date(entry.updatedAt).toLocaleString()}</Fact>}
            {job.data === undefined ? (
              <Fact name="Entry">{id}</Fact>
            ) : (
              <>
                <Fact name="Job">{id}</Fact>
                <Fact name="Its status">{job.data.status}</Fact>
                <Fact name="Priority">{job.data.priority}</Fact>
              </>
            )}
          </dl>
        </div>
      )}
    </>
  );
}
