import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import type { Job, JobStatus } from "../../domain/automations/job.ts";
import type { SessionDetail } from "../../domain/sessions/session.ts";
import { Badge, type Tone } from "../elements/badge.tsx";
import { PagedList } from "../elements/paged-list.tsx";
import { SessionRow } from "../elements/session-row.tsx";
import { Ago } from "../elements/time.tsx";
import { client } from "../query.ts";

const refreshMs = 3_000;

/** The runs (jobs) of an automation, the newest first: the session of each, or why there is none. */
export function Runs({ automationId }: { automationId: string }) {
  // One request for all; sessions that it does not return are shown as links.
  const sessions = useQuery({
    queryKey: ["sessions", "of automation", automationId],
    queryFn: () => client.session.list({ automationId, limit: 30 }),
    refetchInterval: refreshMs,
  });
  const known = new Map(sessions.data?.sessions.map((session) => [session.id, session]));
  return (
    <section aria-labelledby="runs" className="space-y-3">
      <div className="flex flex-wrap items-center gap-3">
        <h2 id="runs" className="mr-auto font-medium">
          Runs
        </h2>
        <Link to="/ledger" search={{ automation: automationId }} className="text-sm text-accent underline">
          All in the ledger
        </Link>
      </div>
      <PagedList
        label="Runs"
        queryKey={["runs", automationId]}
        readPage={(cursor) => client.automation.runs(automationId, { limit: 20, cursor })}
        itemsOf={(page) => page.runs}
        refreshMs={refreshMs}
        empty="Nothing has triggered it yet."
      >
        {(job) => <Run key={job.id} job={job} session={known.get(job.sessionId ?? "")} />}
      </PagedList>
    </section>
  );
}

const looks: Record<JobStatus, { label: string; tone: Tone }> = {
  pending: { label: "Pending", tone: "warn" },
  running: { label: "Starting", tone: "accent" },
  completed: { label: "Started", tone: "good" },
  failed: { label: "Failed", tone: "bad" },
  cancelled: { label: "Cancelled", tone: "muted" },
};

function Run({ job, session }: { job: Job; session: SessionDetail | undefined }) {
  if (session !== undefined) return <SessionRow session={session} />;
  const { id, status, error, sessionId, createdAt } = job;
  return (
    <li className="relative flex items-center gap-x-3 px-4 py-3 hover:bg-sunken">
      <div className="min-w-0 flex-1">
        {sessionId === null ? (
          <Link to="/ledger" search={{ entry: id }} className="font-medium break-words after:absolute after:inset-0">
            {error === null ? "On its way" : "No session"}
          </Link>
        ) : (
          <Link to="/sessions/$id" params={{ id: sessionId }} className="font-medium after:absolute after:inset-0">
            Session
          </Link>
        )}
        {error !== null && <p className="text-sm break-words text-muted first-letter:uppercase">{error}</p>}
        <p className="text-sm text-muted">
          <Ago at={createdAt} />
        </p>
      </div>
      <Badge {...looks[status]} moving={status === "running"} />
    </li>
  );
}
