import { type Place, nextLagMs, tokenUser, type ForgeState, type KeptPullRequest } from "./state.ts";
import { bareOf, bringFrom, copyTo, setRef, tipOf } from "./commits.ts";

/** An answer of the API; no status if the connection is cut instead. */
export interface Answer {
  readonly status: number | null;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: unknown;
  /** Instead of a body in JSON. */
  readonly text?: string;
}

/** A request about one repository. */
export interface ApiRequest {
  readonly place: Place;
  readonly method: string;
  /** What follows the repository in the path. */
  readonly path: string;
  readonly query: URLSearchParams;
  readonly token: string;
  /** Whether the token was sent as the password of basic authentication. */
  readonly isBasic: boolean;
  readonly body: Record<string, string>;
}

/** The head of a pull request, which is frozen once it is closed. */
export function headShaOf(state: ForgeState, place: Place, { head, headOwner, endedSha }: KeptPullRequest): string {
  const from = headOwner === null ? place : { ...place, owner: headOwner };
  return endedSha ?? state.refs.shaOf(bareOf(state, from), head) ?? "";
}

/**
 * Brings the refs of a repository's pull requests up to date, as each forge calls them: a clone finds their heads
 * there.
 */
export function showPullRequests(state: ForgeState, place: Pick<Place, "owner" | "name">): void {
  const bare = bareOf(state, place);
  for (const { number, head, headOwner, endedSha } of state.pulls.get(`${place.owner}/${place.name}`) ?? []) {
    const from = headOwner === null ? bare : bareOf(state, { ...place, owner: headOwner });
    const sha = endedSha ?? tipOf(from, head);
    const key = `${bare} ${number}`;
    if (sha === null || state.shownHeads.get(key) === sha) continue;
    if (headOwner !== null) bringFrom(bare, from, head);
    for (const ref of [`pull/${number}/head`, `merge-requests/${number}/head`, `pull-requests/${number}/from`])
      setRef(bare, `refs/${ref}`, sha);
    state.shownHeads.set(key, sha);
  }
}

/** Opens a pull request as a person does. */
export function proposePullRequest(
  state: ForgeState,
  place: Pick<Place, "owner" | "name">,
  { number, head, headOwner = null, base = "main", title = head }: Proposal,
): void {
  const pulls = state.pulls.get(`${place.owner}/${place.name}`) ?? [];
  const baseSha = tipOf(bareOf(state, place), base) ?? "";
  const opened = addPullRequest(state, pulls, { title, base }, { head, headOwner, baseSha });
  pulls[pulls.indexOf(opened)] = { ...opened, number };
}

/** A pull request of a person's. */
export interface Proposal {
  readonly number: number;
  readonly head: string;
  /** Owner of the fork that has the head; null or omitted: the repository itself has it. */
  readonly headOwner?: string | null;
  /** Omitted: `main`. */
  readonly base?: string;
  readonly title?: string;
}

/** The head that a request names: `branch`, or `owner:branch` of a fork, whose commits the repository then has too. */
export function headIn(state: ForgeState, place: Place, named: string) {
  const [owner, branch] = named.includes(":") ? named.split(":") : [place.owner, named];
  const from = { ...place, owner: owner ?? "" };
  const headOwner = from.owner === place.owner ? null : from.owner;
  const isKnown = state.pulls.has(`${from.owner}/${from.name}`);
  const headSha = isKnown ? state.refs.shaOf(bareOf(state, from), branch ?? "") : null;
  if (headOwner !== null && headSha !== null) bringFrom(bareOf(state, place), bareOf(state, from), branch ?? "");
  return { head: branch ?? "", headOwner, headSha };
}

/** Makes the fork of the token's user, or finds it. @returns where it is, and whether it was there */
export function forkOf(state: ForgeState, place: Place): { readonly fork: Place; readonly wasThere: boolean } {
  const fork = { ...place, owner: tokenUser };
  const key = `${fork.owner}/${fork.name}`;
  const wasThere = state.pulls.has(key);
  if (!wasThere) {
    copyTo(bareOf(state, place), bareOf(state, fork));
    state.pulls.set(key, []);
    state.facts.set(key, { forkOf: place.owner });
    state.refs.changed(bareOf(state, fork));
  }
  return { fork, wasThere };
}

