import { useQuery, useQueryClient } from "@tanstack/react-query";
import { Link, useNavigate, useSearch } from "@tanstack/react-router";
import { Tabs } from "radix-ui";
import { lazy, Suspense, useCallback, type ReactNode } from "react";
import type { SessionDetail } from "../../domain/sessions/session.ts";
import { isFinal } from "../../domain/sessions/status.ts";
import { CopyButton } from "../elements/copy-button.tsx";
import { formatDollars } from "../elements/dollars.ts";
import { Fact } from "../elements/fact.tsx";
import { BackLink, PageTitle } from "../elements/page-head.tsx";
import { RepositoryName } from "../elements/repository-name.tsx";
import { StatusBadge } from "../elements/status-badge.tsx";
import { Ago, formatDuration, Until } from "../elements/time.tsx";
import { useTitle } from "../elements/use-title.ts";
import { Absent, ErrorText } from "../layout.tsx";
import { client, useMay } from "../query.ts";
import { SessionActions } from "../session/actions.tsx";
import { Answers } from "../session/answers.tsx";
import { FollowUp } from "../session/follow-up.tsx";
import { Markdown } from "../session/markdown.tsx";
import { RaiseBudget } from "../session/raise-budget.tsx";
import { RepositoriesContext } from "../session/refused-host.tsx";
import type { Tokens } from "../session/session-view.ts";
import { Steps } from "../session/steps.tsx";
import { Timeline } from "../session/timeline.tsx";
import { useSessionView, type LiveSession } from "../session/use-session-view.ts";
import { useTail } from "../session/use-tail.ts";

const Diff = lazy(() => import("../session/diff.tsx").then(({ Diff: component }) => ({ default: component })));

/** One session: its conversation, steps, changes and pull requests. */
export function SessionPage({ id }: { id: string }) {
  const session = useQuery({
    queryKey: ["session", id],
    queryFn: () => client.session.get(id),
    // A session's place in the queue changes without an event of the session.
    refetchInterval: ({ state }) => (state.data?.status === "queued" ? 3_000 : false),
  });
  useTitle(session.data?.title ?? "Session");
  if (session.data !== undefined) return <Session session={session.data} />;
  return (
    <Absent
      noun="session"
      error={session.error}
      reason="Its address is wrong, or it belongs to another organization."
      retry={session.refetch}
    />
  );
}

function Session({ session }: { session: SessionDetail }) {
  const { id, status } = session;
  const queries = useQueryClient();
  const onNews = useCallback(() => {
    void queries.invalidateQueries({ queryKey: ["session", id] });
    void queries.invalidateQueries({ queryKey: ["diff", id] });
  }, [queries, id]);
  const live = useSessionView(id, !isFinal(status), onNews);
  const { view, error } = live;
  const { tab = "conversation" } = useSearch({ from: "/sessions/$id" });
  const navigate = useNavigate();
  const show = (chosen: string): void => {
    const search = chosen === "changes" || chosen === "answers" ? ({ tab: chosen } as const) : {};
    void navigate({ to: "/sessions/$id", params: { id }, search, replace: true, resetScroll: false });
  };
  // The first events, or all, were deleted because of their age or size.
  const isShortened = session.eventsRemovedThrough > 0;
  return (
    <div className="space-y-4">
      <Head session={session} />
      {!session.sandboxed && (
        <Banner tone="warn" title="Not sandboxed">
          This server runs agents with <code>--sandbox none</code>: what this agent runs can reach everything that the
          server can.
        </Banner>
      )}
      {session.failure !== null && (
        <Banner tone="bad" title={session.failure.reason}>
          {session.failure.remedy} <code className="text-xs">({session.failure.code})</code>
        </Banner>
      )}
      {session.retry !== null && (
        <Banner tone="warn" title={session.retry.reason}>
          This passes by itself: the session is tried again <Until at={session.retry.at} />
          {session.retry.attempt > 1 && `, after ${session.retry.attempt} attempts that failed for this reason`}.{" "}
          <code className="text-xs">({session.retry.code})</code>
        </Banner>
      )}
      {session.waiting !== null && <RaiseBudget session={session} />}
      <ErrorText error={error} />
      {status !== "draft" && (view.seq > 0 || !isShortened) && (
        <Steps steps={view.steps} completed={status === "completed"} />
      )}
      <Usage session={session} tokens={view.tokens} />
      <Tabs.Root value={tab} onValueChange={show} className="space-y-4">
        <Tabs.List aria-label="Session" className="flex gap-1 border-b border-line">
          <Tab value="conversation">Conversation</Tab>
          <Tab value="changes">Changes</Tab>
          <Tab value="answers">Answers</Tab>
        </Tabs.List>
        <Tabs.Content value="conversation">
          <Conversation session={session} live={live} onSent={onNews} />
        </Tabs.Content>
        <Tabs.Content value="changes">
          <Changes id={id} />
        </Tabs.Content>
        <Tabs.Content value="answers">
          <Answers id={id} />
        </Tabs.Content>
      </Tabs.Root>
    </div>
  );
}

