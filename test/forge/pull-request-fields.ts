import type { Answer, ApiRequest } from "./api-request.ts";
import { azureList, refusedByAzure } from "./azure-answers.ts";
import { guidOf } from "./azure-places.ts";
import { identityShape, knownIdentity } from "./azure-shapes.ts";
import { askForChanges, idOf } from "./feedback.ts";
import { userShape as giteaUserShape } from "./gitea-shapes.ts";
import { userShape } from "./github-shapes.ts";
import { gitLabUserShape } from "./gitlab-shapes.ts";
import type { ForgeState, KeptPullRequest, Place } from "./state.ts";

const began = "2026-01-01T00:00:00Z";

/** The people of a repository. */
export function peopleOf(state: ForgeState, { owner, name }: Pick<Place, "owner" | "name">): string[] {
  return Object.keys(state.facts.get(`${owner}/${name}`)?.people ?? {});
}

/** Changes a pull request. @returns null: there is none */
export function changePull(
  state: ForgeState,
  { owner, name }: Pick<Place, "owner" | "name">,
  number: number,
  changes: (pull: KeptPullRequest) => Partial<KeptPullRequest>,
): KeptPullRequest | null {
  const pulls = state.pulls.get(`${owner}/${name}`) ?? [];
  const index = pulls.findIndex((pull) => pull.number === number);
  const pull = pulls[index];
  if (pull === undefined) return null;
  const changed = { ...pull, ...changes(pull) };
  pulls[index] = changed;
  return changed;
}

const together = (before: readonly string[] | undefined, more: readonly string[]): string[] => [
  ...new Set([...(before ?? []), ...more]),
];
const lists = (body: ApiRequest["body"]) =>
  body as unknown as Readonly<
    Partial<Record<"labels" | "assignees" | "reviewers" | "team_reviewers", readonly string[]>>
  >;

/** A team of any organization that is called so is one. */
const team = "core";

/**
 * GitHub's calls for labels, assignees and reviewers; null if a request is for none of it.
 * @param show a pull request as lists have it
 */
export function answerFieldsAsGitHub(
  state: ForgeState,
  { place, method, path, body }: ApiRequest,
  show: (pull: KeptPullRequest) => unknown,
  refused: (status: number, words: string) => Answer,
): Answer | null {
  const [, number, field] = /^\/(?:issues|pulls)\/(\d+)\/(labels|assignees|requested_reviewers)$/u.exec(path) ?? [];
  if (number === undefined || method !== "POST") return null;
  const { labels = [], assignees = [], reviewers = [], team_reviewers: teams = [] } = lists(body);
  const known = peopleOf(state, place);
  const asked = [...reviewers, ...teams.map((each) => `team ${each}`)];
  if (asked.some((each) => each !== `team ${team}` && !known.includes(each))) {
    const words = `Reviews may only be requested from collaborators. One or more of the users or teams you specified is not a collaborator of the ${place.owner}/${place.name} repository.`;
    return refused(422, words);
  }
  const changed = changePull(state, place, Number(number), (pull) => ({
    labels: together(pull.labels, labels),
    // Accounts that can't be assigned are left out.
    assignees: together(
      pull.assignees,
      assignees.filter((each) => known.includes(each)),
    ),
    reviewers: together(pull.reviewers, asked),
  }));
  if (changed === null) return refused(404, "Not Found");
  if (field === "requested_reviewers") return { status: 201, body: show(changed) };
  if (field === "assignees") return { status: 201, body: issueShape(place, changed) };
  return { status: 200, body: gitHubLabels(place, changed) };
}

/** The labels of a pull request as GitHub shows them. */
function gitHubLabels({ webUrl, owner, name }: Place, { labels = [] }: KeptPullRequest) {
  return labels.map((label, index) => ({
    id: index + 1,
    node_id: `LA_${index + 1}`,
    url: `${webUrl}/api/v3/repos/${owner}/${name}/labels/${encodeURIComponent(label)}`,
    name: label,
    description: null,
    color: "ededed",
    default: false,
  }));
}

function issueShape(place: Place, pull: KeptPullRequest) {
  const { webUrl, owner, name } = place;
  const repository = `${webUrl}/api/v3/repos/${owner}/${name}`;
  const url = `${repository}/issues/${pull.number}`;
  const assignees = (pull.assignees ?? []).map((login) => userShape(webUrl, login));
  return {
    id: pull.number,
    node_id: `PR_${pull.number}`,
    url,
    repository_url: repository,
    labels_url: `${url}/labels{/name}`,
    comments_url: `${url}/comments`,
    events_url: `${url}/events`,
    html_url: `${webUrl}/${owner}/${name}/pull/${pull.number}`,
    number: pull.number,
    state: "open",
    title: pull.title,
    body: pull.body,
    user: userShape(webUrl, owner),
    labels: gitHubLabels(place, pull),
    assignee: assignees[0] ?? null,
    assignees,
    milestone: null,
    locked: false,
    comments: 0,
    closed_at: null,
    created_at: began,
    updated_at: began,
    author_association: "MEMBER",
  };
}

