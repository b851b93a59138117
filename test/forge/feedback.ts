import { createHash } from "node:crypto";
import type { Answer, ApiRequest } from "./api-request.ts";
import {
  nextLagMs,
  type ForgeState,
  type KeptComment,
  type KeptFeedback,
  type KeptStatus,
  type Lines,
  type Place,
} from "./state.ts";

export function feedbackOf(state: ForgeState, { owner, name }: Pick<Place, "owner" | "name">): KeptFeedback {
  const key = `${owner}/${name}`;
  const kept = state.feedback.get(key) ?? {
    comments: [],
    reactions: new Set<string>(),
    statuses: new Map<string, KeptStatus>(),
    resolved: new Set<string>(),
  };
  state.feedback.set(key, kept);
  return kept;
}

/** Whether there is an issue or a pull request of that number. */
export function isThere(state: ForgeState, { owner, name }: Place, number: number, kind: "issue" | "pull" | "any") {
  const key = `${owner}/${name}`;
  const isPull = (state.pulls.get(key) ?? []).some((pull) => pull.number === number);
  const isIssue = state.facts.get(key)?.issues?.includes(number) === true;
  return kind === "any" ? isPull || isIssue : kind === "pull" ? isPull : isIssue;
}

/** @param to the thread that it is in, or the lines on which it begins one; null: it stands alone */
export function addComment(
  state: ForgeState,
  { place, body }: ApiRequest,
  number: number,
  to: string | Lines | null,
): KeptComment {
  const { comments } = feedbackOf(state, place);
  const id = 700 + comments.length;
  const isNew = typeof to === "object" && to !== null;
  if (isNew) beginThread(state, place, String(id));
  const added = {
    id,
    number,
    body: body["body"] ?? "",
    thread: isNew ? String(id) : to,
    ...(isNew && { lines: to }),
    createdAt: new Date().toISOString(),
    shownFrom: performance.now() + nextLagMs(state),
  };
  comments.push(added);
  state.commented(place, added);
  return added;
}

/** Lets a thread be answered and resolved. */
export function beginThread(state: ForgeState, { owner, name }: Pick<Place, "owner" | "name">, thread: string): void {
  const facts = state.facts.get(`${owner}/${name}`) ?? {};
  state.facts.set(`${owner}/${name}`, { ...facts, threads: [...(facts.threads ?? []), thread] });
}

/** The comments that lists show, oldest first. */
export function shownComments(state: ForgeState, { place, query }: ApiRequest, number: number): KeptComment[] {
  const since = Date.parse(query.get("since") ?? "1970-01-01T00:00:00Z");
  return feedbackOf(state, place).comments.filter(
    (comment) =>
      comment.number === number && performance.now() >= comment.shownFrom && Date.parse(comment.createdAt) >= since,
  );
}

/** @returns whether it was there */
export function addReaction(state: ForgeState, { place }: ApiRequest, to: string, content: string): boolean {
  const { reactions } = feedbackOf(state, place);
  const wasThere = reactions.has(`${to} ${content}`);
  reactions.add(`${to} ${content}`);
  return wasThere;
}

/** Marks a thread as resolved. @returns whether it was before; null: there is no such thread */
export function resolveThread(
  state: ForgeState,
  place: Pick<Place, "owner" | "name">,
  thread: string,
): { readonly wasResolved: boolean } | null {
  if (state.facts.get(`${place.owner}/${place.name}`)?.threads?.includes(thread) !== true) return null;
  const { resolved } = feedbackOf(state, place);
  const wasResolved = resolved.has(thread);
  resolved.add(thread);
  return { wasResolved };
}

/** Names of the reactions to something. */
export function reactionsTo(state: ForgeState, { place }: ApiRequest, to: string): string[] {
  return [...feedbackOf(state, place).reactions]
    .filter((kept) => kept.startsWith(`${to} `))
    .map((kept) => kept.slice(to.length + 1));
}

/** @returns what was there before */
export function setStatus(state: ForgeState, { place }: ApiRequest, status: KeptStatus): KeptStatus | null {
  const { statuses } = feedbackOf(state, place);
  const key = `${status.sha} ${status.name}`;
  const before = statuses.get(key) ?? null;
  statuses.set(key, status);
  state.statusSet(place, status);
  return before;
}

/** Asks for changes as the request's user. @returns false: no author may of their own pull request */
export function askForChanges(state: ForgeState, { place }: ApiRequest, number: number, body: string): boolean {
  const pull = state.pulls.get(`${place.owner}/${place.name}`)?.find((each) => each.number === number);
  if (pull === undefined || pull.author === state.asking) return false;
  const { reviews = [] } = state.facts.get(`${place.owner}/${place.name}`) ?? {};
  state.reviewed(place, number, { by: state.asking, body, id: 900 + reviews.length });
  return true;
}

/** A person of the forge, by name; null: there is none. */
export function personOf(state: ForgeState, { owner, name }: Place, login: string) {
  const permission = state.facts.get(`${owner}/${name}`)?.people?.[login];
  return permission === undefined ? null : { login, id: idOf(login), permission };
}

/** The stable id of a person. */
export function idOf(login: string): number {
  return createHash("sha256").update(login).digest().readUInt16BE();
}

/** The jobs of a CI run, all of which failed; null: there is no such run. */
export function jobsOf(state: ForgeState, { owner, name }: Pick<Place, "owner" | "name">, run: string) {
  const ids = state.facts.get(`${owner}/${name}`)?.jobs?.[run];
  return ids?.map((id) => ({ id: Number(id), name: `job ${id}` })) ?? null;
}

/** The log of a CI job; null: there is none. */
export function logOf(state: ForgeState, { owner, name }: Pick<Place, "owner" | "name">, job: string): string | null {
  return state.facts.get(`${owner}/${name}`)?.logs?.[job] ?? null;
}

/** An answer of a list. */
export const listed = (
  { items, headers }: { readonly items: readonly unknown[]; readonly headers: Record<string, string> },
  shape: (item: never) => unknown,
): Answer => ({ status: 200, headers, body: items.map((item) => shape(item as never)) });