/** The conversation; while the session is active, its end stays in sight. */
function Conversation({
  session,
  live: { view, connected, error },
  onSent,
}: {
  session: SessionDetail;
  live: LiveSession;
  onSent: () => void;
}) {
  const { id, status, summary, repositories, automationId, eventsRemovedThrough } = session;
  const isActive = !isFinal(status) && status !== "draft";
  const { content, following, follow } = useTail(isActive);
  const maySteer = useMay("write");
  const isShortened = eventsRemovedThrough > 0;
  return (
    <div ref={content} className="space-y-4">
      <RepositoriesContext value={repositories}>
        <Timeline view={view} running={status === "running"} removed={isShortened} automated={automationId !== null} />
        {isShortened && view.items.length === 0 && summary !== null && <Markdown text={summary} />}
      </RepositoriesContext>
      {status !== "draft" && maySteer && <FollowUp id={id} onSent={onSent} />}
      {/* In sight wherever the page is scrolled to. */}
      <div className="pointer-events-none fixed inset-x-0 bottom-4 flex flex-col items-center gap-2 px-4">
        <output className="rounded-md bg-warn-soft px-3 py-1.5 text-sm text-warn shadow-lg empty:hidden">
          {connected || error !== null ? "" : "Connection lost: reconnecting …"}
        </output>
        {isActive && !following && (
          <button type="button" className="button pointer-events-auto shadow-lg" onClick={follow}>
            Go to the latest <span aria-hidden>↓</span>
          </button>
        )}
      </div>
    </div>
  );
}

function Head({ session }: { session: SessionDetail }) {
  return (
    <div className="space-y-3">
      <BackLink to="/" name="Sessions" />
      <PageTitle title={session.title}>
        <StatusBadge status={session.status} />
      </PageTitle>
      <dl className="flex flex-wrap gap-x-5 gap-y-1 text-sm">
        {session.repositories.map((repository) => (
          <Fact key={repository.id} name="Repository">
            <RepositoryName repository={repository} />
          </Fact>
        ))}
        <Fact name="Branch">
          {session.branchName}{" "}
          <CopyButton
            text={session.branchName}
            what="the branch"
            className="cursor-pointer text-xs text-muted hover:text-ink"
          />
        </Fact>
        {session.targetBranch !== null && <Fact name="Into">{session.targetBranch}</Fact>}
        {session.pullRequestsTogether && <Fact name="Pull requests">together, or none</Fact>}
        {session.agent !== null && <Fact name="Agent">{session.agent}</Fact>}
        {session.requestedBy !== null && <Fact name="Asked by">{session.requestedBy.name}</Fact>}
        {session.automationId !== null && (
          <Fact name="Started by">
            <Link to="/automations/$id" params={{ id: session.automationId }} className="underline">
              an automation
            </Link>
          </Fact>
        )}
        <Fact name="Created">
          <Ago at={session.createdAt} />
        </Fact>
        {session.startedAt !== null && session.finishedAt !== null && (
          <Fact name="Took">{formatDuration(Date.parse(session.finishedAt) - Date.parse(session.startedAt))}</Fact>
        )}
        {session.queuePosition !== null && <Fact name="Queue">{ahead(session)}</Fact>}
      </dl>
      <div className="flex flex-wrap items-center gap-2">
        {session.pullRequests.map(({ url, number, state, mergeable, repositoryId }) => (
          <a key={url} href={url} target="_blank" rel="noreferrer noopener" className="button button-primary">
            <span>
              Pull request #{number}
              {/* Each repository has numbers of its own. */}
              {session.pullRequests.length > 1 &&
                ` of ${session.repositories.find((repository) => repository.id === repositoryId)?.name ?? "another"}`}
              {state !== "open" && `, ${state}`}
              {state === "open" && mergeable === false && ", in conflict"}
              <span className="sr-only"> (opens in a new tab)</span>
            </span>
            <span aria-hidden>↗</span>
          </a>
        ))}
        {/* A key of its own: a run that begins again is not being cancelled. */}
        <SessionActions key={String(isFinal(session.status))} session={session} />
      </div>
    </div>
  );
}

