import { createHash } from "node:crypto";
import type { ForgeAccount, ForgeEvent, ForgeEventName } from "../../domain/automations/forge-event.ts";
import type { InboundEvent } from "../../domain/automations/inbound-event.ts";
import { text } from "./payload.ts";

/** How long texts of an event may be, in UTF-16 units; longer ones are cut. The payload has them whole. */
export const longest = {
  /** Bodies of issues, pull requests, comments, reviews and releases: GitHub's own limit. */
  body: 65_536,
  title: 1_000,
  /** Names of people, labels, branches, checks, repositories. */
  name: 1_000,
  url: 2_000,
  /** The end of a hunk is next to the line that the comment is on. */
  hunk: 10_000,
  commitMessage: 2_000,
} as const;

/** How many entries lists of an event may have. */
export const most = { labels: 100, accounts: 50, commits: 100, pullRequests: 50, changes: 50, branches: 100 } as const;

/** The fields of one event of a delivery, in addition to those of all its events. */
export interface ForgeHappening {
  readonly name: ForgeEventName;
  /**
   * What distinguishes this happening from all others of its name in the repository: ids, commits, times of changes.
   * Times of the delivery and its id are no part of it. A null among them: the payload does not identify it.
   */
  readonly key: readonly (string | number | null)[];
  /** The name under which the key counts, if happenings of several names are the same one; its own if omitted. */
  readonly keyName?: ForgeEventName;
  /**
   * The state of its subject and the time of its beginning (RFC 3339), if that state may recur: the same key counts
   * again after another state. Omitted: the key alone counts.
   */
  readonly state?: { readonly about: string; readonly value: string; readonly at: string | null };
  /** Its subject: a web address, of a pull request if there is one. */
  readonly subject: string | null;
  /** With `actor` if it is not the delivery's. */
  readonly fields: Partial<Omit<ForgeEvent, "name" | "forge" | "repository" | "payload">>;
}

/** The fields of all events of a delivery. @property confidential omitted: false */
export type Surroundings = Pick<ForgeEvent, "forge" | "repository" | "actor" | "payload" | "confidential">;

/** The events of a delivery in the form that is the same for all senders. */
export function inboundEvents(surroundings: Surroundings, happenings: readonly ForgeHappening[]): InboundEvent[] {
  return happenings.map(({ name, key, keyName = name, state, subject, fields }) => {
    const event: ForgeEvent = { name, confidential: false, ...surroundings, ...fields };
    const sharesKey = keyName !== name && { sharesKey: true };
    const stands = stateOf(surroundings, state);
    return { name, contentKey: contentKey(surroundings, keyName, key), ...sharesKey, ...stands, subject, event };
  });
}

/** A time as forges write it, which PostgreSQL reads, too: RFC 3339, with or without its colon in the zone, or as GitLab also has it. */
const time = /^\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:\.\d{1,9})?(?:Z| UTC|[+-]\d\d:?\d\d)$/u;

function stateOf(surroundings: Surroundings, state: ForgeHappening["state"]): Pick<InboundEvent, "state"> {
  const { at = null } = state ?? {};
  if (state === undefined || at === null || !time.test(at) || Number.isNaN(Date.parse(at))) return {};
  return { state: { about: hashOf([...placeOf(surroundings), state.about]), value: hashOf([state.value]), at } };
}

function contentKey(
  surroundings: Surroundings,
  name: ForgeEventName,
  key: readonly (string | number | null)[],
): string | null {
  return key.includes(null) ? null : `${name} ${hashOf([...placeOf(surroundings), name, ...key])}`;
}

const placeOf = ({ forge, repository }: Surroundings) => [forge, repository?.url ?? null];

/** A hash, so that it is short whatever the payload holds. */
function hashOf(parts: readonly (string | number | null)[]): string {
  return createHash("sha256").update(JSON.stringify(parts)).digest("hex");
}

/** An account of a payload; null if it has no name. @param id null if the payload does not say it */
export function accountOf(id: string | null, login: unknown, isBot: boolean): ForgeAccount | null {
  const name = text(login, longest.name);
  return name === null || name === "" ? null : { id: id ?? "", login: name, isBot };
}

/** The branch of a ref; null for a tag or anything else. */
export function branchOf(ref: unknown): string | null {
  const name = text(ref, longest.name + "refs/heads/".length);
  return name !== null && /^refs\/heads\/./u.test(name) ? name.slice("refs/heads/".length) : null;
}

