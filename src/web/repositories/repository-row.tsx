import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import type { Repository } from "../../domain/repositories/repository.ts";
import { StatusBadge } from "../elements/sessions/status-badge.tsx";
import { Ago } from "../elements/time.tsx";
import { client } from "../query.ts";
import { useRepositoryTexts } from "../texts/repositories.ts";
import { isPlainGit } from "./plain-git.ts";

// Each row asks for its own: what a minute makes of thirty rows is a twentieth of what a key may ask for.
const refreshMs = 60_000;

/** A repository in the list: what it is, and its last session. */
export function RepositoryRow({ repository }: { repository: Repository }) {
  const texts = useRepositoryTexts();
  const { id, name, url, branch, description, integration } = repository;
  const about = [
    // A forge that has no name but its address's needs no words.
    ...(isPlainGit(repository) ? [texts.plainGit] : []),
    ...(integration === undefined || isPlainGit(repository) || url.includes(integration.name)
      ? []
      : [texts.ofForge(integration.name)]),
    ...(branch === null ? [] : [texts.branchOf(branch)]),
  ];
  return (
    <li className="relative flex flex-wrap items-center gap-x-4 gap-y-1 px-4 py-3 text-sm hover:bg-hover">
      <div className="min-w-0 flex-1 basis-64">
        <Link
          to="/repositories/$id"
          params={{ id }}
          data-row
          className="font-medium wrap-anywhere after:absolute after:inset-0"
        >
          <bdi>{name}</bdi>
        </Link>
        {description !== null && (
          <p className="wrap-anywhere">
            <bdi>{description}</bdi>
          </p>
        )}
        <p className="text-xs wrap-anywhere text-muted">
          <bdi>{url}</bdi>
          {about.map((words) => ` · ${words}`)}
        </p>
      </div>
      <LastSession repositoryId={id} />
    </li>
  );
}

function LastSession({ repositoryId }: { repositoryId: string }) {
  const texts = useRepositoryTexts();
  const last = useQuery({
    queryKey: ["sessions", "last of repository", repositoryId],
    queryFn: () => client.session.list({ repositoryId, archived: "all", limit: 1 }),
    refetchInterval: refreshMs,
  });
  const session = last.data?.sessions[0];
  return (
    <div className="w-64 min-w-0 text-xs text-muted max-sm:w-full">
      {last.data !== undefined && session === undefined && texts.noSessions}
      {session !== undefined && (
        <>
          <p className="flex items-center gap-2">
            <StatusBadge status={session.status} />
            <Ago at={session.createdAt} />
          </p>
          {/* Above the row's own link. */}
          <Link to="/sessions/$id" params={{ id: session.id }} className="relative z-10 block truncate hover:underline">
            <span className="sr-only">{texts.lastSession}: </span>
            <bdi>{session.title}</bdi>
          </Link>
        </>
      )}
    </div>
  );
}