/** Adds a pull request, which lists show after the lag. */
export function addPullRequest(
  state: ForgeState,
  pulls: KeptPullRequest[],
  { title = "", body = "", base = "", draft = "false" }: Record<string, string>,
  { head, headOwner, baseSha }: Pick<KeptPullRequest, "head" | "headOwner" | "baseSha">,
): KeptPullRequest {
  const shownFrom = performance.now() + nextLagMs(state);
  const number = Math.max(0, ...pulls.map((pull) => pull.number)) + 1;
  const pull: KeptPullRequest = {
    number,
    title,
    body,
    head,
    headOwner,
    base,
    state: "open",
    author: state.asking,
    baseSha,
    endedSha: null,
    openedOn: new Date().toISOString(),
    // As it is sent: a text of some forges here, and true of others.
    draft: JSON.stringify(draft).includes("true") || /^(?:draft|wip):/iu.test(title),
    shownFrom,
    endShownFrom: 0,
  };
  pulls.push(pull);
  return pull;
}

/** Closes a pull request, which lists show after the lag. */
export function endPullRequest(
  state: ForgeState,
  place: Pick<Place, "owner" | "name">,
  number: number,
  ending: "closed" | "merged",
): KeptPullRequest | null {
  const pulls = state.pulls.get(`${place.owner}/${place.name}`) ?? [];
  const index = pulls.findIndex((pull) => pull.number === number);
  const pull = pulls[index];
  if (pull === undefined) return null;
  const from = pull.headOwner === null ? place : { ...place, owner: pull.headOwner };
  const endedSha = tipOf(bareOf(state, from), pull.head) ?? pull.endedSha;
  const ended = { ...pull, state: ending, endedSha, endShownFrom: performance.now() + nextLagMs(state) };
  pulls[index] = ended;
  state.ended({ ...place, webUrl: state.url }, number);
  return ended;
}

/** Gives each open pull request the target that is said of it. */
export function changeTargets(
  state: ForgeState,
  { owner, name }: Pick<Place, "owner" | "name">,
  targetOf: (pull: KeptPullRequest) => string,
): void {
  const pulls = state.pulls.get(`${owner}/${name}`) ?? [];
  for (const [index, pull] of pulls.entries())
    if (pull.state === "open") pulls[index] = { ...pull, base: targetOf(pull) };
}

/** Changes what a PATCH says: the text of a pull request, or that it is closed. */
export function patchPullRequest(
  state: ForgeState,
  { place, method, body }: ApiRequest,
  pull: KeptPullRequest,
): KeptPullRequest {
  if (method !== "PATCH") return pull;
  if (body["state"] === "closed") return endPullRequest(state, place, pull.number, "closed") ?? pull;
  const pulls = state.pulls.get(`${place.owner}/${place.name}`) ?? [];
  const changed = { ...pull, body: body["body"] ?? pull.body };
  pulls[pulls.indexOf(pull)] = changed;
  if (changed.body !== pull.body) state.edited(place, pull.number, pull.body);
  return changed;
}

/** One page of a list, and the headers for the others. */
export function pageOf<Item>(
  { query, path, place }: ApiRequest,
  items: readonly Item[],
  { sizeName, mostItems, base }: { readonly sizeName: string; readonly mostItems: number; readonly base: string },
): { readonly items: readonly Item[]; readonly headers: Record<string, string> } {
  const size = Math.min(Number(query.get(sizeName) ?? 30), mostItems);
  const page = Math.max(1, Number(query.get("page") ?? 1));
  const last = Math.max(1, Math.ceil(items.length / size));
  const linkTo = (number: number, rel: string): string => {
    const other = new URLSearchParams(query);
    other.set("page", String(number));
    return `<${place.webUrl}${base}${path}?${other.toString()}>; rel="${rel}"`;
  };
  const links = [
    ...(page < last ? [linkTo(page + 1, "next"), linkTo(last, "last")] : []),
    ...(page > 1 ? [linkTo(1, "first"), linkTo(page - 1, "prev")] : []),
  ];
  return {
    items: items.slice((page - 1) * size, page * size),
    headers: links.length === 0 ? {} : { Link: links.join(", ") },
  };
}
