import { useQuery, useQueryClient, type UseQueryResult } from "@tanstack/react-query";
import { useState } from "react";
import type { SessionPageOf } from "../../client.ts";
import type { SessionDetail } from "../../domain/sessions/session.ts";
import { client } from "../query.ts";
import { isFlat, type HomeFilter } from "./filter.ts";
import { withNewest, type Read } from "./newest-first.ts";
import { useLiveSessions } from "./use-live-sessions.ts";

const pageSize = 40;
/** Of a group that is shown whole. */
const groupSize = 100;
/** Places in the queue change without a word: how often those who wait there are read again, in ms. */
const queueMs = 5_000;

/** The sessions as the page shows them. */
export interface Sessions {
  readonly person: readonly SessionDetail[];
  readonly work: readonly SessionDetail[];
  readonly review: readonly SessionDetail[];
  readonly rest: readonly SessionDetail[];
  readonly isLoading: boolean;
  readonly error: Error | null;
  readonly retry: () => void;
  readonly hasMore: boolean;
  readonly isLoadingMore: boolean;
  readonly loadMore: () => void;
}

/** The sessions that fit a filter, kept up to date while the page is visible. */
export function useSessions(filter: HomeFilter): Sessions {
  const flat = isFlat(filter);
  const rest = useNewestFirst(filter, flat);
  const person = useGroup(filter, "person", { attention: ["budget", "failure", "conflict"] }, !flat);
  const review = useGroup(filter, "review", { attention: "review" }, !flat);
  const work = useGroup(filter, "work", { status: ["running", "queued"] }, !flat);
  useLiveSessions();
  const queries = useQueryClient();
  const groups = flat ? [rest.query] : [person, work, review, rest.query];
  // Each is in its most urgent group.
  const seen = new Set<string>();
  const once = (sessions: readonly SessionDetail[] = []): readonly SessionDetail[] =>
    sessions.filter(({ id }) => !seen.has(id) && seen.add(id));
  return {
    person: flat ? [] : once(person.data?.sessions),
    work: flat ? [] : once(work.data?.sessions),
    review: flat ? [] : once(review.data?.sessions),
    rest: once(rest.query.data?.sessions),
    isLoading: groups.some(({ data, error }) => data === undefined && error === null),
    error: groups.find(({ error }) => error !== null)?.error ?? null,
    retry: () => void queries.refetchQueries({ queryKey: ["sessions"] }),
    hasMore: rest.query.data?.next != null,
    isLoadingMore: rest.isLoadingMore,
    loadMore: rest.loadMore,
  };
}

function narrowed({ by, repository, automation, label, archived, unread }: HomeFilter): SessionPageOf {
  return {
    requestedBy: by,
    repositoryId: repository,
    automationId: automation,
    label,
    archived: archived === true ? "true" : "false",
    unread: unread && "true",
  };
}

function useGroup(filter: HomeFilter, name: string, query: SessionPageOf, enabled: boolean): UseQueryResult<Read> {
  return useQuery({
    queryKey: ["sessions", name, narrowed(filter)],
    queryFn: async (): Promise<Read> => {
      const page = await client.session.list({ ...narrowed(filter), ...query, limit: groupSize });
      return { sessions: page.sessions, next: page.nextCursor };
    },
    refetchInterval: ({ state }) => (state.data?.sessions.some(isInQueue) === true ? queueMs : false),
    enabled,
  });
}

/**
 * A list that grows at both ends: the newest page is polled, and older pages are read once, when the user comes to the
 * end.
 * @param flat whether all are in it, or only those that no group has
 */
function useNewestFirst(filter: HomeFilter, flat: boolean) {
  const queries = useQueryClient();
  const [isLoadingMore, setLoadingMore] = useState(false);
  const queryKey = ["sessions", "list", filter];
  const read = async (cursor: string | undefined): Promise<Read> => {
    const { q, status } = filter;
    const page: SessionPageOf = {
      ...narrowed(filter),
      status: status ?? (flat ? undefined : ["draft", "completed", "failed", "cancelled"]),
      limit: pageSize,
      cursor,
    };
    const { sessions, nextCursor } = await (q === undefined
      ? client.session.list(page)
      : client.session.search(q, page));
    return { sessions, next: nextCursor };
  };
  const query = useQuery({
    queryKey,
    queryFn: async () => {
      const newest = await read(undefined);
      // Applied to the current list: older ones may have been added meanwhile.
      return withNewest(queries.getQueryData<Read>(queryKey), newest);
    },
    refetchInterval: ({ state }) =>
      state.data?.sessions.slice(0, pageSize).some(isInQueue) === true ? queueMs : false,
  });
  const loadMore = (): void => {
    const next = query.data?.next ?? null;
    if (next === null || isLoadingMore) return;
    setLoadingMore(true);
    read(next)
      .then((older) =>
        queries.setQueryData<Read>(queryKey, (known) =>
          // If the list was restarted meanwhile, they do not follow its known pages.
          known?.next === next ? { sessions: [...known.sessions, ...older.sessions], next: older.next } : known,
        ),
      )
      // It is tried again the next time that the user comes to the end.
      .catch(() => undefined)
      .finally(() => setLoadingMore(false));
  };
  return { query, isLoadingMore, loadMore };
}

function isInQueue({ queuePosition }: SessionDetail): boolean {
  return queuePosition !== null;
}
