import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import type { Job, JobStatus } from "../../domain/automations/job.ts";
import type { SessionDetail } from "../../domain/sessions/session.ts";
import { Badge, type Tone } from "../elements/badge.tsx";
import { ConfirmButton } from "../elements/dialog.tsx";
import { PagedList } from "../elements/paged-list.tsx";
import { SessionRow } from "../elements/session-row.tsx";
import { StatusBadge } from "../elements/status-badge.tsx";
import { Ago } from "../elements/time.tsx";
import { ErrorText } from "../elements/notice.tsx";
import { client, useMay } from "../query.ts";

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
  if (job.sessions.length > 1) return <FannedOutRun job={job} />;
  // A run that its gate filtered says why, not that its session is completed.
  if (session !== undefined && job.status !== "cancelled") {
    return (
      <li>
        <SessionRow session={session} />
      </li>
    );
  }
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

/** A run with a session for each repository: its state as a whole, and all of them. */
function FannedOutRun({ job: { id, sessions, status, runStatus, createdAt } }: { readonly job: Job }) {
  const queries = useQueryClient();
  const cancel = useMutation({
    mutationFn: () => client.job.cancel(id),
    onSuccess: () => queries.invalidateQueries({ queryKey: ["runs"] }),
  });
  const may = useMay("write");
  const shown = runStatus ?? status;
  const goesOn = shown === "pending" || shown === "running" || shown === "waiting";
  return (
    <li className="space-y-2 px-4 py-3">
      <div className="flex flex-wrap items-center gap-x-3 gap-y-2">
        <p className="min-w-0 flex-1">
          <span className="font-medium">{sessions.length} sessions</span>{" "}
          <span className="text-sm text-muted">
            <Ago at={createdAt} />
          </span>
        </p>
        {goesOn && may && (
          <ConfirmButton
            button="Cancel all"
            disabled={cancel.isPending}
            question="Cancel the run?"
            onConfirm={() => cancel.mutate()}
          >
            Each of its sessions that has not ended is cancelled.
          </ConfirmButton>
        )}
        {shown === "pending" ? <Badge {...looks.pending} /> : <StatusBadge status={shown} />}
      </div>
      <ErrorText error={cancel.error} />
      <ul aria-label="Sessions of the run" className="divide-y divide-line border-l border-line pl-3">
        {sessions.map((session) => (
          <li key={session.id} className="flex items-center gap-x-3 py-2 text-sm">
            <Link
              to="/sessions/$id"
              params={{ id: session.id }}
              className="min-w-0 flex-1 break-words text-accent underline"
            >
              {session.repositories.map(({ name }) => name).join(", ") || "Session"}
            </Link>
            <StatusBadge status={session.status} />
          </li>
        ))}
      </ul>
    </li>
  );
}
