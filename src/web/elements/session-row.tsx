import { Link } from "@tanstack/react-router";
import type { SessionDetail } from "../../domain/sessions/session.ts";
import { formatDollars } from "./dollars.ts";
import { StatusBadge } from "./status-badge.tsx";
import { Ago, Until } from "./time.tsx";

/** A session in a list: title, repositories, age, who asked, pull request, cost and status. */
export function SessionRow({ session }: { session: SessionDetail }) {
  const { id, title, repositories, pullRequests, spentUsd, createdAt, status, retry, requestedBy } = session;
  const [pullRequest] = pullRequests;
  return (
    <li className="relative flex items-center gap-x-3 px-4 py-3 hover:bg-sunken">
      <div className="min-w-0 flex-1">
        <Link to="/sessions/$id" params={{ id }} className="font-medium break-words after:absolute after:inset-0">
          <bdi>{title}</bdi>
        </Link>
        <p className="text-sm break-words text-muted">
          {repositories.map(({ name }) => name).join(", ") || "No repository"} · <Ago at={createdAt} />
          {requestedBy !== null && ` · ${requestedBy.name}`}
          {pullRequest !== undefined &&
            ` · pull request #${pullRequest.number}${pullRequest.state === "open" ? "" : ` ${pullRequest.state}`}`}
          {spentUsd > 0 && ` · ${formatDollars(spentUsd)}`}
        </p>
        {retry !== null && (
          <p className="text-sm break-words text-warn">
            Tried again <Until at={retry.at} />: <bdi>{retry.reason}</bdi>
          </p>
        )}
      </div>
      <StatusBadge status={status} />
    </li>
  );
}