/** What a change of a merge request says of labels and people, who are all that are sent. */
export function fieldsSentToGitLab(state: ForgeState, { place, body }: ApiRequest, pull: KeptPullRequest) {
  const sent = body as unknown as Readonly<Record<string, string | readonly number[] | undefined>>;
  const named = (ids: string | readonly number[] | undefined, before: readonly string[] | undefined) =>
    Array.isArray(ids) ? peopleOf(state, place).filter((login) => (ids as number[]).includes(idOf(login))) : before;
  const labels = typeof sent["add_labels"] === "string" ? sent["add_labels"].split(",") : [];
  const reviewers = named(sent["reviewer_ids"], pull.reviewers);
  const assignees = named(sent["assignee_ids"], pull.assignees);
  return {
    labels: together(pull.labels, labels),
    ...(reviewers !== undefined && { reviewers }),
    ...(assignees !== undefined && { assignees }),
  };
}

/** GitLab's users of a name. */
export function listGitLabUsers({ facts, url }: ForgeState, { query }: ApiRequest): Answer {
  const all = [...facts.values()].flatMap(({ people = {} }) => Object.keys(people));
  const found = [...new Set(all)].filter((login) => login === query.get("username"));
  return { status: 200, body: found.map((login) => gitLabUserShape(url, login, idOf(login))) };
}

/** Gitea's calls for labels and reviewers; null if a request is for none of it. */
export function answerFieldsAsGitea(
  state: ForgeState,
  { place, method, path, body }: ApiRequest,
  refused: (status: number, words: string) => Answer,
): Answer | null {
  const [, number, field] = /^\/(?:issues|pulls)\/(\d+)\/(labels|requested_reviewers)$/u.exec(path) ?? [];
  if (number === undefined || method !== "POST") return null;
  const facts = state.facts.get(`${place.owner}/${place.name}`);
  const { labels = [], reviewers = [], team_reviewers: teams = [] } = lists(body);
  const stranger = reviewers.find((each) => !peopleOf(state, place).includes(each));
  if (stranger !== undefined) return refused(404, `user redirect does not exist [name: ${stranger}]`);
  const changed = changePull(state, place, Number(number), (pull) => ({
    // What the repository does not have is left out.
    labels: together(
      pull.labels,
      labels.filter((each) => facts?.labels?.includes(each) === true),
    ),
    reviewers: together(pull.reviewers, [...reviewers, ...teams.map((each) => `team ${each}`)]),
  }));
  if (changed === null) return refused(404, "The target couldn't be found.");
  if (field === "labels") return { status: 200, body: giteaLabels(place, changed) };
  const user = reviewers.map((login) => ({ user: giteaUserShape(place.webUrl, login) }));
  return { status: 201, body: user.map((each, id) => ({ id, state: "REQUEST_REVIEW", body: "", ...each })) };
}

/** The labels of a pull request as Gitea shows them. */
function giteaLabels({ webUrl, owner, name }: Place, { labels = [] }: KeptPullRequest) {
  return labels.map((label, index) => ({
    id: index + 1,
    name: label,
    exclusive: false,
    is_archived: false,
    color: "ededed",
    description: "",
    url: `${webUrl}/api/v1/repos/${owner}/${name}/labels/${index + 1}`,
  }));
}

/** Who is assigned by a change of a pull request at Gitea: all that are sent. */
export function assignAtGitea(
  state: ForgeState,
  { place, method, body }: ApiRequest,
  pull: KeptPullRequest,
  refused: (status: number, words: string) => Answer,
): Answer | null {
  const { assignees } = lists(body);
  if (method !== "PATCH" || assignees === undefined) return null;
  const stranger = assignees.find((each) => !peopleOf(state, place).includes(each));
  if (stranger !== undefined) return refused(422, `Assignee does not exist: [name: ${stranger}]`);
  changePull(state, place, pull.number, () => ({ assignees }));
  return null;
}

/** The calls of Azure DevOps for labels and reviewers; null if a request is for none of it. */
export function answerFieldsAsAzure(state: ForgeState, request: ApiRequest): Answer | null {
  const { place, method, path, body } = request;
  const [, number, field, id] = /^\/pullRequests\/(\d+)\/(labels|reviewers)(?:\/([^/]+))?$/u.exec(path) ?? [];
  if (number === undefined) return null;
  if (field === "labels" && method === "POST") {
    const { name = "" } = body;
    changePull(state, place, Number(number), (pull) => ({ labels: together(pull.labels, [name]) }));
    return { status: 200, body: { id: guidOf(`label ${name}`), name, active: true } };
  }
  const login = peopleOf(state, place).find((each) => guidOf(`person ${each}`) === id);
  if (login === undefined || method !== "PUT")
    return refusedByAzure(400, `TF401190: The identity ${id} is not valid.`, "GitArgumentException");
  changePull(state, place, Number(number), (pull) => ({ reviewers: together(pull.reviewers, [login]) }));
  const vote = Number(body["vote"] ?? 0);
  if (vote < 0) askForChanges(state, request, Number(number), "");
  return { status: 200, body: { ...azureReviewer(state, login), vote } };
}

/** A reviewer as Azure DevOps shows one. */
function azureReviewer(state: Pick<ForgeState, "url">, login: string) {
  return { ...identityShape(state, login), reviewerUrl: null, vote: 0, hasDeclined: false, isFlagged: false };
}

/** The people of a collection by a name; null: they are asked for by their ids. */
export function findAtAzure({ facts }: ForgeState, { query }: ApiRequest): Answer | null {
  const wanted = query.get("filterValue");
  if (wanted === null) return null;
  const all = [...facts.values()].flatMap(({ people = {} }) => Object.keys(people));
  // It finds by the beginning of a name, too.
  const found = [...new Set(all)].filter((login) => `${login}@example.com`.startsWith(wanted.toLowerCase()));
  return azureList(found.map(knownIdentity));
}
