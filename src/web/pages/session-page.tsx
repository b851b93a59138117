import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { Tabs } from "radix-ui";
import { lazy, Suspense, useCallback, type ReactNode } from "react";
import type { SessionDetail } from "../../domain/session.ts";
import { isFinal } from "../../domain/status.ts";
import { Fact } from "../fact.tsx";
import { Absent, ErrorText } from "../layout.tsx";
import { client } from "../query.ts";
import { FollowUp } from "../session/follow-up.tsx";
import { formatDollars, RaiseBudget } from "../session/raise-budget.tsx";
import { Markdown } from "../session/markdown.tsx";
import { RepositoriesContext } from "../session/refused-host.tsx";
import { Steps } from "../session/steps.tsx";
import { Timeline } from "../session/timeline.tsx";
import type { Tokens } from "../session/session-view.ts";
import { useSessionView } from "../session/use-session-view.ts";
import { StatusBadge } from "../status-badge.tsx";
import { Ago, formatDuration } from "../time.tsx";
import { useTitle } from "../use-title.ts";

const Diff = lazy(() => import("../session/diff.tsx").then(({ Diff: component }) => ({ default: component })));

export function SessionPage({ id }: { id: string }) {
  const session = useQuery({
    queryKey: ["session", id],
    queryFn: () => client.session.get(id),
    // The place in the queue moves without an event of this session.
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
  const { view, connected, error } = useSessionView(id, !isFinal(status), onNews);
  // The first of what happened is no longer there, or all of it.
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
          {session.failure.mend} <code className="text-xs">({session.failure.code})</code>
        </Banner>
      )}
      {session.waiting !== null && <RaiseBudget session={session} />}
      <ErrorText error={error} />
      {(view.seq > 0 || !isShortened) && <Steps steps={view.steps} />}
      <TokenCount tokens={view.tokens} />
      <Tabs.Root defaultValue="conversation" className="space-y-3">
        <Tabs.List aria-label="Session" className="flex gap-1 border-b border-line">
          <Tab value="conversation">Conversation</Tab>
          <Tab value="changes">Changes</Tab>
        </Tabs.List>
        <Tabs.Content value="conversation" className="space-y-4">
          <RepositoriesContext value={session.repositories}>
            <Timeline view={view} running={status === "running"} removed={isShortened} />
            {isShortened && view.items.length === 0 && session.summary !== null && <Markdown text={session.summary} />}
          </RepositoriesContext>
          <output className="block text-sm text-warn empty:hidden">
            {connected || error !== null ? "" : "Connection lost: reconnecting …"}
          </output>
          {status !== "draft" && <FollowUp id={id} onSent={onNews} />}
        </Tabs.Content>
        <Tabs.Content value="changes">
          <Changes id={id} />
        </Tabs.Content>
      </Tabs.Root>
    </div>
  );
}

function Head({ session }: { session: SessionDetail }) {
  return (
    <div className="space-y-3">
      <div className="flex flex-wrap items-start gap-x-3 gap-y-2">
        <h1 className="min-w-0 flex-1 basis-64 text-xl font-semibold break-words">{session.title}</h1>
        <StatusBadge status={session.status} />
      </div>
      <dl className="flex flex-wrap gap-x-5 gap-y-1 text-sm">
        {session.repositories.map((repository) => (
          <Fact key={repository.id} name="Repository">
            {repository.name}
          </Fact>
        ))}
        <Fact name="Branch">{session.branchName}</Fact>
        {session.targetBranch !== null && <Fact name="Into">{session.targetBranch}</Fact>}
        {session.agent !== null && <Fact name="Agent">{session.agent}</Fact>}
        <Fact name="Created">
          <Ago at={session.createdAt} />
        </Fact>
        {session.queuePosition !== null && <Fact name="Queue">{ahead(session)}</Fact>}
      </dl>
      <div className="flex flex-wrap items-center gap-2">
        {session.pullRequests.map(({ url, number, state }) => (
          <a key={url} href={url} target="_blank" rel="noreferrer noopener" className="button button-primary">
            Pull request #{number}
            <span className="sr-only"> ({state}, opens in a new tab)</span>
            <span aria-hidden>↗</span>
          </a>
        ))}
        <Actions session={session} />
      </div>
    </div>
  );
}

function ahead({ queuePosition, estimatedWaitSeconds }: SessionDetail): string {
  const place =
    queuePosition === 0 ? "next" : queuePosition === 1 ? "1 session ahead" : `${queuePosition} sessions ahead`;
  return estimatedWaitSeconds === null ? place : `${place}, about ${formatDuration(estimatedWaitSeconds * 1_000)}`;
}

function Actions({ session: { id, status } }: { session: SessionDetail }) {
  const queries = useQueryClient();
  const change = useMutation({
    mutationFn: (verb: "cancel" | "queue") => client.session[verb](id),
    onSuccess: (session) => queries.setQueryData(["session", id], session),
  });
  const verb = status === "failed" || status === "cancelled" ? "Retry" : status === "draft" ? "Queue" : null;
  return (
    <>
      {verb !== null && (
        <button type="button" className="button" disabled={change.isPending} onClick={() => change.mutate("queue")}>
          {verb}
        </button>
      )}
      {!isFinal(status) && (
        <button type="button" className="button" disabled={change.isPending} onClick={() => change.mutate("cancel")}>
          {change.isPending && change.variables === "cancel" ? "Cancelling …" : "Cancel"}
        </button>
      )}
      <ErrorText error={change.error} />
    </>
  );
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
      className="-mb-px cursor-pointer border-b-2 border-transparent px-3 py-2 text-sm font-medium text-muted data-[state=active]:border-accent data-[state=active]:text-ink"
    >
      {children}
    </Tabs.Trigger>
  );
}

const number = new Intl.NumberFormat("en");

/** What the session's models used, as their makers count it. */
function TokenCount({ tokens }: { tokens: Tokens }) {
  if (tokens.input + tokens.cached + tokens.output === 0) return null;
  return (
    <p className="text-xs text-muted tabular-nums">
      Tokens: {number.format(tokens.input)} in, {number.format(tokens.cached)} from cache,{" "}
      {number.format(tokens.output)} out
      {tokens.costUsd > 0 && ` · about ${formatDollars(tokens.costUsd)}`}
    </p>
  );
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
