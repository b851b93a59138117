import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import type { Job, JobStatus } from "../../domain/automations/job.ts";
import type { SessionDetail } from "../../domain/sessions/session.ts";
import { Badge, type Tone } from "../elements/badge.tsx";
import { ConfirmButton } from "../elements/dialog.tsx";
import { PagedList } from "../elements/paged-list.tsx";
import { SessionRow } from "../elements/sessions/session-row.tsx";
import { StatusBadge } from "../elements/sessions/status-badge.tsx";
import { Ago } from "../elements/time.tsx";
import { ErrorText } from "../elements/notice.tsx";
import { client, useMay } from "../query.ts";
import { useAutomationTexts } from "../texts/automations.ts";

const refreshMs = 3_000;

/** The runs (jobs) of an automation, the newest first: the session of each, or why there is none. */
export function Runs({ automationId }: { automationId: string }) {
  const texts = useAutomationTexts().runs;
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
          {texts.title}
        </h2>
        <Link to="/ledger" search={{ automation: automationId }} className="text-sm text-accent underline">
          {texts.all}
        </Link>
      </div>
      <PagedList
        label={texts.title}
        queryKey={["runs", automationId]}
        readPage={(cursor) => client.automation.runs(automationId, { limit: 20, cursor })}
        itemsOf={(page) => page.runs}
        refreshMs={refreshMs}
        empty={texts.none}
      >
        {(job) => <Run key={job.id} job={job} session={known.get(job.sessionId ?? "")} />}
      </PagedList>
    </section>
  );
}

const tones: Record<JobStatus, Tone> = {
  pending: "warn",
  running: "accent",
  completed: "good",
  failed: "bad",
  cancelled: "muted",
};

function Run({ job, session }: { job: Job; session: SessionDetail | undefined }) {
  const texts = useAutomationTexts().runs;
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
            {error === null ? texts.onItsWay : texts.noSession}
          </Link>
        ) : (
          <Link to="/sessions/$id" params={{ id: sessionId }} className="font-medium after:absolute after:inset-0">
            {texts.session}
          </Link>
        )}
        {error !== null && <p className="text-sm break-words text-muted first-letter:uppercase">{error}</p>}
        <p className="text-sm text-muted">
          <Ago at={createdAt} />
        </p>
      </div>
      <Badge tone={tones[status]} label={texts.statuses[status]} moving={status === "running"} />
    </li>
  );
}

/** A run with a session for each repository: its state as a whole, and all of them. */
function FannedOutRun({ job: { id, sessions, status, runStatus, createdAt } }: { readonly job: Job }) {
  const texts = useAutomationTexts().runs;
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
          <span className="font-medium">{texts.sessions(sessions.length)}</span>{" "}
          <span className="text-sm text-muted">
            <Ago at={createdAt} />
          </span>
        </p>
        {goesOn && may && (
          <ConfirmButton
            button={texts.cancel}
            disabled={cancel.isPending}
            question={texts.cancelQuestion}
            onConfirm={() => cancel.mutate()}
          >
            {texts.cancelAbout}
          </ConfirmButton>
        )}
        {shown === "pending" ? (
          <Badge tone={tones.pending} label={texts.statuses.pending} />
        ) : (
          <StatusBadge status={shown} />
        )}
      </div>
      <ErrorText error={cancel.error} />
      <ul aria-label={texts.list} className="divide-y divide-line border-l border-line pl-3">
        {sessions.map((session) => (
          <li key={session.id} className="flex items-center gap-x-3 py-2 text-sm">
            <Link
              to="/sessions/$id"
              params={{ id: session.id }}
              className="min-w-0 flex-1 break-words text-accent underline"
            >
              {session.repositories.map(({ name }) => name).join(", ") || texts.session}
            </Link>
            <StatusBadge status={session.status} />
          </li>
        ))}
      </ul>
    </li>
  );
}