function ahead({ queuePosition, estimatedWaitSeconds }: SessionDetail): string {
  const place =
    queuePosition === 0 ? "next" : queuePosition === 1 ? "1 session ahead" : `${queuePosition} sessions ahead`;
  if (estimatedWaitSeconds === null) return place;
  const minutes = Math.round(estimatedWaitSeconds / 60);
  return `${place}, ${minutes === 0 ? "less than a minute" : `about ${minutes} min`}`;
}

function Banner({ tone, title, children }: { tone: "warn" | "bad"; title: string; children: ReactNode }) {
  const className = tone === "warn" ? "bg-warn-soft text-warn" : "bg-bad-soft text-bad";
  return (
    <div role={tone === "bad" ? "alert" : "note"} className={`rounded-lg px-4 py-3 text-sm break-words ${className}`}>
      <p className="font-medium">{title}</p>
      <p>{children}</p>
    </div>
  );
}

function Tab({ value, children }: { value: string; children: ReactNode }) {
  return (
    <Tabs.Trigger
      value={value}
      className="-mb-px cursor-pointer border-b-2 border-transparent px-3 py-2 text-sm font-medium text-muted -outline-offset-2 hover:text-ink data-[state=active]:border-accent data-[state=active]:text-ink"
    >
      {children}
    </Tabs.Trigger>
  );
}

const number = new Intl.NumberFormat("en");

/** Tokens as the providers count them, and their cost. */
function Usage({ session, tokens }: { session: SessionDetail; tokens: Tokens }) {
  // Events are ahead of the session while it runs, and may be deleted later.
  const costUsd = Math.max(session.spentUsd, tokens.costUsd);
  const parts = [
    ...(tokens.input + tokens.cached + tokens.output === 0
      ? []
      : [
          `Tokens: ${number.format(tokens.input)} in, ${number.format(tokens.cached)} from cache, ${number.format(tokens.output)} out`,
        ]),
    ...(costUsd === 0 ? [] : [`about ${formatDollars(costUsd)}${ofBudget(session)}`]),
  ];
  if (parts.length === 0) return null;
  return <p className="text-xs text-muted tabular-nums">{parts.join(" · ")}</p>;
}

function ofBudget({ budgetUsd }: SessionDetail): string {
  return budgetUsd === null ? "" : ` of ${formatDollars(budgetUsd)}`;
}

function Changes({ id }: { id: string }) {
  const diff = useQuery({ queryKey: ["diff", id], queryFn: () => client.session.diff(id) });
  if (diff.error !== null) return <ErrorText error={diff.error} />;
  const changed = diff.data?.repositories.filter(({ patch }) => patch !== "");
  if (changed === undefined) return <p className="text-muted">Loading the changes …</p>;
  if (changed.length === 0)
    return (
      <p className="py-8 text-center text-muted">
        No changes so far. They show here once the agent’s work is committed.
      </p>
    );
  return (
    <Suspense fallback={<p className="text-muted">Loading the changes …</p>}>
      <div className="space-y-6">
        {changed.map((repository) => (
          <Diff key={repository.repositoryId ?? repository.name} repository={repository} />
        ))}
      </div>
    </Suspense>
  );
}
