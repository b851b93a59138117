import { Link } from "@tanstack/react-router";
import { memo, useEffect, useRef, type ReactNode } from "react";
import type { PullRequest } from "../../../domain/repositories/pull-request.ts";
import type { SessionDetail } from "../../../domain/sessions/session.ts";
import { Icon } from "../icon.tsx";
import { PullRequestLink } from "./pull-request.tsx";
import { StatusBadge } from "./status-badge.tsx";
import { Ago, Until } from "../time.tsx";
import { UnreadDot } from "./unread-dot.tsx";
import { useElementTexts } from "../../texts/elements.ts";
import { formatDollars } from "../../texts/formats.ts";

/** Labels of a session that its row shows. */
const shownLabels = 2;

/** A session in a list: what it is, what it does now, and its outcome. */
export const SessionRow = memo(function SessionRow({
  session,
  isWanted = false,
  isSelected = false,
  onSelect = null,
}: {
  session: SessionDetail;
  /** Whether the focus is to come to it. */
  isWanted?: boolean;
  isSelected?: boolean;
  /** Null: nothing can be done with what is selected. */
  onSelect?: ((id: string) => void) | null;
}) {
  const { session: texts, noRepository } = useElementTexts();
  const {
    id,
    title,
    status,
    repositories,
    pullRequests,
    spentUsd,
    createdAt,
    requestedBy,
    automationId,
    labels,
    unread,
  } = session;
  const link = useRef<HTMLAnchorElement>(null);
  useEffect(() => {
    if (isWanted) link.current?.focus();
  }, [isWanted]);
  const [pullRequest] = pullRequests;
  return (
    <div
      data-session={id}
      className={`group relative flex min-h-11 items-center gap-x-3 px-3 py-1.5 text-sm hover:bg-hover ${isSelected ? "bg-accent-soft" : ""}`}
    >
      <span className="relative flex">
        {onSelect !== null && (
          <input
            type="checkbox"
            aria-label={texts.select(title)}
            className="peer absolute -inset-1 z-10 m-auto size-4 cursor-pointer opacity-0 group-hover:opacity-100 checked:opacity-100 focus-visible:opacity-100 max-md:hidden pointer-coarse:hidden"
            checked={isSelected}
            onChange={() => onSelect(id)}
          />
        )}
        {/* It makes room for the box that selects the session. */}
        <span
          className={`flex ${onSelect === null ? "" : "peer-checked:opacity-0 peer-focus-visible:opacity-0 md:pointer-fine:group-hover:opacity-0"}`}
        >
          <StatusBadge status={status} word={false} />
        </span>
      </span>
      <div className="min-w-0 flex-1">
        <Link
          ref={link}
          to="/sessions/$id"
          params={{ id }}
          className={`block after:absolute after:inset-0 max-md:line-clamp-2 max-md:break-words md:truncate ${unread ? "font-bold" : "font-medium"}`}
        >
          {unread && (
            <>
              <UnreadDot /> <span className="sr-only">{texts.unread}: </span>
            </>
          )}
          <bdi>{title}</bdi>
        </Link>
        <Now session={session} />
        <p className="truncate text-xs text-muted md:hidden">
          {repositories[0]?.name ?? noRepository} · <Ago at={createdAt} />
        </p>
      </div>
      {labels.length > 0 && (
        <span className="flex max-w-40 gap-1 overflow-hidden max-md:hidden">
          {labels.slice(0, shownLabels).map((label) => (
            <bdi key={label} className="tag">
              {label}
            </bdi>
          ))}
          {labels.length > shownLabels && <span className="tag">+{labels.length - shownLabels}</span>}
        </span>
      )}
      {pullRequest !== undefined && <PullRequestLink pullRequest={pullRequest} />}
      <span className="hidden w-40 truncate text-xs text-muted md:block">
        <bdi>{repositories[0]?.name ?? noRepository}</bdi>
        {repositories.length > 1 && ` ${texts.several(repositories.length - 1)}`}
      </span>
      <span className="hidden w-28 items-center gap-1 text-xs text-muted lg:flex">
        {automationId === null ? (
          <bdi className="truncate">{requestedBy?.name}</bdi>
        ) : (
          <>
            <Icon name="automations" className="size-3.5" />
            <span className="truncate">{texts.automation}</span>
          </>
        )}
      </span>
      <span className="hidden w-14 text-end text-xs text-muted tabular-nums lg:block">
        {spentUsd > 0 && formatDollars(spentUsd)}
      </span>
      <span className="hidden w-24 text-end text-xs text-muted md:block">
        <Ago at={createdAt} />
      </span>
    </div>
  );
});

/** A session's current activity, or why it needs a person; nothing if it has just ended. */
function Now({ session }: { session: SessionDetail }) {
  const { session: texts } = useElementTexts();
  const { status, failure, waiting, retry, activity, queuePosition, pullRequests } = session;
  if (status === "waiting") return <Line tone="text-warn">{waiting?.text}</Line>;
  if (status === "failed") return <Line tone="text-bad">{failure?.reason}</Line>;
  if (retry !== null) {
    return (
      <Line tone="text-warn">
        {texts.retry} <Until at={retry.at} />: <bdi>{retry.reason}</bdi>
      </Line>
    );
  }
  if (status === "queued" && queuePosition !== null)
    return <Line tone="text-muted">{texts.position(queuePosition)}</Line>;
  if (status === "running" && activity !== null) {
    return (
      <Line tone="font-mono text-muted">
        <bdi>{activity}</bdi>
      </Line>
    );
  }
  const why = pullRequests.map((pullRequest) => wantsOf(pullRequest, texts)).find((words) => words !== null);
  return why === undefined ? null : <Line tone="text-warn">{why}</Line>;
}

/** Why a pull request needs a person; null: it does not. */
function wantsOf(
  { state, number, mergeable, checks, review }: PullRequest,
  texts: ReturnType<typeof useElementTexts>["session"],
): string | null {
  if (state !== "open") return null;
  if (mergeable === false) return texts.conflict(number);
  if (checks === "failed") return texts.checks(number);
  return review === "changesRequested" ? texts.changes(number) : null;
}

function Line({ tone, children }: { tone: string; children: ReactNode }) {
  return <p className={`truncate text-xs max-md:line-clamp-2 max-md:whitespace-normal ${tone}`}>{children}</p>;
}
