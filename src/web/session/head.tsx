import { Link } from "@tanstack/react-router";
import type { ReactNode } from "react";
import type { SessionDetail } from "../../domain/sessions/session.ts";
import { isFinal } from "../../domain/sessions/status.ts";
import { CopyButton } from "../elements/copy-button.tsx";
import { Icon, type IconName } from "../elements/icon.tsx";
import { RepositoryName } from "../elements/repository-name.tsx";
import { StatusBadge } from "../elements/sessions/status-badge.tsx";
import { Ago } from "../elements/time.tsx";
import { isShared } from "../query.ts";
import { useElementTexts } from "../texts/elements.ts";
import { formatDollars, formatDuration } from "../texts/formats.ts";
import { useSessionTexts } from "../texts/session.ts";
import { SessionActions } from "./actions.tsx";
import { Labels } from "./labels.tsx";
import { MoreActions } from "./more-actions.tsx";
import { PullRequests } from "./pull-requests.tsx";
import { Steps } from "./steps.tsx";
import type { SessionView } from "./view/view.ts";

/** The way back, and a session's title and state. */
export function TitleLine({ session, children }: { session: SessionDetail; children?: ReactNode }) {
  const texts = useSessionTexts();
  return (
    <div className="flex flex-wrap items-start gap-x-3 gap-y-2 px-3 pt-2.5 md:px-4">
      {!isShared && (
        <Link to="/" className="button button-quiet min-h-7 px-1" aria-label={texts.all}>
          <Icon name="chevron" className="size-4 rotate-180" />
        </Link>
      )}
      <h1
        className="min-w-0 flex-1 pt-0.5 text-base font-semibold wrap-anywhere max-md:line-clamp-2"
        title={session.title}
      >
        <bdi>{session.title}</bdi>
      </h1>
      <span className="flex min-h-7 items-center">
        <StatusBadge status={session.status} />
      </span>
      {children}
    </div>
  );
}

/** The actions for a session. */
export function HeadActions({ session }: { session: SessionDetail }) {
  return (
    <div className="flex flex-wrap items-center gap-2">
      <PullRequests session={session} />
      {/* A key of its own: a run that begins again is not being cancelled. */}
      <SessionActions key={String(isFinal(session.status))} session={session} />
      <MoreActions session={session} />
    </div>
  );
}

/** Facts of a session, and the steps of its attempt. */
export function Details({ session, view }: { session: SessionDetail; view: SessionView }) {
  const { status, eventsRemovedThrough } = session;
  return (
    <div className="space-y-2 px-3 pt-2 pb-2.5 md:px-4">
      <Facts session={session} view={view} />
      {status !== "draft" && (view.seq > 0 || eventsRemovedThrough === 0) && (
        <Steps steps={view.steps} isCompleted={status === "completed"} />
      )}
    </div>
  );
}

function Facts({ session, view }: { session: SessionDetail; view: SessionView }) {
  const texts = useSessionTexts().facts;
  const { noRepository } = useElementTexts();
  const costUsd = Math.max(session.spentUsd, view.tokens.costUsd);
  return (
    <dl className="flex flex-wrap gap-x-4 gap-y-1 text-xs text-muted">
      <Fact icon="repositories" name={texts.repository}>
        {session.repositories.length === 0
          ? noRepository
          : session.repositories.map((repository, index) => (
              <span key={repository.id}>
                {index > 0 && ", "}
                <RepositoryName repository={repository} />
              </span>
            ))}
      </Fact>
      <Fact icon="branch" name={texts.branch}>
        <span className="font-mono">{session.branchName}</span>{" "}
        <CopyButton
          text={session.branchName}
          what={texts.copyBranch}
          className="cursor-pointer underline hover:text-ink"
        />
        {session.targetBranch !== null && (
          <>
            {" "}
            {texts.into} <span className="font-mono">{session.targetBranch}</span>
          </>
        )}
      </Fact>
      {session.agent !== null && (
        <Fact icon="agent" name={texts.agent}>
          {session.agent}
        </Fact>
      )}
      {session.requestedBy !== null && (
        <Fact icon="person" name={texts.askedBy}>
          <bdi>{session.requestedBy.name}</bdi>
        </Fact>
      )}
      {session.automationId !== null && (
        <Fact icon="automations" name={texts.startedBy}>
          <Link to="/automations/$id" params={{ id: session.automationId }} className="underline">
            {texts.anAutomation}
          </Link>
        </Fact>
      )}
      <Fact icon="clock" name={texts.created}>
        <Ago at={session.createdAt} />
        {session.startedAt !== null && session.finishedAt !== null && (
          <>
            {" · "}
            <span title={texts.took}>
              {formatDuration(Date.parse(session.finishedAt) - Date.parse(session.startedAt))}
            </span>
          </>
        )}
      </Fact>
      {session.queuePosition !== null && (
        <Fact icon="sessions" name={texts.queue}>
          {aheadOf(session, texts)}
        </Fact>
      )}
      {costUsd > 0 && (
        <Fact icon="money" name={texts.cost}>
          <span className="tabular-nums">
            {formatDollars(costUsd)}
            {session.budgetUsd !== null && ` / ${formatDollars(session.budgetUsd)}`}
          </span>
        </Fact>
      )}
      <Labels session={session} />
      {session.pullRequestsTogether && (
        <Fact icon="pull-request" name={texts.together}>
          {texts.together}
        </Fact>
      )}
    </dl>
  );
}

function Fact({ icon, name, children }: { icon: IconName; name: string; children: ReactNode }) {
  return (
    <div className="flex min-w-0 items-center gap-1.5" title={name}>
      <Icon name={icon} className="size-3.5" />
      <dt className="sr-only">{name}</dt>
      <dd className="min-w-0 wrap-anywhere">{children}</dd>
    </div>
  );
}

function aheadOf(
  { queuePosition, estimatedWaitSeconds }: SessionDetail,
  texts: ReturnType<typeof useSessionTexts>["facts"],
): string {
  const place = queuePosition === null || queuePosition === 0 ? texts.next : texts.ahead(queuePosition);
  if (estimatedWaitSeconds === null) return place;
  const minutes = Math.round(estimatedWaitSeconds / 60);
  return `${place}, ${minutes === 0 ? texts.soon : texts.about(minutes)}`;
}