/** A commit's name; null for the zeros by which git says that there is none. */
export function commitOf(sha: unknown): string | null {
  const name = text(sha, 64);
  return name === null || /^0*$/u.test(name) ? null : name;
}

/** The field of a merged pull request that names the commit that it became; none if the payload does not say it. */
export function mergedAs(sha: unknown): { readonly mergeSha?: string } {
  const mergeSha = commitOf(sha);
  return mergeSha === null ? {} : { mergeSha };
}

/** The subject of a push: the branch, by an address that is no page of a forge. */
function branchSubject(repositoryUrl: string | null, branch: string): string | null {
  return repositoryUrl === null ? null : `${repositoryUrl}#refs/heads/${branch}`;
}

/**
 * That something is in a state, as a branch, or that of a pull request, is at a commit: it may come to the same one
 * again. @param at since when; null: unknown
 */
export function standsAt(about: string, value: string | null, at: string | null): Pick<ForgeHappening, "state"> {
  return at === null ? {} : { state: { about, value: value ?? "", at } };
}

/**
 * A push to a branch: one happening for each way from one commit to another, and another one if the branch was elsewhere in between.
 * @param at when it was pushed, or anything that is later for each further push; null: the delivery does not say it, and the same way counts once
 */
export function pushOf(
  repositoryUrl: string | null,
  push: NonNullable<ForgeEvent["push"]>,
  at: string | null,
): ForgeHappening {
  const { branch, before, after } = push;
  // A deletion that does not say what the branch was at can't be distinguished from the next one.
  const key = before === null && after === null ? null : `${before ?? ""}..${after ?? ""}`;
  const stands = key === null ? {} : standsAt(`branch ${branch}`, after, at);
  return {
    name: "push",
    key: [branch, key],
    ...stands,
    subject: branchSubject(repositoryUrl, branch),
    fields: { push },
  };
}

/** The name of the event of a review in this state. */
export function reviewEventName(
  state: NonNullable<ForgeEvent["review"]>["state"],
): "pullRequest.reviewSubmitted" | "pullRequest.reviewDismissed" {
  return state === "dismissed" ? "pullRequest.reviewDismissed" : "pullRequest.reviewSubmitted";
}

/** The parts of a push in git's own terms. @param at see `pushOf` @returns nothing if it is not of a branch */
export function gitPush(
  repositoryUrl: string | null,
  { ref, before, after }: { readonly ref?: unknown; readonly before?: unknown; readonly after?: unknown },
  commits: NonNullable<ForgeEvent["push"]>["commits"],
  at: string | null,
): ForgeHappening[] {
  const branch = branchOf(ref);
  if (branch === null) return [];
  const [from, to] = [commitOf(before), commitOf(after)];
  return [
    pushOf(
      repositoryUrl,
      { branch, before: from, after: to, created: from === null, deleted: to === null, commits },
      at,
    ),
  ];
}

/** A commit of a push; null if the payload does not name it. */
export function pushedCommit(
  name: unknown,
  message: unknown,
  author: unknown,
): NonNullable<ForgeEvent["push"]>["commits"][number] | null {
  const sha = text(name, longest.name);
  if (sha === null) return null;
  return { sha, message: text(message, longest.commitMessage) ?? "", author: text(author, longest.name) ?? "" };
}

/**
 * A check that ended.
 * @param run what distinguishes this run of the check from all others
 * @param pullRequestPath the part between the repository's address and a pull request's number
 */
export function checksOf(
  repositoryUrl: string | null,
  outcome: "failed" | "passed",
  checks: NonNullable<ForgeEvent["checks"]>,
  run: readonly (string | number | null)[],
  pullRequestPath: string,
): ForgeHappening {
  const [pullRequest, ...others] = checks.pullRequests;
  const isOfOne = pullRequest !== undefined && others.length === 0;
  const place = checks.branch === null ? `#${checks.sha}` : `#refs/heads/${checks.branch}`;
  const subject =
    repositoryUrl === null ? null : `${repositoryUrl}${isOfOne ? `${pullRequestPath}${pullRequest}` : place}`;
  return { name: `checks.${outcome}`, key: run, subject, fields: { checks } };
}
